#include "worker/runtime/rank_worker.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <utility>
#include <variant>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/train/data_roots.hpp"
#include "core/train/setup.hpp"
#include "proto/codec/provenance.hpp"
#include "worker/runtime/common_clock.hpp"

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

/// Rows report at least this often while they have something to say, so that curves are live.
constexpr std::chrono::milliseconds report_interval{20};
constexpr std::size_t report_records_max = 256;
/// How long a rank works before it looks at its other duties. In real time a message that has come
/// for another row is one.
constexpr int steps_per_turn = 64;
/// What a row makes goes out, and what has come in is seen, after so long at the latest (or one
/// action): long actions of several rows take turns, so that the neighbours of all have work.
constexpr std::chrono::microseconds turn_of_row_max{50};
constexpr int steps_per_turn_real = 1;

}  // namespace

/// The rows of one run on this rank.
class RankRun : public Outbox {
 public:
  RankRun(Transport& world, const RankStart& start,
          std::function<void(const ControlMessage&)> report)
      : number_(start.run), report_(std::move(report)) {
    const std::vector<int> ranks(start.ranks.begin(), start.ranks.end());
    transport_ = world.open_run(ranks, static_cast<int>(start.communicator_tag));
  }

  std::uint32_t number() const { return number_; }

  bool stopping = false;      // failed, or told to stop: executes no more
  bool told_to_stop = false;  // and waits for the others to close

  /// Reads the data and makes the rows. Throws what a user's mistake throws. Then the rank is
  /// ready, on a real clock when it knows the coordinator's time.
  void prepare(const RankStart& start, std::uint32_t world_rank, ObjectiveCache& objectives) {
    DataRoots::unless_empty(start.data_roots).check(start.spec);
    const JobConfig config = JobConfig::from(check_job(start.spec));
    const Objective& objective = objectives.get(config);
    DiskFiles disk;
    HashingFiles files(disk);
    if (config.is_real) {
      time_ = std::make_unique<RealClock>([this] { return now(); });
      precise_sleeps_.emplace();
    } else {
      time_ = std::make_unique<VirtualClock>();
    }
    total_rows_ = config.schedule_header().rows();
    for (int r = 0; r < total_rows_; ++r) {
      if (rank_of_row(r, total_rows_, transport_->size()) != transport_->rank()) continue;
      if (rows_.empty()) first_row_ = r;
      rows_.push_back(
          {std::make_unique<RowRunner>(make_row(config, objective, files, Row(r)), *this, *time_)});
    }
    ready_.run = number_;
    ready_.rank = world_rank;
    ready_.maker = this_maker();
    // The coordinator takes these from the run's first rank.
    ready_.shape = transport_->rank() == 0 ? shape_for(config, objective) : objective.shape();
    ready_.data = objectives.files();
    ready_.data.insert(ready_.data.end(), files.files().begin(), files.files().end());
    objectives.done();
    last_report_ = Clock::now();
    ask_or_be_ready();
  }

  void on_answer(const ClockAnswer& answer) {
    offset_.add({answer.asked_ns, answer.received_ns, answer.answered_ns, steady_ns()},
                !answer.clock.empty() && answer.clock == steady_clock_name());
    ask_or_be_ready();
  }

  void start_clock(std::int64_t start_ns) { start_ns_ = start_ns; }

  std::optional<std::chrono::nanoseconds> due_in() const {
    if (!start_ns_) return std::nullopt;
    std::optional<Tick> first;
    for (const Hosted& hosted : rows_) {
      const auto wakes = hosted.runner->wakes_at();
      if (wakes && (!first || *wakes < *first)) first = wakes;
    }
    if (!first) return std::nullopt;
    return std::chrono::nanoseconds(std::max<std::int64_t>(0, (*first - now()).value));
  }

  /// A row's state comes before its first window.
  void restore(const RestoreChunk& chunk) {
    restoring_ += chunk.data;
    if (!chunk.last) return;
    Hosted* hosted = find(chunk.row);
    if (hosted == nullptr) {
      throw ProtocolError("a state for row " + std::to_string(chunk.row.value) +
                          ", which this rank does not host");
    }
    hosted->runner->restore(std::exchange(restoring_, {}));
  }

  void on_state_taken() { state_is_under_way_ = false; }

  void append(const Window& window) {
    if (Hosted* hosted = find(window.row)) {
      hosted->runner->append(window);
      return;
    }
    throw ProtocolError("a window for row " + std::to_string(window.row.value) +
                        ", which this rank does not host");
  }

  void send(Message message) override {
    if (Hosted* hosted = find(message.to_row)) {
      delivered_ = true;
      hosted->runner->deliver(std::move(message));
      return;
    }
    transport_->send(rank_of_row(message.to_row.value, total_rows_, transport_->size()),
                     std::move(message));
  }

  bool poll() {
    bool moved = false;
    delivered_ = false;
    while (auto message = transport_->poll()) {
      moved = true;
      Hosted* hosted = find(message->to_row);
      if (hosted == nullptr) {
        throw ProtocolError("a message for row " + std::to_string(message->to_row.value) +
                            ", which this rank does not host");
      }
      hosted->runner->deliver(std::move(*message));
    }
    const bool report_is_due = Clock::now() - last_report_ >= report_interval;
    for (Hosted& hosted : rows_) {
      RowRunner::Step step = RowRunner::Step::ran;
      const int steps = time_->is_real() ? steps_per_turn_real : steps_per_turn;
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < steps && step == RowRunner::Step::ran; ++i) {
        step = hosted.runner->step();
        moved = moved || step == RowRunner::Step::ran;
        if (Clock::now() - begin > turn_of_row_max) break;
      }
      send_report(hosted, step, report_is_due);
      if (auto checkpoint = hosted.runner->take_checkpoint()) {
        states_.push_back({hosted.runner->row(), std::move(*checkpoint), 0});
      }
    }
    send_state();
    if (report_is_due) last_report_ = Clock::now();
    // What a row does for observations is no step, but another row may wait for it.
    return moved || delivered_;
  }

  bool is_real() const { return time_ && time_->is_real(); }
  void begin_close() { transport_->begin_close(); }
  bool closed() { return transport_->closed(); }

 private:
  struct Hosted {
    std::unique_ptr<RowRunner> runner;
    bool final_sent = false;
  };
  /// On its way to the coordinator.
  struct State {
    Row row;
    RowCheckpoint checkpoint;
    std::size_t sent = 0;
  };

  /// Of a real run: nanoseconds since its common start; before all time while that is not known.
  Tick now() const {
    if (!start_ns_) return Tick(std::numeric_limits<std::int64_t>::min());
    return Tick(steady_ns() + offset_.offset_ns() - *start_ns_);
  }

  void ask_or_be_ready() {
    if (time_->is_real() && !offset_.is_settled()) {
      report_(ClockQuestion{number_, ready_.rank, steady_ns()});
      return;
    }
    ready_.clock_error_ns = offset_.error_ns();
    report_(std::exchange(ready_, {}));
  }

  Hosted* find(Row row) {
    const int at = row.value - first_row_;
    if (at < 0 || at >= static_cast<int>(rows_.size())) return nullptr;
    return &rows_[static_cast<std::size_t>(at)];
  }

  /// The next part of what rows have to store; one at a time is under way.
  void send_state() {
    if (states_.empty() || state_is_under_way_) return;
    State& state = states_.front();
    const std::string& bytes = state.checkpoint.bytes;
    StateChunk chunk{number_, state.row, state.checkpoint.tick,
                     bytes.substr(state.sent, file_chunk_bytes_max), false};
    state.sent += chunk.data.size();
    chunk.last = state.sent == bytes.size();
    state_is_under_way_ = true;
    report_(chunk);
    if (chunk.last) states_.pop_front();
  }

  void send_report(Hosted& hosted, RowRunner::Step step, bool is_due) {
    const bool needs_more = step == RowRunner::Step::starved || step == RowRunner::Step::finished;
    if (hosted.runner->has_report() &&
        (is_due || needs_more || hosted.runner->records() >= report_records_max)) {
      report_(ReportMessage{number_, hosted.runner->take_report()});
    }
    if (step == RowRunner::Step::finished && !std::exchange(hosted.final_sent, true)) {
      report_(FinalMessage{number_, hosted.runner->take_final()});
    }
  }

  std::uint32_t number_;
  std::function<void(const ControlMessage&)> report_;
  std::unique_ptr<RunTransport> transport_;
  std::unique_ptr<RowClock> time_;
  std::optional<PreciseSleeps> precise_sleeps_;  // real clock
  ClockOffset offset_;
  std::optional<std::int64_t> start_ns_;  // tick 0 in the coordinator's time
  RankReady ready_;                       // until it has been said
  int total_rows_ = 0;
  int first_row_ = 0;
  std::vector<Hosted> rows_;
  Clock::time_point last_report_;
  std::deque<State> states_;
  bool state_is_under_way_ = false;
  std::string restoring_;   // what has come of a row's state
  bool delivered_ = false;  // from row to row of this rank, in this turn
};

RankWorker::RankWorker(Transport& transport) : transport_(transport) {}
RankWorker::~RankWorker() = default;

void RankWorker::report(const ControlMessage& message) {
  transport_.send_control(0, encode_control(message));
}

void RankWorker::start(RankStart start) {
  PW_CHECK(!run_,
           "rank " << transport_.rank() << " is given run " << start.run << " while it has one");
  run_ = std::make_unique<RankRun>(transport_, start,
                                   [this](const ControlMessage& message) { report(message); });
  run_->prepare(start, static_cast<std::uint32_t>(transport_.rank()), objectives_);
}

std::optional<std::chrono::nanoseconds> RankWorker::due_in() const {
  return run_ && !run_->stopping ? run_->due_in() : std::nullopt;
}

bool RankWorker::in_real_time() const {
  return run_ && run_->is_real();
}

void RankWorker::on_control(ControlMessage message) {
  if (std::holds_alternative<RankShutDown>(message)) {
    shut_down_ = true;
  } else if (run_ && run_->told_to_stop) {
    later_.push_back(std::move(message));
  } else {
    obey(std::move(message));
  }
}

void RankWorker::obey(ControlMessage message) {
  try {
    if (auto* begin = std::get_if<RankStart>(&message)) {
      start(std::move(*begin));
    } else if (auto* window = std::get_if<WindowMessage>(&message)) {
      // One that was under way when the run failed here.
      if (run_ && !run_->stopping) run_->append(window->window);
    } else if (auto* answer = std::get_if<ClockAnswer>(&message)) {
      // Not one to the run before.
      const bool is_mine = run_ && !run_->stopping && run_->number() == answer->run;
      if (is_mine) run_->on_answer(*answer);
    } else if (auto* taken = std::get_if<StateTaken>(&message)) {
      if (run_ && run_->number() == taken->run) run_->on_state_taken();
    } else if (auto* state = std::get_if<RestoreChunk>(&message)) {
      if (run_ && !run_->stopping) run_->restore(*state);
    } else if (auto* begin_at = std::get_if<ClockStart>(&message)) {
      if (run_ && !run_->stopping) run_->start_clock(begin_at->start_ns);
    } else if (std::holds_alternative<RankStop>(message)) {
      PW_CHECK(run_,
               "rank " << transport_.rank() << " is told to stop a run that it does not have");
      run_->stopping = true;
      run_->told_to_stop = true;
      run_->begin_close();
    } else {
      throw ProtocolError("a control message that only the coordinator can use");
    }
  } catch (const std::exception& error) {
    fail(error);
  }
}

void RankWorker::fail(const std::exception& error) {
  PW_CHECK(run_, "rank " << transport_.rank() << " fails without a run: " << error.what());
  if (std::exchange(run_->stopping, true)) return;
  // Out of memory is told as such: the job asks for more than this machine has.
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  report(RankFault{run_->number(), static_cast<std::uint32_t>(transport_.rank()),
                   no_memory ? "out of memory" : error.what()});
}

bool RankWorker::poll() {
  if (!run_) return false;
  if (run_->told_to_stop) {
    if (!run_->closed()) return false;
    const RankIdle idle{run_->number(), static_cast<std::uint32_t>(transport_.rank())};
    run_.reset();
    report(idle);
    while (!later_.empty() && !(run_ && run_->told_to_stop)) {
      ControlMessage next = std::move(later_.front());
      later_.pop_front();
      obey(std::move(next));
    }
    return true;
  }
  if (run_->stopping) return false;
  try {
    return run_->poll();
  } catch (const std::exception& error) {
    fail(error);
    return true;
  }
}

}  // namespace pipewright
