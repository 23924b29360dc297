#include "daemon/auth/tokens.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/store/job_files.hpp"
#include "daemon/store/store.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t secret_length_min = 32;
constexpr std::size_t name_length_max = 64;
constexpr std::size_t tokens_max = 10'000;
constexpr std::int64_t minute_ms = 60'000;

std::string random_secret() {
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

/// False when there is no such file.
bool is_ours_alone(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return false;
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw ConfigError(file.string() +
                      ": others may read it; make it yours alone (chmod 600), or delete it to "
                      "begin anew");
  }
  return true;
}

/// The token of the data folder.
std::string load_or_make_secret(const fs::path& file) {
  if (!is_ours_alone(file)) {
    std::string secret = random_secret();
    write_file_atomically(file, secret + "\n", 0600);
    return secret;
  }
  std::ifstream in(file);
  if (!in) throw ConfigError(file.string() + ": cannot be read: " + std::strerror(errno));
  std::string text;
  std::getline(in, text);
  text = trim(text);
  if (text.size() < secret_length_min) {
    throw ConfigError(file.string() + ": holds no token of at least " +
                      std::to_string(secret_length_min) +
                      " characters; delete it to get a new one");
  }
  return text;
}

void check_name(const std::string& name) {
  const auto is_plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > name_length_max ||
      !std::all_of(name.begin(), name.end(), is_plain)) {
    throw ConfigError("name: '" + name + "' is not 1 to " + std::to_string(name_length_max) +
                      " letters, digits, '.', '_' and '-'");
  }
}

TokenInfo info_of(const Holder& holder) {
  return {holder.name, std::string(name_of(holder.role)), holder.created_unix_ms,
          holder.last_used_unix_ms, holder.expires_unix_ms};
}

Holder holder_from(const Value& value) {
  const std::optional<Role> role = role_from(value.at("role").as_text());
  if (!role) throw ConfigError("'" + value.at("role").as_text() + "' is no role");
  return {.name = value.at("name").as_text(),
          .role = *role,
          .sha256 = value.at("sha256").as_text(),
          .created_unix_ms = value.at("created_unix_ms").as_integer(),
          .last_used_unix_ms = value.at("last_used_unix_ms").as_integer(),
          .expires_unix_ms = value.at("expires_unix_ms").as_integer()};
}

}  // namespace

Tokens::Tokens(const fs::path& data_dir) : file_(data_dir / "tokens.json") {
  holders_.push_back(std::make_shared<Holder>(
      Holder{.name = std::string(admin_user),
             .role = Role::admin,
             .sha256 = sha256_hex(load_or_make_secret(data_dir / "token"))}));
  if (is_ours_alone(file_)) read();
}

void Tokens::read() {
  std::ifstream in(file_);
  if (!in) throw ConfigError(file_.string() + ": cannot be read: " + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    const Value tree = value_from_json(text);
    for (const Value& value : tree.at("tokens").as_list()) {
      holders_.push_back(std::make_shared<Holder>(holder_from(value)));
    }
  } catch (const Error& error) {
    throw ConfigError(file_.string() + ": was not written by pipewrightd (" + error.what() +
                      "); take it from a backup, or delete it and make the tokens anew");
  }
}

void Tokens::save() const {
  Value list = Value::list();
  for (auto at = holders_.begin() + 1; at != holders_.end(); ++at) {
    const Holder& holder = **at;
    list.as_list().push_back(Value(Value::Map{{"name", holder.name},
                                              {"role", name_of(holder.role)},
                                              {"sha256", holder.sha256},
                                              {"created_unix_ms", holder.created_unix_ms},
                                              {"last_used_unix_ms", holder.last_used_unix_ms},
                                              {"expires_unix_ms", holder.expires_unix_ms}}));
  }
  write_file_atomically(file_, to_json(Value(Value::Map{{"tokens", list}})) + "\n", 0600);
}

std::shared_ptr<const Holder> Tokens::find(std::string_view secret, std::int64_t now_unix_ms) {
  const std::string hash = sha256_hex(secret);
  std::shared_ptr<Holder> found;
  for (const std::shared_ptr<Holder>& holder : holders_) {
    const bool equal = holder->sha256.size() == hash.size() &&
                       CRYPTO_memcmp(holder->sha256.data(), hash.data(), hash.size()) == 0;
    if (equal) found = holder;
  }
  if (found && !found->ended(now_unix_ms)) {
    const std::int64_t minute = now_unix_ms - now_unix_ms % minute_ms;
    used_ = used_ || found->last_used_unix_ms != minute;
    found->last_used_unix_ms = minute;
  }
  return found;
}

TokenReply Tokens::create(const TokenRequest& request, std::int64_t now_unix_ms) {
  check_name(request.name);
  const std::optional<Role> role = role_from(request.role);
  if (!role) {
    throw ConfigError("role: '" + request.role + "' is none of read, submit, pool, admin");
  }
  if (request.expires_unix_ms != 0 && request.expires_unix_ms <= now_unix_ms) {
    throw ConfigError("expires_unix_ms: " + std::to_string(request.expires_unix_ms) +
                      " has passed; 0 is never");
  }
  if (contains(request.name)) {
    throw TokenExists("there is a token named '" + request.name +
                      "': revoke it first, or choose another name");
  }
  if (holders_.size() > tokens_max) {
    throw ConfigError("there are " + std::to_string(tokens_max) + " tokens; revoke some");
  }
  const std::string secret = random_secret();
  const auto holder = std::make_shared<Holder>(Holder{.name = request.name,
                                                      .role = *role,
                                                      .sha256 = sha256_hex(secret),
                                                      .created_unix_ms = now_unix_ms,
                                                      .last_used_unix_ms = 0,
                                                      .expires_unix_ms = request.expires_unix_ms});
  holders_.push_back(holder);
  try {
    save();
  } catch (...) {
    holders_.pop_back();
    throw;
  }
  return {secret, info_of(*holder)};
}

TokenList Tokens::list() const {
  TokenList list;
  for (const auto& holder : holders_) list.tokens.push_back(info_of(*holder));
  std::sort(list.tokens.begin(), list.tokens.end(),
            [](const TokenInfo& a, const TokenInfo& b) { return a.name < b.name; });
  return list;
}

bool Tokens::contains(std::string_view name) const {
  return std::any_of(holders_.begin(), holders_.end(),
                     [&](const auto& holder) { return holder->name == name; });
}

TokenInfo Tokens::revoke(std::string_view name) {
  if (name == holders_.front()->name) {
    throw ConfigError("'" + std::string(name) +
                      "' is the token of the data folder: to get another one, end the daemon, "
                      "delete the file 'token' there and start it again");
  }
  const auto at = std::find_if(holders_.begin(), holders_.end(),
                               [&](const auto& holder) { return holder->name == name; });
  if (at == holders_.end()) throw ConfigError("there is no token '" + std::string(name) + "'");
  const std::shared_ptr<Holder> holder = *at;
  const auto place = holders_.erase(at);
  try {
    save();
  } catch (...) {
    holders_.insert(place, holder);
    throw;
  }
  holder->revoked = true;
  return info_of(*holder);
}

void Tokens::save_uses(std::int64_t now_unix_ms, bool at_once) {
  if (!used_ || !several() || (!at_once && now_unix_ms - saved_unix_ms_ < minute_ms)) return;
  saved_unix_ms_ = now_unix_ms;
  try {
    save();
    used_ = false;
  } catch (const Error& error) {
    log_warning("when tokens were used last cannot be written", {{"error", error.what()}});
  }
}

}  // namespace pipewright
