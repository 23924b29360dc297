// Checkpoints on disk: a folder with a file for each part, `row-R-TICK` and `values-TICK`. A file
// is a line of JSON that says what it is of (format, program, job, data, checksum), then its
// bytes. It is written under another name, synced and renamed, so one that is there is whole; a
// checkpoint is one when all of its rows are there, and the values of it and of all before. Of rows
// the newest two checkpoints are kept.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/train/checkpoint.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

/// What a checkpoint can be continued with: nothing else gives the same numbers.
struct CheckpointOrigin {
  std::string program;      // version and commit; the build too of changed or unknown sources
  std::string job_sha256;   // without what does not change its numbers
  std::string data_sha256;  // of all files that were read

  /// Of this program.
  static CheckpointOrigin of(const Value& checked_job, const std::vector<HashedFile>& data);
  friend bool operator==(const CheckpointOrigin&, const CheckpointOrigin&) = default;
};

struct CheckpointPart {
  static constexpr std::int32_t values_row = -1;

  CheckpointOrigin origin;
  Tick tick;
  Tick previous;  // of values: the checkpoint before, 0 for the first
  std::int32_t rows = 1;
  std::int32_t row = values_row;
  std::vector<Tick> continued;  // the checkpoints that the run has gone on from before
  std::vector<Maker> makers;    // of the run so far
  std::string bytes;

  std::string name() const { return name_of(row, tick); }
  static std::string name_of(std::int32_t row, Tick tick);
  /// What its file holds.
  std::string encode() const;
  /// Throws DataError where that is not it.
  static CheckpointPart decode(std::string_view file);
};

/// The files of one checkpoint: all that is needed to go on from it.
struct CheckpointFiles {
  Tick tick;
  std::vector<std::string> rows;    // by row
  std::vector<std::string> values;  // from the first
  std::vector<Tick> continued;      // the run had gone on from these before
  std::vector<Maker> makers;        // of the run so far
};

class CheckpointFolder {
 public:
  /// Need not be there.
  explicit CheckpointFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  /// Throws DataError.
  void write(const std::string& name, std::string_view file) const;
  std::string read(const std::string& name) const;
  /// The next part of a file, which is there when the last one has come. Throws DataError also for
  /// a name that is none and for a part that is not the next.
  void append(const std::string& name, std::uint64_t offset, std::string_view bytes,
              bool last) const;
  CheckpointPart part(const std::string& name) const;
  /// At most `bytes_max` of a file, and whether that is its end; nothing and its end where it is
  /// not there.
  std::pair<std::string, bool> read_part(const std::string& name, std::uint64_t offset,
                                         std::size_t bytes_max) const;

  /// The newest whole checkpoint, of `origin` if one is given. Why a newer one was not taken is
  /// added to `refused`.
  std::optional<CheckpointFiles> newest(const CheckpointOrigin* origin,
                                        std::vector<std::string>& refused) const;
  /// How large the newest is in which no file is missing. Their contents are not looked at.
  std::optional<CheckpointInfo> newest_info() const;
  /// Of rows keeps those of this checkpoint and the one before.
  void keep_two(Tick newest) const;
  /// Deletes all that is of a later tick, and unfinished files.
  void drop_after(Tick tick) const;
  /// Deletes everything, and the folder if it holds nothing else.
  void clear() const;

 private:
  CheckpointFiles check(Tick tick, const CheckpointOrigin* origin) const;

  std::filesystem::path path_;
};

/// A run's checkpoints in such a folder.
class StoredCheckpoints : public CheckpointStore {
 public:
  /// `maker` makes those that are put.
  StoredCheckpoints(std::filesystem::path folder, CheckpointOrigin origin, int rows,
                    Maker maker = this_maker());

  /// Looks for one to go on from, and forgets all others. What it gives is why newer ones were
  /// refused.
  std::vector<std::string> find();

  void put_row(Tick tick, Row row, std::string_view state) override;
  void put_values(Tick tick, std::string_view values) override;
  void complete(Tick tick) override;
  std::optional<Tick> resume_from() const override;
  std::string row(Row row) const override;
  std::optional<std::string> next_values() override;

  /// All that the run has gone on from.
  const std::vector<Tick>& continued() const { return continued_; }
  /// Who made what it goes on from.
  const std::vector<Maker>& makers() const { return makers_; }
  /// The run has ended.
  void clear() const { folder_.clear(); }

 private:
  void put(Tick tick, std::int32_t row, std::string_view bytes);

  CheckpointFolder folder_;
  CheckpointOrigin origin_;
  int rows_;
  Maker maker_;
  std::vector<Maker> makers_;  // before it
  std::optional<CheckpointFiles> from_;
  std::size_t next_values_ = 0;
  Tick last_values_{0};
  std::vector<Tick> continued_;
};

}  // namespace pipewright
