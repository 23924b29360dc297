#include "worker/runtime/pool_run.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"
#include "core/train/data_roots.hpp"
#include "proto/codec/provenance.hpp"
#include "worker/runtime/common_clock.hpp"
#include "worker/runtime/rank_worker.hpp"

namespace pipewright {

namespace {

constexpr std::chrono::milliseconds points_interval{50};
constexpr std::chrono::milliseconds progress_interval{250};
constexpr std::size_t points_per_message_max = 2000;
constexpr std::size_t window_size = 256;
/// Actions that a row may have been given and not reported yet.
constexpr std::int64_t outstanding_max = 512;
constexpr std::int64_t planned_per_turn = 20'000;
/// Real clock: from when the ranks are told until tick 0, so that all have their first windows.
constexpr std::int64_t start_after_ns = 5'000'000;
/// Those of a transport: MPI's are up to 32767 at least.
constexpr std::uint32_t tags = 32'000;

JobConfig config_of(const StartRun& start) {
  DataRoots::unless_empty(start.data_roots).check(start.spec);
  return JobConfig::from(check_job(start.spec));
}

}  // namespace

void PointCollector::loss(Tick tick, Microbatch microbatch, double value) {
  points.push_back({Series::last_stage_loss, tick.value, 0, microbatch.value, value});
}

void PointCollector::objective(Tick tick, UpdateCount updates, double value) {
  points.push_back({Series::objective, tick.value, updates.value, 0, value});
}

void PointCollector::validation(Tick tick, UpdateCount updates, double value) {
  points.push_back({Series::validation, tick.value, updates.value, 0, value});
}

void PointCollector::theory(const TheoryRow& row) {
  const auto add = [&](Series series, std::optional<double> value) {
    if (value) points.push_back({series, row.tick.value, row.updates.value, 0, *value});
  };
  add(Series::gradient_norm_sq, row.gradient_norm_sq);
  add(Series::gradient_norm_sq_mean, row.gradient_norm_sq_mean);
  add(Series::bound, row.bound);
  add(Series::gap, row.gap);
}

PoolRun::PoolRun(Transport& transport, RunListener& listener, const StartRun& start,
                 std::string folder, std::uint32_t number)
    : transport_(transport),
      listener_(listener),
      run_(start.run),
      number_(number),
      config_(config_of(start)),
      folder_(std::move(folder)),
      begun_(Clock::now()),
      earlier_(start.makers),
      checkpoints_(listener, start.run, folder_ + "/checkpoint", start.checkpoint_files) {
  const auto rows = static_cast<std::size_t>(config_.schedule_header().rows());
  ranks_ = start.ranks;
  // The runs of a sweep may want fewer ranks than all of them get.
  const std::size_t wanted = config_.ranks > 0 ? static_cast<std::size_t>(config_.ranks) : rows;
  ranks_.resize(std::min({ranks_.size(), rows, wanted}));
  const RankStart message{number, start.spec, ranks_, number % tags, start.data_roots};
  const std::string bytes = encode_control(message);
  for (const std::uint32_t rank : ranks_) {
    transport_.send_control(static_cast<int>(rank), bytes);
  }
  outstanding_.resize(rows);
}

PoolRun::~PoolRun() {
  std::error_code ignored;
  if (!handed_over_) std::filesystem::remove_all(folder_, ignored);
}

void PoolRun::on(const ClockQuestion& question) {
  const std::int64_t received = steady_ns();
  transport_.send_control(static_cast<int>(question.rank),
                          encode_control(ClockAnswer{number_, question.asked_ns, received,
                                                     steady_ns(), steady_clock_name()}));
}
void PoolRun::on(RankReady ready) {
  ready_.insert(ready.rank);
  add_maker(rank_makers_, ready.maker);
  clock_error_ns_max_ = std::max(clock_error_ns_max_, ready.clock_error_ns);
  if (ready.rank == ranks_.front()) {
    shape_ = std::move(ready.shape);
    data_ = std::move(ready.data);
  }
}
void PoolRun::on(const ReportMessage& message) {
  if (stopping_) return;
  outstanding_.at(static_cast<std::size_t>(message.report.row.value)) -=
      static_cast<std::int64_t>(message.report.records.size());
  guarded([&] { control_->on_report(message.report); });
}
void PoolRun::on(FinalMessage message) {
  if (!stopping_) control_->on_final(std::move(message.final));
}
void PoolRun::on(StateChunk chunk) {
  if (stopping_) return;
  unacknowledged_.push_back(rank_of(chunk.row));
  guarded([&] { checkpoints_.on(std::move(chunk)); });
}
void PoolRun::on(const CheckpointStored&) {
  if (!stopping_) guarded([&] { checkpoints_.stored(*control_); });
}
void PoolRun::on(const CheckpointPiece& piece) {
  if (!stopping_) guarded([&] { checkpoints_.on(piece); });
}
void PoolRun::on(const RankFault& fault) {
  fail("rank " + std::to_string(fault.rank) + ": " + fault.message);
}

void PoolRun::give_back() {
  given_back_ = true;
  stop(RunOutcome::cancelled, "");
}

std::set<std::uint32_t> PoolRun::starting() const {
  std::set<std::uint32_t> ranks;
  if (stopping_) return ranks;
  for (const std::uint32_t rank : ranks_) {
    if (!ready_.contains(rank)) ranks.insert(rank);
  }
  return ranks;
}

std::set<std::uint32_t> PoolRun::leaving() const {
  std::set<std::uint32_t> ranks;
  for (const std::uint32_t rank : ranks_) {
    if (stopping_ && !idle_.contains(rank)) ranks.insert(rank);
  }
  return ranks;
}

bool PoolRun::poll() {
  if (stopping_) return false;
  bool moved = false;
  guarded([&] { moved = work(); });
  return moved;
}

void PoolRun::finish() {
  if (given_back_) return;
  Value summary;
  std::string folder;
  if (outcome_ == RunOutcome::succeeded) {
    guarded([&] {
      flush_points(true);
      summary = control_->summary();
      add_provenance(summary);
      files_->finish(summary, control_->weights());
    });
    // Unless the files could not be written, which makes it a failure.
    if (outcome_ == RunOutcome::succeeded) {
      folder = folder_;
      handed_over_ = true;
      send_progress();
    }
  }
  listener_.ended(run_, outcome_, message_, folder, summary);
}

template <class Work>
void PoolRun::guarded(Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    fail(error.what());
    // Also what goes wrong at the end, when the ranks have stopped.
    outcome_ = RunOutcome::failed;
    message_ = error.what();
  }
}

bool PoolRun::work() {
  if (!control_ && !begin()) return false;
  if (!planned_) {
    planned_ = control_->plan(planned_per_turn);
    if (planned_ && config_.is_real) start_clock();
    return true;
  }
  if (!restore()) return false;
  if (control_->divergence() || control_->finished()) {
    const auto& divergence = control_->divergence();
    stop(RunOutcome::succeeded, divergence
                                    ? "diverged at tick " + std::to_string(divergence->tick.value) +
                                          ": " + divergence->what
                                    : "");
    return true;
  }
  const bool passed_on = pass_on_checkpoints();
  const bool moved = (listener_.keeps_up() && hand_out()) || passed_on;
  const auto now = Clock::now();
  if (now - points_sent_ >= points_interval) {
    points_sent_ = now;
    flush_points(false);
  }
  if (now - progress_sent_ >= progress_interval) {
    progress_sent_ = now;
    send_progress();
  }
  return moved;
}

/// When the ranks are ready, and what the run goes on from is here.
bool PoolRun::begin() {
  if (ready_.size() < ranks_.size() || !checkpoints_.fetched()) return false;
  maker_ = together(rank_makers_);
  listener_.started(run_, maker_);
  std::filesystem::create_directories(folder_);
  files_ = std::make_unique<ResultFiles>(folder_);
  control_ = std::make_unique<RunControl>(config_, *shape_,
                                          std::vector<RunSink*>{files_.get(), &collector_});
  if (config_.checkpoint && listener_.stores_checkpoints()) open_checkpoints();
  std::vector<Maker> makers = earlier_;
  add_maker(makers, maker_);
  if (const std::string note = note_of(makers); !note.empty()) {
    listener_.log(run_, {Severity::warning, note});
  }
  return true;
}

void PoolRun::open_checkpoints() {
  const int rows = control_->header().rows();
  for (const std::string& why :
       checkpoints_.open(CheckpointOrigin::of(config_.tree, data_), rows, maker_)) {
    listener_.log(run_, {Severity::warning, why});
  }
  control_->store_checkpoints();
  StoredCheckpoints& store = checkpoints_.store();
  for (const Maker& maker : store.makers()) add_maker(earlier_, maker);
  if (const auto tick = store.resume_from()) {
    control_->resume(*tick, [&store] { return store.next_values(); });
  }
}

/// Gives the rows their states, one after the other: not all of them are in memory here at once.
/// True when that is done.
bool PoolRun::restore() {
  if (!config_.checkpoint || !listener_.stores_checkpoints()) return true;
  StoredCheckpoints& store = checkpoints_.store();
  const int rows = control_->header().rows();
  if (!store.resume_from() || restored_ == rows) return true;
  if (!transport_.sends_done()) return false;
  const Row row(restored_++);
  const std::string state = store.row(row);
  for (std::size_t at = 0; at < state.size(); at += file_chunk_bytes_max) {
    const bool last = at + file_chunk_bytes_max >= state.size();
    transport_.send_control(
        rank_of(row),
        encode_control(RestoreChunk{number_, row, state.substr(at, file_chunk_bytes_max), last}));
  }
  return restored_ == rows;
}

/// A rank sends more of a state when the listener has room for it.
bool PoolRun::pass_on_checkpoints() {
  bool moved = false;
  if (const auto part = control_->take_checkpoint()) {
    checkpoints_.put_values(*part);
    moved = true;
  }
  if (unacknowledged_.empty() || !listener_.keeps_up()) return moved;
  for (const int rank : std::exchange(unacknowledged_, {})) {
    transport_.send_control(rank, encode_control(StateTaken{number_}));
  }
  return true;
}

int PoolRun::rank_of(Row row) const {
  const int rows = control_->header().rows();
  return static_cast<int>(ranks_[static_cast<std::size_t>(
      rank_of_row(row.value, rows, static_cast<int>(ranks_.size())))]);
}

void PoolRun::start_clock() {
  // An answer's way there is at most twice the error of its clock.
  const std::int64_t start = steady_ns() + start_after_ns + 2 * clock_error_ns_max_;
  send_to_all(ClockStart{number_, start});
}

void PoolRun::send_to_all(const ControlMessage& message) {
  const std::string bytes = encode_control(message);
  for (const std::uint32_t rank : ranks_) transport_.send_control(static_cast<int>(rank), bytes);
}

bool PoolRun::hand_out() {
  bool moved = false;
  const int rows = control_->header().rows();
  for (int r = 0; r < rows; ++r) {
    std::int64_t& outstanding = outstanding_[static_cast<std::size_t>(r)];
    if (outstanding >= outstanding_max) continue;
    auto window = control_->next_window(Row(r), window_size);
    if (!window) continue;
    outstanding +=
        std::count_if(window->instructions.begin(), window->instructions.end(),
                      [](const Instruction& i) { return i.kind < Instruction::Kind::observe; });
    transport_.send_control(rank_of(Row(r)),
                            encode_control(WindowMessage{number_, std::move(*window)}));
    moved = true;
  }
  return moved;
}

void PoolRun::flush_points(bool all) {
  auto& points = collector_.points;
  std::size_t at = 0;
  while (at < points.size() && (all || listener_.keeps_up())) {
    const std::size_t end = std::min(points.size(), at + points_per_message_max);
    listener_.points(run_, collector_.sent,
                     {points.begin() + static_cast<std::ptrdiff_t>(at),
                      points.begin() + static_cast<std::ptrdiff_t>(end)});
    collector_.sent += end - at;
    at = end;
  }
  points.erase(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(at));
}

void PoolRun::send_progress() {
  const RunTotals& totals = control_->totals();
  Progress progress;
  progress.ticks_done = control_->now().value;
  // A real run takes longer than its plan.
  progress.ticks_total = std::max(totals.makespan.value, control_->now().value);
  progress.updates_done = control_->metrics().versions().updates().value;
  progress.updates_total = totals.updates;
  progress.microbatches_done = control_->metrics().microbatches();
  progress.microbatches_total = totals.microbatches;
  listener_.progress(run_, progress);
}

void PoolRun::stop(RunOutcome outcome, const std::string& message) {
  if (std::exchange(stopping_, true)) return;
  outcome_ = outcome;
  message_ = message;
  send_to_all(RankStop{number_});
}

void PoolRun::add_provenance(Value& summary) {
  summary.set("ranks", static_cast<std::int64_t>(ranks_.size()));
  if (config_.is_real) summary.set("clock_error_ns_max", clock_error_ns_max_);
  summary.set("attempt", static_cast<std::int64_t>(run_.attempt));
  if (config_.checkpoint && listener_.stores_checkpoints()) {
    Value::List ticks;
    for (const Tick tick : checkpoints_.store().continued()) ticks.emplace_back(tick.value);
    if (!ticks.empty()) summary.set("continued_from_ticks", std::move(ticks));
  }
  const std::chrono::duration<double> wall = Clock::now() - begun_;
  pipewright::add_provenance(summary, config_.tree, data_, wall.count(), maker_);
  add_earlier(summary, earlier_, maker_);
}

}  // namespace pipewright
