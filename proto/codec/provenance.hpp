// Where a result came from: program version, commit and build, type of CPU, hashes of the job and
// of the data that it read. All of it goes into summary.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/value.hpp"
#include "core/data/file_source.hpp"
#include "proto/codec/maker.hpp"

namespace pipewright {

/// "0.1.0"
std::string_view program_version();
/// Full hash of the git commit that was built, with "-dirty" after it when files had been changed;
/// "unknown" when it was not built from a git checkout.
std::string_view program_commit();
/// The build id of the running binary (an ELF note that the linker makes of what it has linked), 40
/// hexadecimal digits; "unknown" when it has none.
std::string program_build();
/// The model name of this machine's CPU, or "unknown".
std::string cpu_type();

/// This program on this machine.
const Maker& this_maker();
/// What ranks make together: where they differ all that they are, joined by " + ".
Maker together(const std::vector<Maker>& ranks);
/// Adds one that is not there.
void add_maker(std::vector<Maker>& makers, const Maker& maker);
/// A list of {program {version, commit, build}, cpu_type}, and back. Throws DataError for what is
/// none.
Value to_value(const std::vector<Maker>& makers);
std::vector<Maker> makers_from(const Value& list);
/// For people, of a run whose attempts were made by several; empty for fewer than two.
std::string note_of(const std::vector<Maker>& makers);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  /// 64 hexadecimal digits; nothing may be added afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

/// Hash of a checked job: of its JSON text in one line with keys sorted and nulls left out.
std::string job_sha256(const Value& checked);

struct HashedFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  friend bool operator==(const HashedFile&, const HashedFile&) = default;
};

/// Hashes every file that is opened through it, once per path, before it is handed out: readers
/// seek, and need not read to the end.
class HashingFiles : public FileSource {
 public:
  explicit HashingFiles(FileSource& inner) : inner_(inner) {}
  std::unique_ptr<std::istream> open(const std::string& path) override;
  /// In the order in which they were opened first.
  const std::vector<HashedFile>& files() const { return files_; }

 private:
  FileSource& inner_;
  std::vector<HashedFile> files_;
};

/// Adds to a run's summary where it came from: wall_seconds, program {version, commit, build},
/// cpu_type, job_sha256, data [{path, bytes, sha256}], and the job itself (`pipewright replay`
/// reads it).
void add_provenance(Value& summary, const Value& checked_job, const std::vector<HashedFile>& data,
                    double wall_seconds, const Maker& maker = this_maker());
/// Adds earlier_attempts and a note to the summary of a run when others than `maker` made attempts
/// before the one that ended.
void add_earlier(Value& summary, std::vector<Maker> earlier, const Maker& maker = this_maker());

}  // namespace pipewright
