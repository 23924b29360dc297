#include "core/train/result_files.hpp"

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/npy.hpp"
#include "core/schedule/csv.hpp"

namespace pipewright {

namespace {

constexpr const char* timeline_head = "stage,kind,microbatch,replica,start,end\n";

[[noreturn]] void cannot_write(const std::string& path) {
  throw DataError(path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

ResultFiles::ResultFiles(std::string folder)
    : folder_(std::move(folder)),
      objective_(open("objective.csv")),
      loss_(open("last_stage_loss.csv")),
      schedule_(open("schedule.csv")),
      timeline_(open("timeline.csv")) {
  objective_.pending = "tick,updates,value\n";
  loss_.pending = "tick,microbatch,value\n";
  timeline_.pending = timeline_head;
  // Those of an earlier run must not stand beside this one's curve.
  for (const char* name : {"/planned_timeline.csv", "/validation.csv", "/theory.csv"}) {
    std::remove((folder_ + name).c_str());
  }
}

const std::vector<std::string>& ResultFiles::names() {
  static const std::vector<std::string> names{
      "objective.csv", "last_stage_loss.csv",  "schedule.csv",
      "timeline.csv",  "planned_timeline.csv", "validation.csv",
      "theory.csv",    "weights.npy",          "summary.json"};
  return names;
}

ResultFiles::TextFile ResultFiles::open(const char* name) {
  TextFile file;
  file.path = folder_ + "/" + name;
  file.stream.open(file.path, std::ios::binary | std::ios::trunc);
  if (!file.stream) cannot_write(file.path);
  return file;
}

void ResultFiles::flush_if_full(TextFile& file) {
  static constexpr std::size_t pending_max = std::size_t{1} << 16;
  if (file.pending.size() < pending_max) return;
  if (!file.stream.write(file.pending.data(), static_cast<std::streamsize>(file.pending.size()))) {
    cannot_write(file.path);
  }
  file.pending.clear();
}

void ResultFiles::close(TextFile& file) {
  file.stream.write(file.pending.data(), static_cast<std::streamsize>(file.pending.size()));
  file.pending.clear();
  file.stream.close();
  if (!file.stream) cannot_write(file.path);
}

void ResultFiles::begin(const ScheduleHeader& header) {
  schedule_.pending = csv_header(header) + "\n";
}

void ResultFiles::action(const TimelineEntry& entry) {
  append_csv(schedule_.pending, entry.action);
  flush_if_full(schedule_);
  append_timeline(timeline_, entry);
}

void ResultFiles::planned(const TimelineEntry& entry) {
  if (!planned_) {
    planned_ = open("planned_timeline.csv");
    planned_->pending = timeline_head;
  }
  append_timeline(*planned_, entry);
}

void ResultFiles::append_timeline(TextFile& file, const TimelineEntry& entry) {
  std::string& out = file.pending;
  append_number(out, static_cast<std::int64_t>(entry.action.stage.value));
  out += ',';
  out += name_of(entry.action.kind);
  for (const std::int64_t number :
       {entry.action.microbatch.value, static_cast<std::int64_t>(entry.action.replica.value),
        entry.start.value, entry.end.value}) {
    out += ',';
    append_number(out, number);
  }
  out += '\n';
  flush_if_full(file);
}

void ResultFiles::loss(Tick tick, Microbatch microbatch, double value) {
  append_point(loss_, tick, microbatch.value, value);
}

void ResultFiles::objective(Tick tick, UpdateCount updates, double value) {
  append_point(objective_, tick, updates.value, value);
}

void ResultFiles::validation(Tick tick, UpdateCount updates, double value) {
  if (!validation_) {
    validation_ = open("validation.csv");
    validation_->pending = "tick,updates,value\n";
  }
  append_point(*validation_, tick, updates.value, value);
}

void ResultFiles::append_point(TextFile& file, Tick tick, std::int64_t count, double value) {
  append_number(file.pending, tick.value);
  file.pending += ',';
  append_number(file.pending, count);
  file.pending += ',';
  append_number(file.pending, value);
  file.pending += '\n';
  flush_if_full(file);
}

void ResultFiles::theory(const TheoryRow& row) {
  if (!theory_) {
    theory_ = open("theory.csv");
    theory_->pending = "tick,updates,gradient_norm_sq,gradient_norm_sq_mean,bound,gap\n";
  }
  std::string& out = theory_->pending;
  append_number(out, row.tick.value);
  out += ',';
  append_number(out, row.updates.value);
  for (const std::optional<double> value :
       {std::optional(row.gradient_norm_sq), std::optional(row.gradient_norm_sq_mean), row.bound,
        row.gap}) {
    out += ',';
    if (value) append_number(out, *value);  // empty: unknown
  }
  out += '\n';
  flush_if_full(*theory_);
}

void ResultFiles::finish(const Value& summary, const Tensor& weights) {
  for (TextFile* file : {&objective_, &loss_, &schedule_, &timeline_}) close(*file);
  for (std::optional<TextFile>* file : {&planned_, &validation_, &theory_}) {
    if (*file) close(**file);
  }
  const std::string weights_path = folder_ + "/weights.npy";
  // Those of an earlier run must not stand beside this one's curve.
  if (weights.empty()) {
    std::remove(weights_path.c_str());
  } else {
    std::ofstream stream(weights_path, std::ios::binary | std::ios::trunc);
    const auto count = static_cast<std::size_t>(weights.elements());
    if (weights.dtype() == DType::float32) {
      write_npy(stream, std::span(weights.data<float>(), count));
    } else {
      write_npy(stream, std::span(weights.data<double>(), count));
    }
    stream.close();
    if (!stream) cannot_write(weights_path);
  }
  const std::string summary_path = folder_ + "/summary.json";
  std::ofstream stream(summary_path, std::ios::binary | std::ios::trunc);
  stream << to_json(summary) << '\n';
  stream.close();
  if (!stream) cannot_write(summary_path);
}

}  // namespace pipewright
