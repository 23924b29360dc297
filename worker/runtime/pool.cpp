#include "worker/runtime/pool.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/train/result_files.hpp"
#include "worker/runtime/backoff.hpp"
#include "worker/runtime/coordinator.hpp"
#include "worker/runtime/link_listener.hpp"
#include "worker/runtime/rank_worker.hpp"

namespace pipewright {

namespace {

// A rank in a run waits for messages that come within microseconds, an idle one for a person.
constexpr std::chrono::microseconds sleep_in_run_max{100};
constexpr std::chrono::microseconds sleep_idle_max{1000};
constexpr std::chrono::microseconds sleep_in_real_run{40};
/// How long ranks may take to leave their runs (one may be in a long computation).
constexpr std::chrono::seconds leave_max{30};
/// A row that waits for a time is waited for awake from so long before: sleeps end late by a
/// little.
constexpr std::chrono::microseconds awake_before{20};

bool is_for_coordinator(const ControlMessage& message) {
  return std::holds_alternative<RankReady>(message) ||
         std::holds_alternative<ClockQuestion>(message) ||
         std::holds_alternative<ReportMessage>(message) ||
         std::holds_alternative<FinalMessage>(message) ||
         std::holds_alternative<RankFault>(message) || std::holds_alternative<RankIdle>(message);
}

/// One turn of a rank: control messages, then its rows. `coordinator` is null but on rank 0.
/// `stop` becomes true when another rank says that a signal has come there.
bool take_turn(Transport& transport, RankWorker& worker, Coordinator* coordinator,
               std::atomic<bool>* stop = nullptr) {
  bool moved = false;
  while (auto arrival = transport.poll_control()) {
    moved = true;
    ControlMessage message = decode_control(arrival->bytes);
    if (stop != nullptr && std::holds_alternative<LeaveAsked>(message)) {
      *stop = true;
    } else if (coordinator != nullptr && is_for_coordinator(message)) {
      coordinator->on_control(std::move(message));
    } else {
      worker.on_control(std::move(message));
    }
  }
  moved = worker.poll() || moved;
  if (coordinator != nullptr) moved = coordinator->poll() || moved;
  return moved;
}

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

  void started(RunId) override {}
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
  explicit FrameHandler(Coordinator& coordinator) : coordinator_(coordinator) {}

  void operator()(const StartRun& start) { coordinator_.start(start); }
  void operator()(const CancelRun& cancel) { coordinator_.cancel(cancel.run); }
  void operator()(const ShutDown& shut_down) {
    reason = "the daemon says to leave: " + shut_down.reason;
  }
  void operator()(const Refused& refused) { reason = "the daemon refuses: " + refused.reason; }
  // Acknowledgements: this pool ends with its connection, so it keeps nothing to send again.
  void operator()(const PointsStored&) {}
  void operator()(const RunEndStored&) {}
  void operator()(const Welcome&) {}
  void operator()(const Heartbeat&) {}

  std::string reason;

 private:
  Coordinator& coordinator_;
};

}  // namespace

std::vector<RankInfo> gather_ranks(Transport& transport, const RankInfo& me,
                                   std::atomic<bool>& stop) {
  std::vector<RankInfo> ranks(static_cast<std::size_t>(transport.size()));
  ranks[0] = me;
  Backoff backoff;
  for (int missing = transport.size() - 1; missing > 0;) {
    const auto arrival = transport.poll_control();
    if (!arrival) {
      backoff.wait(sleep_idle_max, sleep_for);
      continue;
    }
    const ControlMessage message = decode_control(arrival->bytes);
    if (std::holds_alternative<LeaveAsked>(message)) {
      stop = true;
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

void serve_rank(Transport& transport, const RankInfo& me, const std::atomic<bool>& stop) {
  transport.send_control(0, encode_control(RankHello{me}));
  RankWorker worker(transport);
  Backoff backoff;
  bool asked = false;
  while (!worker.shut_down()) {
    if (stop && !std::exchange(asked, true)) {
      transport.send_control(0, encode_control(LeaveAsked{me.rank}));
    }
    if (take_turn(transport, worker, nullptr)) {
      backoff.reset();
    } else {
      rest(backoff, worker, worker.has_run() ? sleep_in_run_max : sleep_idle_max, sleep_for);
    }
  }
}

PoolEnd serve_pool(Transport& transport, DaemonLink& link, const std::string& spool,
                   std::atomic<bool>& stop) {
  RankWorker worker(transport);
  LinkListener listener(link);
  Coordinator coordinator(transport, listener, spool);
  FrameHandler handler(coordinator);
  Backoff backoff;
  const auto turn_or_rest = [&](bool moved) {
    if (take_turn(transport, worker, &coordinator, &stop) || moved) {
      backoff.reset();
    } else {
      rest(backoff, worker, coordinator.has_runs() ? sleep_in_run_max : sleep_idle_max,
           [&](std::chrono::microseconds time) { link.wait(time); });
    }
  };
  while (handler.reason.empty()) {
    link.alive();
    if (const auto why = link.lost()) {
      // Ranks that are in the middle of a run would wait for each other: that world has to be ended
      // as a whole.
      return {"the connection to the daemon is lost: " + *why, !coordinator.has_runs()};
    }
    if (stop) handler.reason = "told to stop by a signal";
    bool moved = false;
    while (const auto frame = link.poll()) {
      std::visit(handler, *frame);
      moved = true;
    }
    turn_or_rest(listener.upload() || moved);
  }
  coordinator.cancel_all();
  const auto deadline = std::chrono::steady_clock::now() + leave_max;
  while (coordinator.has_runs() && std::chrono::steady_clock::now() < deadline) turn_or_rest(false);
  // Only now: a launcher also sends SIGTERM when one of the ranks has died. Then they never all
  // leave its run, and without this word the daemon counts what was here as lost.
  const bool in_order = !coordinator.has_runs();
  if (in_order) link.send(PoolGoodbye{handler.reason});
  return {handler.reason, in_order};
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
  Backoff backoff;
  while (!listener.has_ended) {
    if (take_turn(transport, worker, &coordinator)) {
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
