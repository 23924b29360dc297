#include "client/cli/offline/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "core/schedule/csv.hpp"
#include "core/sim/metrics.hpp"
#include "proto/codec/tensor_wire.hpp"

namespace pipewright::cli {

namespace {

constexpr std::int64_t observations_by_default = 200;
constexpr std::int64_t curve_line_bytes = 35;   // "123456,123456,0.12345678901234567"
constexpr std::int64_t theory_line_bytes = 95;  // two counts, four values
constexpr std::int64_t summary_bytes = 4096;    // and about 300 more per stage
constexpr std::int64_t times_bytes = 14;  // that a line of timeline.csv adds to one of schedule.csv

/// Counts of the part of a schedule that was walked.
struct Walk {
  explicit Walk(const ScheduleHeader& header) : metrics(header) {}

  void add(const TimelineEntry& entry) {
    metrics.add(entry);
    const Action& action = entry.action;
    const bool to_next =
        action.kind == ActionKind::forward && action.stage.value + 1 < metrics.header().stages;
    const bool to_previous =
        action.kind == ActionKind::backward && action.stage > action.backward_to;
    if (to_next || to_previous) ++messages;
    line.clear();
    append_csv(line, action);
    text_bytes += 2 * static_cast<std::int64_t>(line.size()) + times_bytes;
  }

  TimelineMetrics metrics;
  std::int64_t messages = 0;
  std::int64_t text_bytes = 0;
  std::string line;
};

std::int64_t observations_of(const JobConfig& job, const Estimate& e) {
  if (job.observe_by == ObserveBy::never) return 0;
  const std::int64_t span = job.observe_by == ObserveBy::updates ? e.updates : e.makespan_ticks;
  const std::int64_t every = job.observe_by == ObserveBy::evenly
                                 ? std::max<std::int64_t>(1, span / observations_by_default)
                                 : job.observe_every;
  return 1 + (span + every - 1) / every;
}

/// What the executor of a stage keeps: the weights and a gradient, stashed versions, activations
/// in and out of every microbatch in its stash, and its part of the full objective.
std::int64_t stage_bytes(const Estimate& e, const ScheduleHeader& header,
                         const StageVersions& facts, std::size_t stage) {
  const std::int64_t block =
      e.shape.block_parameters[stage] * static_cast<std::int64_t>(size_of(e.shape.dtype));
  const std::int64_t copies = header.replicas + 1 + facts.stash_versions_max;
  return copies * block + facts.stash_microbatches_max * 2 * e.shape.activation_bytes +
         e.shape.evaluation_bytes + e.shape.data_bytes / header.stages;
}

}  // namespace

Estimate estimate(const JobConfig& job, FileSource& files, std::int64_t actions_max) {
  Estimate e;
  e.shape = job.load_objective(files)->shape();
  const JobConfig sized = job.sized(e.shape);
  Simulator simulator(sized.make_schedule(e.shape.batches), sized.cost, sized.link);
  const ScheduleHeader header = simulator.header();
  Walk walk(header);
  auto entry = simulator.next();
  for (; entry && walk.metrics.actions() < actions_max; entry = simulator.next()) walk.add(*entry);

  const double done = static_cast<double>(std::max<std::int64_t>(1, walk.metrics.microbatches()));
  const double factor =
      entry ? std::max(1.0, static_cast<double>(header.microbatches) / done) : 1.0;
  const auto whole = [&](std::int64_t part) {
    return std::llround(static_cast<double>(part) * factor);
  };
  e.stages = header.stages;
  e.extrapolated = entry.has_value();
  e.makespan_ticks = whole(walk.metrics.makespan().value);
  e.actions = whole(walk.metrics.actions());
  e.updates = whole(walk.metrics.versions().updates().value);
  e.microbatches = whole(walk.metrics.microbatches());
  e.observations = observations_of(job, e);

  const auto header_bytes = static_cast<std::int64_t>(tensor_header_bytes);
  e.messages = whole(walk.messages);
  e.evaluation_messages = e.observations * (header.rows() - 1);
  // Back again, for the gradient.
  if (job.theory) e.evaluation_messages += e.observations * (header.stages - 1);
  e.message_bytes = e.messages * (header_bytes + e.shape.activation_bytes) +
                    e.evaluation_messages * (header_bytes + e.shape.evaluation_bytes);
  for (std::size_t s = 0; s < static_cast<std::size_t>(header.stages); ++s) {
    const std::int64_t bytes = stage_bytes(e, header, walk.metrics.versions().stages()[s], s);
    e.memory_bytes += bytes;
    e.memory_bytes_max_of_a_stage = std::max(e.memory_bytes_max_of_a_stage, bytes);
  }
  const std::int64_t theory_bytes = job.theory ? e.observations * theory_line_bytes : 0;
  e.disk_bytes = whole(walk.text_bytes) + (e.observations + e.microbatches) * curve_line_bytes +
                 theory_bytes +
                 e.shape.parameters() * static_cast<std::int64_t>(size_of(e.shape.dtype)) +
                 summary_bytes + header.stages * 300;
  return e;
}

Value Estimate::to_value() const {
  Value value = Value::map();
  value.set("stages", stages);
  value.set("examples", shape.examples);
  value.set("batches", shape.batches);
  value.set("parameters", shape.parameters());
  value.set("extrapolated", extrapolated);
  value.set("makespan_ticks", makespan_ticks);
  value.set("actions", actions);
  value.set("updates", updates);
  value.set("microbatches", microbatches);
  value.set("observations", observations);
  value.set("messages", messages);
  value.set("evaluation_messages", evaluation_messages);
  value.set("message_bytes", message_bytes);
  value.set("memory_bytes", memory_bytes);
  value.set("memory_bytes_max_of_a_stage", memory_bytes_max_of_a_stage);
  value.set("disk_bytes", disk_bytes);
  return value;
}

}  // namespace pipewright::cli
