#include "proto/codec/provenance.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <openssl/evp.h>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "pipewright_version.hpp"

namespace pipewright {

std::string_view program_version() {
  return PIPEWRIGHT_VERSION;
}
std::string_view program_commit() {
  return PIPEWRIGHT_COMMIT;
}

std::string cpu_type() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos &&
        trim(std::string_view(line).substr(0, colon)) == "model name") {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "unknown";
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  PW_CHECK(
      state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
      "OpenSSL has no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  PW_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  PW_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1, "SHA-256 failed");
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

namespace {

Value canonical(const Value& value) {
  if (value.is_list()) {
    Value::List list;
    for (const Value& element : value.as_list()) list.push_back(canonical(element));
    return list;
  }
  if (!value.is_map()) return value;
  Value::Map map;
  for (const auto& [key, element] : value.as_map()) {
    if (!element.is_null()) map.emplace_back(key, canonical(element));
  }
  std::sort(map.begin(), map.end(), [](auto& a, auto& b) { return a.first < b.first; });
  return map;
}

}  // namespace

std::string job_sha256(const Value& checked) {
  return sha256_hex(to_json(canonical(checked), -1));
}

std::unique_ptr<std::istream> HashingFiles::open(const std::string& path) {
  const auto same_path = [&](const HashedFile& file) { return file.path == path; };
  if (std::none_of(files_.begin(), files_.end(), same_path)) {
    const auto stream = inner_.open(path);
    Sha256 hash;
    HashedFile file{path, 0, ""};
    std::vector<char> chunk(std::size_t{1} << 18);
    while (*stream) {
      stream->read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      const auto count = static_cast<std::size_t>(stream->gcount());
      hash.update({chunk.data(), count});
      file.bytes += count;
    }
    if (stream->bad()) throw DataError(path + ": cannot be read to its end");
    file.sha256 = hash.hex();
    files_.push_back(std::move(file));
  }
  return inner_.open(path);
}

void add_provenance(Value& summary, const Value& checked_job, const std::vector<HashedFile>& data,
                    double wall_seconds) {
  summary.set("wall_seconds", wall_seconds);
  if (const Value* tokens = summary.find("tokens"); tokens != nullptr && wall_seconds > 0) {
    summary.set("tokens_per_second", static_cast<double>(tokens->as_integer()) / wall_seconds);
  }
  Value program = Value::map();
  program.set("version", program_version());
  program.set("commit", program_commit());
  summary.set("program", std::move(program));
  summary.set("cpu_type", cpu_type());
  summary.set("job_sha256", job_sha256(checked_job));
  Value files = Value::list();
  for (const HashedFile& file : data) {
    Value one = Value::map();
    one.set("path", file.path);
    one.set("bytes", static_cast<std::int64_t>(file.bytes));
    one.set("sha256", file.sha256);
    files.as_list().push_back(std::move(one));
  }
  summary.set("data", std::move(files));
  summary.set("job", checked_job);
}

}  // namespace pipewright
