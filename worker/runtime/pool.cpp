#include "worker/runtime/pool.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/train/result_files.hpp"
#include "worker/runtime/backoff.hpp"
#include "worker/runtime/coordinator.hpp"
#include "worker/runtime/link_listener.hpp"
#include "worker/runtime/rank_watch.hpp"
#include "worker/runtime/rank_worker.hpp"

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

// A rank in a run waits for messages that come within microseconds, an idle one for a person.
constexpr std::chrono::microseconds sleep_in_run_max{100};
constexpr std::chrono::microseconds sleep_idle_max{1000};
constexpr std::chrono::microseconds sleep_in_real_run{40};
/// How long ranks may take to leave their runs (one may be in a long computation).
constexpr std::chrono::milliseconds leave_max{30'000};
/// The same when a launcher is about to kill them: mpirun does so a second after its SIGTERM.
constexpr std::chrono::milliseconds leave_in_hurry_max{700};
/// How often a rank says that it is alive within the time that it may be silent.
constexpr int alive_per_silence = 5;
/// From when MPI has begun until all ranks have said who they are.
constexpr std::chrono::seconds hello_max{60};
/// A row that waits for a time is waited for awake from so long before: sleeps end late by a
/// little.
constexpr std::chrono::microseconds awake_before{20};

bool is_for_coordinator(const ControlMessage& message) {
  return std::holds_alternative<RankReady>(message) ||
         std::holds_alternative<ClockQuestion>(message) ||
         std::holds_alternative<ReportMessage>(message) ||
         std::holds_alternative<FinalMessage>(message) ||
         std::holds_alternative<StateChunk>(message) ||
         std::holds_alternative<RankFault>(message) || std::holds_alternative<RankIdle>(message);
}

/// What a rank looks at in each of its turns: control messages, then its rows.
struct Duties {
  Transport& transport;
  RankWorker& worker;
  // Of rank 0.
  Coordinator* coordinator = nullptr;
  RankWatch* watch = nullptr;
  std::atomic<bool>* stop = nullptr;  // becomes true when another rank has had a signal
  // Of the others.
  CoordinatorWatch* above = nullptr;

  bool take_turn() const {
    bool moved = false;
    while (auto arrival = transport.poll_control()) {
      moved = true;
      if (watch != nullptr) watch->heard(arrival->from, Clock::now());
      obey(decode_control(arrival->bytes));
    }
    moved = worker.poll() || moved;
    if (coordinator != nullptr) moved = coordinator->poll() || moved;
    return moved;
  }

 private:
  void obey(ControlMessage message) const {
    if (std::holds_alternative<RankAlive>(message)) {
      if (above != nullptr) above->heard(Clock::now());
      return;
    }
    if (stop != nullptr && std::holds_alternative<LeaveAsked>(message)) {
      *stop = true;
    } else if (coordinator != nullptr && is_for_coordinator(message)) {
      coordinator->on_control(std::move(message));
    } else {
      worker.on_control(std::move(message));
    }
  }
};

void sleep_for(std::chrono::microseconds time) {
  std::this_thread::sleep_for(time);
}

/// What a rank does after a turn in which nothing moved.
template <class Sleep>
void rest(Backoff& backoff, const RankWorker& worker, std::chrono::microseconds longest,
          Sleep&& sleep) {
  if (!worker.in_real_time()) return backoff.wait(longest, sleep);
  // Nothing is yielded: where others use the cores as well, that may last for milliseconds, while
  // the end of a sleep comes before them.
  const auto due = worker.due_in();
  if (!due) {
    sleep(sleep_in_real_run);
  } else if (*due > awake_before) {
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(*due - awake_before);
    sleep(std::min(sleep_in_real_run, time));
  }
}

/// Keeps what one run without a daemon gives.
class StandaloneListener : public RunListener {
 public:
  StandaloneListener(std::string out, const std::function<void(const Progress&)>& on_progress)
      : out_(std::move(out)), on_progress_(on_progress) {}

  void started(RunId, const Maker&) override {}
  void points(RunId, std::uint64_t, std::vector<Point>) override {}
  void progress(RunId, const Progress& progress) override {
    if (on_progress_) on_progress_(progress);
  }
  void log(RunId, LogLine) override {}
  bool keeps_up() const override { return true; }

  void ended(RunId, RunOutcome outcome, const std::string& message, const std::string& folder,
             const Value& summary) override {
    result = {outcome, message, summary};
    has_ended = true;
    if (folder.empty()) return;
    std::filesystem::create_directories(out_);
    for (const std::string& name : ResultFiles::names()) {
      const std::filesystem::path to = std::filesystem::path(out_) / name;
      std::filesystem::remove(to);
      if (std::filesystem::exists(folder + "/" + name)) {
        std::filesystem::copy_file(folder + "/" + name, to);
      }
    }
    std::filesystem::remove_all(folder);
  }

  StandaloneResult result;
  bool has_ended = false;

 private:
  std::string out_;
  const std::function<void(const Progress&)>& on_progress_;
};

/// What each frame of the daemon leads to.
class FrameHandler {
 public:
  FrameHandler(Coordinator& coordinator, LinkListener& listener)
      : coordinator_(coordinator), listener_(listener) {}

  void operator()(const StartRun& start) { coordinator_.start(start); }
  void operator()(const CancelRun& cancel) { coordinator_.cancel(cancel.run); }
  void operator()(const CheckpointStored& stored) {
    if (listener_.on(stored)) coordinator_.on_stored(stored);
  }
  void operator()(const CheckpointPiece& piece) {
    listener_.on(piece);
    coordinator_.on_piece(piece);
  }
  void operator()(const ShutDown& shut_down) {
    reason = "the daemon says to leave: " + shut_down.reason;
  }
  void operator()(const Refused& refused) { reason = "the daemon refuses: " + refused.reason; }
  void operator()(const PointsStored& stored) { listener_.on(stored); }
  void operator()(const RunEndStored& stored) { listener_.on(stored); }
  void operator()(const Welcome&) {}
  void operator()(const Heartbeat&) {}

  std::string reason;

 private:
  Coordinator& coordinator_;
  LinkListener& listener_;
};

/// The connection to the daemon, which is made again for as long as the daemon's lease says.
class Attachment {
 public:
  Attachment(const PoolOptions& options, std::unique_ptr<DaemonLink> link, LinkListener& listener)
      : options_(options), listener_(listener), link_(std::move(link)) {
    lease_ = std::chrono::milliseconds(link_->await_welcome().lease_ms);
    listener_.attach(*link_);
  }

  /// Nothing while the daemon is away.
  DaemonLink* link() const { return lost_ ? nullptr : link_.get(); }

  /// Notices what has become of the connection. `runs` gives those that have been kept. Gives why
  /// it is given up, or nothing.
  template <class Runs>
  std::optional<std::string> tend(Runs&& runs) {
    if (!lost_ && link_->lost()) lose();
    if (!lost_) return std::nullopt;
    const auto now = Clock::now();
    if (now - lost_since_ >= lease_) return why_given_up();
    if (link_) {
      if (const auto why = link_->lost()) fail(now, *why);
    }
    if (link_ && link_->welcome()) {
      come_back();
    } else if (!link_ && now >= next_try_) {
      try {
        link_ = options_.connect(runs());
      } catch (const Error& error) {  // no address or token can be read at the moment
        fail(now, error.what());
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::chrono::milliseconds pause_min{50}, pause_max{2000};

  void lose() {
    lost_ = *link_->lost();
    lost_since_ = Clock::now();
    pause_ = pause_min;
    listener_.detach();
    if (lease_.count() > 0) {
      options_.say("the connection to the daemon is lost: " + *lost_ +
                   "; runs go on, and it is attached to again");
    }
    fail(lost_since_, *lost_);
  }
  void come_back() {
    lease_ = std::chrono::milliseconds(link_->welcome()->lease_ms);
    lost_.reset();
    listener_.attach(*link_);
    options_.say("the daemon is there again");
  }
  void fail(Clock::time_point now, const std::string& why) {
    link_.reset();
    fault_ = why;
    next_try_ = now + pause_;
    pause_ = std::min(2 * pause_, pause_max);
  }
  std::string why_given_up() const {
    std::string why = "the connection to the daemon is lost: " + *lost_;
    if (lease_.count() == 0) return why;
    why += "; it has not come back within " + std::to_string(lease_.count()) + " ms";
    return fault_ == *lost_ ? why : why + ": " + fault_;
  }

  const PoolOptions& options_;
  LinkListener& listener_;
  std::unique_ptr<DaemonLink> link_;
  std::chrono::milliseconds lease_{0};
  std::optional<std::string> lost_;  // why, until the daemon is there again
  std::string fault_;                // of the last attempt
  Clock::time_point lost_since_, next_try_;
  std::chrono::milliseconds pause_{0};
};

}  // namespace

std::vector<RankInfo> gather_ranks(Transport& transport, const RankInfo& me,
                                   std::atomic<bool>& stop) {
  std::vector<RankInfo> ranks(static_cast<std::size_t>(transport.size()));
  ranks[0] = me;
  Backoff backoff;
  const auto deadline = Clock::now() + hello_max;
  for (int missing = transport.size() - 1; missing > 0;) {
    const auto arrival = transport.poll_control();
    if (!arrival) {
      if (Clock::now() > deadline) {
        throw ProtocolError(std::to_string(missing) + " of " + std::to_string(transport.size()) +
                            " ranks have not said who they are within " +
                            std::to_string(hello_max.count()) + " s");
      }
      backoff.wait(sleep_idle_max, sleep_for);
      continue;
    }
    const ControlMessage message = decode_control(arrival->bytes);
    if (std::holds_alternative<LeaveAsked>(message)) stop = true;
    if (std::holds_alternative<LeaveAsked>(message) || std::holds_alternative<RankAlive>(message)) {
      continue;
    }
    const auto* hello = std::get_if<RankHello>(&message);
    if (hello == nullptr) throw ProtocolError("a rank says something before who it is");
    ranks.at(static_cast<std::size_t>(arrival->from)) = hello->info;
    --missing;
  }
  return ranks;
}

void shut_down_ranks(Transport& transport) {
  for (int rank = 1; rank < transport.size(); ++rank) {
    transport.send_control(rank, encode_control(RankShutDown{}));
  }
  Backoff backoff;
  while (!transport.sends_done()) backoff.wait(sleep_idle_max, sleep_for);
}

void serve_rank(Transport& transport, const RankInfo& me, const std::atomic<bool>& stop,
                std::chrono::milliseconds silence_max) {
  transport.send_control(0, encode_control(RankHello{me}));
  RankWorker worker(transport);
  CoordinatorWatch above(silence_max, Clock::now());
  const Duties duties{.transport = transport, .worker = worker, .stop = nullptr, .above = &above};
  Backoff backoff;
  bool asked = false;
  Clock::time_point spoken = Clock::now();
  while (!worker.shut_down()) {
    if (stop && !std::exchange(asked, true)) {
      transport.send_control(0, encode_control(LeaveAsked{me.rank}));
    }
    if (const auto now = Clock::now(); now - spoken > silence_max / alive_per_silence) {
      spoken = now;
      transport.send_control(0, encode_control(RankAlive{me.rank}));
    }
    const bool moved = duties.take_turn();
    above.look(Clock::now());
    if (moved) {
      backoff.reset();
    } else {
      rest(backoff, worker, worker.has_run() ? sleep_in_run_max : sleep_idle_max, sleep_for);
    }
  }
}

namespace {

/// Rank 0 of a pool with a daemon.
class Pool {
 public:
  Pool(Transport& transport, std::unique_ptr<DaemonLink> link, const PoolOptions& options,
       std::atomic<bool>& stop)
      : transport_(transport),
        options_(options),
        stop_(stop),
        worker_(transport),
        listener_(options.spool),
        attachment_(options, std::move(link), listener_),
        coordinator_(transport, listener_, options.spool),
        watch_(options.ranks, options.silence_max, Clock::now()),
        duties_{transport, worker_, &coordinator_, &watch_, &stop} {}

  PoolEnd serve() {
    FrameHandler handler(coordinator_, listener_);
    while (handler.reason.empty()) {
      if (stop_) return leave("told to stop by a signal");
      if (!watch_.missing().empty()) return end(describe(watch_.missing()));
      bool moved = false;
      // Also what came before the connection was lost.
      if (DaemonLink* link = attachment_.link()) {
        while (const auto frame = link->poll()) {
          std::visit(handler, *frame);
          moved = true;
        }
      }
      if (const auto why = attachment_.tend([&] { return kept_runs(); })) return leave(*why);
      turn_or_rest(listener_.pump() || moved);
    }
    return leave(handler.reason);
  }

 private:
  std::vector<RunId> kept_runs() const {
    std::vector<RunId> runs = coordinator_.runs();
    const std::vector<RunId> ended = listener_.ended_runs();
    runs.insert(runs.end(), ended.begin(), ended.end());
    return runs;
  }

  void turn_or_rest(bool moved) {
    DaemonLink* link = attachment_.link();
    if (link != nullptr) link->alive();
    moved = duties_.take_turn() || moved;
    watch_.look(coordinator_.starting(), Clock::now());
    say_alive();
    if (moved) {
      backoff_.reset();
    } else {
      rest(backoff_, worker_, coordinator_.has_runs() ? sleep_in_run_max : sleep_idle_max,
           [&](std::chrono::microseconds time) {
             if (link != nullptr) {
               link->wait(time);
             } else {
               sleep_for(time);
             }
           });
    }
  }

  void say_alive() {
    const auto now = Clock::now();
    if (now - spoken_ <= options_.silence_max / alive_per_silence) return;
    spoken_ = now;
    for (int rank = 1; rank < transport_.size(); ++rank) {
      transport_.send_control(rank, encode_control(RankAlive{0}));
    }
  }

  /// Lets the ranks leave their runs.
  PoolEnd leave(const std::string& reason) {
    coordinator_.give_back_all();
    const auto begin = Clock::now();
    while (coordinator_.has_runs() && watch_.missing().empty() &&
           Clock::now() - begin < (options_.hurry ? leave_in_hurry_max : leave_max)) {
      turn_or_rest(false);
    }
    return end(reason);
  }

  /// Says which runs are lost, and gives back all others.
  PoolEnd end(const std::string& reason) {
    const bool in_order = !coordinator_.has_runs() && watch_.missing().empty();
    std::set<std::uint32_t> gone = watch_.missing();
    // A launcher that has lost a rank tells the others to end, and kills them soon after. So a rank
    // that does not answer now may be that one, unless it can be seen.
    for (const std::uint32_t rank : coordinator_.leaving()) {
      if (!watch_.is_there(rank)) gone.insert(rank);
    }
    PoolGoodbye goodbye{reason, {}};
    for (const RunId run : coordinator_.runs_on(gone)) {
      goodbye.lost.push_back({run, describe(gone)});
    }
    if (DaemonLink* link = attachment_.link()) link->send(goodbye);
    return {reason, in_order};
  }

  std::string describe(const std::set<std::uint32_t>& ranks) const {
    static constexpr std::size_t named_max = 8;
    std::string text;
    std::size_t named = 0;
    for (const std::uint32_t rank : ranks) {
      if (named == named_max) {
        return text + ", and " + std::to_string(ranks.size() - named) + " more";
      }
      text += (named++ == 0 ? "" : ", ") + watch_.describe(rank, Clock::now());
    }
    return text;
  }

  Transport& transport_;
  const PoolOptions& options_;
  std::atomic<bool>& stop_;
  RankWorker worker_;
  LinkListener listener_;
  Attachment attachment_;
  Coordinator coordinator_;
  RankWatch watch_;
  Duties duties_;
  Backoff backoff_;
  Clock::time_point spoken_;
};

}  // namespace

PoolEnd serve_pool(Transport& transport, std::unique_ptr<DaemonLink> link,
                   const PoolOptions& options, std::atomic<bool>& stop) {
  return Pool(transport, std::move(link), options, stop).serve();
}

StandaloneResult run_standalone(Transport& transport, const Value& job, const std::string& out,
                                const std::function<void(const Progress&)>& on_progress) {
  RankWorker worker(transport);
  StandaloneListener listener(out, on_progress);
  Coordinator coordinator(transport, listener, out + ".partial");
  StartRun start{{1, 0, 1}, job, {}};
  const auto wanted = JobConfig::from(check_job(job)).ranks;
  const int ranks = wanted > 0 ? std::min(wanted, transport.size()) : transport.size();
  start.ranks.resize(static_cast<std::size_t>(ranks));
  std::iota(start.ranks.begin(), start.ranks.end(), 0u);
  coordinator.start(start);
  const Duties duties{transport, worker, &coordinator};
  Backoff backoff;
  while (!listener.has_ended) {
    if (duties.take_turn()) {
      backoff.reset();
    } else {
      rest(backoff, worker, sleep_in_run_max, sleep_for);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(out + ".partial", ignored);
  return listener.result;
}

}  // namespace pipewright
