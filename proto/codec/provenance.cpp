#include "proto/codec/provenance.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <elf.h>
#include <link.h>
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

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

std::string hex_of(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += hex_digits[bytes[i] >> 4];
    text += hex_digits[bytes[i] & 15];
  }
  return text;
}

/// The build id among the notes of a segment; empty without one.
std::string build_id_of(const unsigned char* notes, std::size_t bytes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const std::size_t name = at + sizeof(note);
    const std::size_t content = name + padded(note.n_namesz);
    at = content + padded(note.n_descsz);
    if (at > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      return hex_of(notes + content, note.n_descsz);
    }
  }
  return {};
}

/// Of the first object, which is the program itself.
int take_build_id(dl_phdr_info* info, std::size_t, void* out) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    std::string& id = *static_cast<std::string*>(out);
    if (segment.p_type != PT_NOTE || !id.empty()) continue;
    const auto* notes =
        reinterpret_cast<const unsigned char*>(info->dlpi_addr + segment.p_vaddr);  // NOLINT
    id = build_id_of(notes, segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string program_build() {
  std::string id;
  dl_iterate_phdr(take_build_id, &id);
  return id.empty() ? "unknown" : id;
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

const Maker& this_maker() {
  static const Maker maker{std::string(program_version()), std::string(program_commit()),
                           program_build(), cpu_type()};
  return maker;
}

Maker together(const std::vector<Maker>& ranks) {
  Maker all;
  for (std::string Maker::*part :
       {&Maker::version, &Maker::commit, &Maker::build, &Maker::cpu_type}) {
    std::vector<std::string> different;
    for (const Maker& one : ranks) {
      if (std::find(different.begin(), different.end(), one.*part) == different.end()) {
        different.push_back(one.*part);
      }
    }
    std::sort(different.begin(), different.end());
    all.*part = join(different, " + ");
  }
  return all;
}

void add_maker(std::vector<Maker>& makers, const Maker& maker) {
  if (std::find(makers.begin(), makers.end(), maker) == makers.end()) makers.push_back(maker);
}

namespace {

void set_maker(Value& map, const Maker& maker) {
  Value program = Value::map();
  program.set("version", maker.version);
  program.set("commit", maker.commit);
  program.set("build", maker.build);
  map.set("program", std::move(program));
  map.set("cpu_type", maker.cpu_type);
}

}  // namespace

Value to_value(const std::vector<Maker>& makers) {
  Value list = Value::list();
  for (const Maker& maker : makers) {
    Value one = Value::map();
    set_maker(one, maker);
    list.as_list().push_back(std::move(one));
  }
  return list;
}

std::vector<Maker> makers_from(const Value& list) {
  std::vector<Maker> makers;
  for (const Value& one : list.as_list()) {
    const Value& program = one.at("program");
    makers.push_back({program.at("version").as_text(), program.at("commit").as_text(),
                      program.at("build").as_text(), one.at("cpu_type").as_text()});
  }
  return makers;
}

std::string note_of(const std::vector<Maker>& makers) {
  if (makers.size() < 2) return {};
  std::vector<std::string> names;
  for (const Maker& maker : makers) {
    names.push_back("pipewright " + maker.version + " (commit " + maker.commit.substr(0, 12) +
                    ", build " + maker.build.substr(0, 12) + ") on " + maker.cpu_type);
  }
  return "its attempts ran by " + join(names, " and by ") +
         ": numbers may differ in their last digits";
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
  return hex_of(digest.data(), length);
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
                    double wall_seconds, const Maker& maker) {
  summary.set("wall_seconds", wall_seconds);
  if (const Value* tokens = summary.find("tokens"); tokens != nullptr && wall_seconds > 0) {
    summary.set("tokens_per_second", static_cast<double>(tokens->as_integer()) / wall_seconds);
  }
  set_maker(summary, maker);
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

void add_earlier(Value& summary, std::vector<Maker> earlier, const Maker& maker) {
  std::erase(earlier, maker);
  if (earlier.empty()) return;
  summary.set("earlier_attempts", to_value(earlier));
  earlier.push_back(maker);
  summary.set("note", note_of(earlier));
}

}  // namespace pipewright
