#include "daemon/net/token.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "daemon/store/job_files.hpp"

namespace pipewright {
namespace {

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw ConfigError("the system gives no random bytes for a token");
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

}  // namespace

Token Token::load_or_make(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    Token token(random_token());
    write_file_atomically(file, token.text_ + "\n", 0600);
    return token;
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw ConfigError(file.string() +
                      ": others may read the token; make it yours alone (chmod 600) "
                      "or delete it to get a new one");
  }
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  text = trim(text);
  if (text.size() < 32) {
    throw ConfigError(file.string() +
                      ": holds no token of at least 32 characters; delete it to get "
                      "a new one");
  }
  return Token(std::move(text));
}

bool Token::equals(std::string_view given) const {
  return given.size() == text_.size() &&
         CRYPTO_memcmp(given.data(), text_.data(), text_.size()) == 0;
}

}  // namespace pipewright
