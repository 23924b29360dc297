// The files that a run leaves (DESIGN.md section 9): objective.csv, last_stage_loss.csv,
// schedule.csv, timeline.csv and (of runs that have them) planned_timeline.csv, validation.csv and
// theory.csv while it goes, weights.npy and summary.json at its end.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "core/train/run_control.hpp"

namespace pipewright {

class ResultFiles : public RunSink {
 public:
  /// Files in `folder`, which exists. Files of an earlier run there are overwritten.
  explicit ResultFiles(std::string folder);

  void begin(const ScheduleHeader& header) override;
  void action(const TimelineEntry& entry) override;
  void planned(const TimelineEntry& entry) override;
  void loss(Tick tick, Microbatch microbatch, double value) override;
  void objective(Tick tick, UpdateCount updates, double value) override;
  void validation(Tick tick, UpdateCount updates, double value) override;
  void theory(const TheoryRow& row) override;

  /// Writes what comes at the end (no weights if `weights` is empty) and closes all. Throws
  /// DataError when something could not be written (now or before).
  void finish(const Value& summary, const Tensor& weights);

  /// Every file that finish() may leave, in a fixed order.
  static const std::vector<std::string>& names();

 private:
  struct TextFile {
    std::string path;
    std::ofstream stream;
    std::string pending;
  };
  TextFile open(const char* name);
  static void append_timeline(TextFile& file, const TimelineEntry& entry);
  /// `count`: updates, or the microbatch.
  static void append_point(TextFile& file, Tick tick, std::int64_t count, double value);
  static void flush_if_full(TextFile& file);
  static void close(TextFile& file);

  std::string folder_;
  TextFile objective_, loss_, schedule_, timeline_;
  std::optional<TextFile> planned_, validation_, theory_;  // from their first rows on
};

}  // namespace pipewright
