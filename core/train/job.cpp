#include "core/train/job.hpp"

#include <limits>
#include <optional>
#include <tuple>

#include "core/base/text.hpp"
#include "core/train/optimizer.hpp"
#include "core/train/setup.hpp"
#include "core/train/stored_job.hpp"
#include "core/train/sweep.hpp"

namespace pipewright {

const ParamSpec& job_schema() {
  static const ParamSpec schema = ParamSpec::group_of(
      "job", "",
      {ParamSpec::text_of("name", "For people; shown in lists.").or_default(""),
       ObjectiveRegistry::instance().spec("objective", "What is minimised.").needed(),
       ScheduleRegistry::instance().spec("schedule", "Who computes what in which order.").needed(),
       optimizers().spec("optimizer", "How gradients change weights.").needed(),
       ParamSpec::one_of(
           "init", "Starting weights; without it zeros (transformer: random).",
           {ParamSpec::group_of("zeros", "All zero.", {}),
            ParamSpec::group_of("random", "Drawn from the seed, as the objective likes them.", {}),
            ParamSpec::list_of("npy", "Files, one per stage.", ParamSpec::path_of("", ""))}),
       CostModel::spec().or_default(Value::map()), LinkModel::spec().or_default(Value::map()),
       ParamSpec::text_of("tick",
                          "How long a tick is (\"1ms\"), for jobs that give times in ticks and as "
                          "durations; all times of the results are then nanoseconds."),
       ParamSpec::text_of(
           "clock",
           "virtual: time is the schedule's, and repeats exactly; real: on ranks only, "
           "computing takes its time (or its cost, where that is longer) and messages are held "
           "back until their latency has passed.",
           {"virtual", "real"})
           .or_default("virtual"),
       ParamSpec::group_of(
           "observe", "What is measured on the way.",
           {ParamSpec::one_of(
                "objective",
                "When the full objective is taken; by default at about 200 evenly spaced ticks.",
                {ParamSpec::integer_of("every_ticks", "At every multiple.", "ticks").at_least(1),
                 ParamSpec::integer_of("every_updates", "After so many block updates.", "updates")
                     .at_least(1),
                 ParamSpec::group_of("never", "Only the loss of the last stage.", {})}),
            ParamSpec::boolean_of(
                "theory",
                "At each of these also ||grad f||^2, its running mean, the bound of Randomized "
                "PipeDream and the gap f - f*.")
                .or_default(false)})
           .or_default(Value::map()),
       ParamSpec::real_of("target",
                          "The summary says when the objective was first observed below it, and "
                          "what that took."),
       ParamSpec::one_of(
           "checkpoint",
           "A run that is lost, or continued by `pipewright run --resume`, goes on from its last "
           "checkpoint and gives the same numbers; without it from its beginning.",
           {ParamSpec::time_of("every",
                               "At the multiples of this time (above 0) that the storing of the "
                               "one before leaves time for."),
            ParamSpec::integer_of("every_updates", "After so many block updates.", "updates")
                .at_least(1)}),
       ParamSpec::integer_of("seed", "Every random draw comes from it.").at_least(0).or_default(0),
       ParamSpec::boolean_of("shuffle",
                             "Another order of the batches in every epoch, drawn from the seed; "
                             "without it microbatch i uses batch i mod the number of batches.")
           .or_default(false),
       ParamSpec::group_of(
           "noise", "What is added to make a problem harder (labels: see the objective).",
           {ParamSpec::real_of("gradient",
                               "Standard deviation of the normal noise on every entry of every "
                               "block gradient.")
                .at_least(0)
                .needed()}),
       ParamSpec::integer_of(
           "ranks", "MPI ranks; 0: one per stage, or all of the pool's if those are fewer.")
           .at_least(0)
           .or_default(0),
       ParamSpec::integer_of("priority",
                             "Of the jobs that wait on a cluster, those with the most start first.")
           .at_least(-100)
           .at_most(100)
           .or_default(0),
       ParamSpec::integer_of("repeats", "The same under seeds seed, seed + 1, ...", "runs")
           .at_least(1)
           .at_most(runs_max)
           .or_default(1),
       ParamSpec::any_of(
           "sweep",
           "Makes a job of many runs. {KEY: [values], ...}: every combination; {log2: [-12, -2]} "
           "stands for powers of two. [{KEY: value, ...}, ...]: a list of points. KEY is the path "
           "of a single value, as optimizer.sgd.learning_rate")});
  return schema;
}

namespace {

struct SeenTime {
  std::string key;
  std::string text;
};

/// Calls `change` with every single time of a checked tree.
template <class Change>
void for_each_time(Value& tree, Change&& change) {
  visit_params(job_schema(), tree, ParamType::time, change);
  visit_params(job_schema(), tree, ParamType::times, [&](const ParamSpec& spec, Value& value) {
    if (!value.is_list()) return change(spec, value);
    for (Value& one : value.as_list()) change(spec, one);
  });
}

/// A duration of the job's `tick`, or nothing.
std::optional<std::int64_t> tick_nanoseconds(const Value& tree) {
  const Value* tick = tree.find("tick");
  if (tick == nullptr) return std::nullopt;
  const auto nanoseconds = parse_duration_ns(tick->as_text());
  if (!nanoseconds || *nanoseconds < 1) {
    throw ParamError(
        "tick", "expected a duration of at least 1ns (\"1ms\"), found '" + tick->as_text() + "'");
  }
  return nanoseconds;
}

/// `ticks` times `tick` nanoseconds, unless that is more than a run can have.
std::int64_t to_nanoseconds(std::int64_t ticks, std::int64_t tick, const std::string& key) {
  if (ticks > std::numeric_limits<std::int64_t>::max() / 4 / tick) {
    throw ParamError(
        "tick", "makes '" + key + "' of " + std::to_string(ticks) + " ticks longer than 73 years");
  }
  return ticks * tick;
}

}  // namespace

// Which of the two a tick would be is not known. Zero is zero in both.
void check_units(Value& tree) {
  if (tick_nanoseconds(tree)) return;
  std::optional<SeenTime> ticks;
  std::optional<SeenTime> duration;
  const auto see = [&](const ParamSpec& spec, const Value& value) {
    if (value.is_integer() && value.as_integer() != 0) {
      ticks = SeenTime{spec.name, std::to_string(value.as_integer())};
    } else if (value.is_text() && parse_duration_ns(value.as_text()) != 0) {
      duration = SeenTime{spec.name, value.as_text()};
    }
  };
  for_each_time(tree, see);
  visit_params(job_schema(), tree, ParamType::bandwidth, [&](const ParamSpec& spec, Value& value) {
    duration = SeenTime{spec.name, value.as_text()};
  });
  const Value* clock = tree.find("clock");
  if (ticks && clock != nullptr && clock->as_text() == "real") {
    throw ParamError("clock", "real time has no ticks: '" + ticks->key + "' is " + ticks->text +
                                  " ticks; give the job's times as durations (\"250us\")");
  }
  if (ticks && duration) {
    throw ParamError("", "times are mixed: '" + ticks->key + "' is " + ticks->text +
                             " ticks and '" + duration->key + "' is " + duration->text +
                             "; give all of a job's times as ticks or all as durations (the cost "
                             "of F and B is 1 tick unless given), or say what a tick is: "
                             "`tick: 1ms`");
  }
}

namespace {

/// Runs `check` and puts `prefix` in front of the path of a ParamError.
template <class Function>
auto at_path(const std::string& prefix, Function&& check) {
  try {
    return check();
  } catch (const ParamError& error) {
    throw ParamError(error.path().empty() ? prefix : prefix + "." + error.path(), error.message());
  }
}

const std::pair<std::string, Value>& only_entry(const Value& one_of) {
  return one_of.as_map().front();
}

bool reads_file(const JobConfig& config) {
  bool reads = false;
  Value schedule = Value(Value::Map{{config.schedule_kind, config.schedule}});
  visit_params(*find_spec(job_schema(), "schedule"), schedule, ParamType::path,
               [&](const ParamSpec&, Value&) { reads = true; });
  return reads;
}

void check_one(const Value& job) {
  Value tree = job;
  check_units(tree);
  const JobConfig config = JobConfig::from(job);
  if (decides_online(config) && !config.is_real) {
    throw ParamError("schedule." + config.schedule_kind + ".order",
                     "`online` needs `clock: real`: on the virtual clock a stage does what the "
                     "plan's rule says");
  }
  // Making a schedule draws little before its first action, so this finds faults that only the
  // schedule knows of. One from a file is read, which takes as long as the file wants.
  if (!reads_file(config)) config.make_schedule(0);
  if (config.checkpoint && config.is_real) {
    throw ParamError("checkpoint",
                     "needs `clock: virtual`: what was measured on the real clock cannot be "
                     "measured again, and at no tick of it do all stages stand between the same "
                     "actions");
  }
  at_path("optimizer." + config.optimizer_kind,
          [&] { return optimizers().at(config.optimizer_kind).make(config.optimizer); });
  if (const Value* files = config.init.find("npy")) {
    const int stages = config.schedule_header().stages;
    if (files->as_list().size() != static_cast<std::size_t>(stages)) {
      throw ParamError("init.npy", "names " + std::to_string(files->as_list().size()) +
                                       " files for " + std::to_string(stages) + " stages");
    }
  }
}

/// On the real clock what has no cost takes the time that it takes: it is stretched to a
/// nanosecond.
Value with_real_costs(Value tree) {
  const Value* clock = tree.find("clock");
  if (clock == nullptr || !clock->is_text() || clock->as_text() != "real") return tree;
  const Value* cost = tree.find("cost");
  if (cost != nullptr && !cost->is_map()) return tree;
  for (const char* path : {"cost.forward", "cost.backward"}) {
    if (find_path(tree, path) == nullptr) set_path(tree, path, "1ns");
  }
  return tree;
}

}  // namespace

Value restored_job(const Value& stored) {
  return check_params(job_schema(), normal_sweep(with_real_costs(stored)), "");
}

Value check_job(const Value& tree) {
  Value checked = restored_job(tree);
  if (checked.at("name").as_text().size() > 200) {
    throw ParamError("name", "has " + std::to_string(checked.at("name").as_text().size()) +
                                 " bytes; at most 200 are allowed");
  }
  check_points(checked, check_one);
  return checked;
}

namespace {

/// The tree with every time as a duration, if the job says how long a tick is.
Value translated(Value tree, std::optional<std::int64_t> tick) {
  if (!tick) return tree;
  for_each_time(tree, [&](const ParamSpec& spec, Value& time) {
    if (!time.is_integer()) return;
    time = std::to_string(to_nanoseconds(time.as_integer(), *tick, spec.name)) + "ns";
  });
  return tree;
}

}  // namespace

JobConfig JobConfig::from(const Value& given) {
  for (const char* key : {"sweep", "repeats"}) {
    if (const Value* many = given.find(key); many != nullptr && *many != Value(1)) {
      throw ParamError(key, "makes many runs of this job, and one is needed here");
    }
  }
  JobConfig config;
  config.tree = given;
  const auto tick = tick_nanoseconds(given);
  const Value checked = translated(given, tick);
  config.name = checked.at("name").as_text();
  std::tie(config.objective_kind, config.objective) = only_entry(checked.at("objective"));
  std::tie(config.schedule_kind, config.schedule) = only_entry(checked.at("schedule"));
  std::tie(config.optimizer_kind, config.optimizer) = only_entry(checked.at("optimizer"));
  if (const Value* init = checked.find("init")) config.init = *init;
  config.seed = static_cast<std::uint64_t>(checked.at("seed").as_integer());
  config.shuffle = checked.at("shuffle").as_bool();
  if (const Value* noise = checked.find("noise")) {
    config.gradient_noise = noise->at("gradient").as_real();
  }
  config.ranks = static_cast<int>(checked.at("ranks").as_integer());
  const int stages = config.schedule_header().stages;
  config.cost =
      at_path("cost", [&] { return CostModel::from(checked.at("cost"), stages, config.seed); });
  config.link =
      at_path("link", [&] { return LinkModel::from(checked.at("link"), stages, config.seed); });
  // A plan can be made without an objective.
  const ObjectiveKind* objective = ObjectiveRegistry::instance().find(config.objective_kind);
  if (objective != nullptr && objective->default_observe == DefaultObserve::never) {
    config.observe_by = ObserveBy::never;
  }
  config.is_real = checked.at("clock").as_text() == "real";
  if (const Value* observe = checked.at("observe").find("objective")) {
    const auto& [by, parameter] = only_entry(*observe);
    config.observe_by = by == "every_ticks"     ? ObserveBy::ticks
                        : by == "every_updates" ? ObserveBy::updates
                                                : ObserveBy::never;
    if (config.observe_by != ObserveBy::never) config.observe_every = parameter.as_integer();
    if (config.observe_by == ObserveBy::ticks && tick) {
      config.observe_every = to_nanoseconds(config.observe_every, *tick, "every_ticks");
    }
  }
  if (const Value* on = checked.at("observe").find("theory")) config.theory = on->as_bool();
  if (const Value* checkpoint = checked.find("checkpoint")) {
    const auto& [by, every] = only_entry(*checkpoint);
    const bool by_updates = by == "every_updates";
    config.checkpoint = {by_updates ? every.as_integer() : tick_from(every).value, by_updates};
    if (config.checkpoint->every < 1) {
      throw ParamError("checkpoint.every", "must be above 0, found " + to_json(every, -1));
    }
  }
  if (const Value* target = checked.find("target")) config.target = target->as_real();
  if (config.observe_by == ObserveBy::never && (config.theory || config.target)) {
    throw ParamError(config.theory ? "observe.theory" : "target",
                     "needs the objective, which this job does not observe: say "
                     "`observe: {objective: {every_ticks: N}}`");
  }
  return config;
}

JobConfig JobConfig::sized(const ObjectiveShape& shape) const {
  JobConfig config = *this;
  config.link.set_payload_bytes(shape.activation_bytes);
  const Value* sync = schedule.find("sync");
  if (sync != nullptr && sync->as_text() == "ring") {
    std::vector<Tick> per_stage;
    for (const std::int64_t block : shape.block_parameters) {
      per_stage.push_back(config.link.ring_all_reduce(
          block * static_cast<std::int64_t>(size_of(shape.dtype)), schedule_header().replicas));
    }
    config.cost.set_sync(std::move(per_stage));
  }
  return config;
}

const ObjectiveKind& JobConfig::objective_entry() const {
  return ObjectiveRegistry::instance().at(objective_kind);
}

const ScheduleKind& JobConfig::schedule_entry() const {
  return ScheduleRegistry::instance().at(schedule_kind);
}

ScheduleHeader JobConfig::schedule_header() const {
  return at_path("schedule." + schedule_kind,
                 [&] { return schedule_entry().header(schedule, seed); });
}

std::unique_ptr<Objective> JobConfig::load_objective(FileSource& files) const {
  return at_path("objective." + objective_kind, [&] {
    return objective_entry().load(objective, {schedule_header().stages, files});
  });
}

std::unique_ptr<ScheduleSource> JobConfig::make_schedule(std::int64_t batches) const {
  return at_path("schedule." + schedule_kind, [&] {
    return schedule_entry().make(schedule, {cost, link, seed, batches, shuffle});
  });
}

std::vector<KnownResult> JobConfig::known_results() const {
  const ScheduleKind& kind = schedule_entry();
  if (!kind.known) return {};
  return kind.known(schedule, {cost, link, seed, 0});
}

}  // namespace pipewright
