// The side of Service that pools speak to.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "daemon/clock.hpp"
#include "daemon/log.hpp"
#include "daemon/service.hpp"

namespace pipewright {
namespace {

constexpr std::size_t ranks_max = 100'000;

/// Why the hello cannot be taken, or nothing.
std::string fault_of(const PoolHello& hello) {
  if (hello.protocol != pool_protocol_version) {
    return "the pool speaks protocol " + std::to_string(hello.protocol) + ", this daemon " +
           std::to_string(pool_protocol_version) + ": use the same version of both";
  }
  if (hello.name.empty() || hello.name.size() > 100) {
    return "the name of a pool has 1 to 100 characters";
  }
  if (hello.ranks.empty() || hello.ranks.size() > ranks_max) {
    return "a pool has 1 to " + std::to_string(ranks_max) + " ranks, not " +
           std::to_string(hello.ranks.size());
  }
  for (std::size_t i = 0; i < hello.ranks.size(); ++i) {
    if (hello.ranks[i].rank != i) return "the ranks of a pool are named in order, from 0";
  }
  return {};
}

}  // namespace

std::variant<PoolId, Refused> Service::attach(const PoolHello& hello, PoolPort& port) {
  std::string fault = fault_of(hello);
  if (!closing_.empty()) fault = closing_;
  const auto same = std::find_if(pools_.begin(), pools_.end(), [&](const auto& pool) {
    return pool.second.info.name == hello.name;
  });
  if (fault.empty() && same != pools_.end()) {
    if (!hello.instance.empty() && same->second.instance == hello.instance) {
      // It has noticed before this daemon that its connection is gone.
      PoolPort& old = *same->second.port;
      old.close("the pool has attached again");
      detach(same->first, old, "its connection was cut");
    } else {
      fault = "a pool named '" + hello.name + "' is attached already; give this one another name";
    }
  }
  if (!fault.empty()) {
    log_warning("pool refused", {{"pool", hello.name}, {"error", fault}});
    return Refused{fault};
  }
  PoolInfo info{.name = hello.name,
                .rank_hosts = {},
                .rank_jobs = {},
                .attached_unix_ms = unix_ms(),
                .heartbeat_unix_ms = unix_ms(),
                .program_version = hello.program_version,
                .local = hello.name == local_pool_,
                .state = "attached",
                .slurm_job = hello.slurm_job};
  for (const RankInfo& rank : hello.ranks) info.rank_hosts.push_back(rank.host);
  const PoolId id = id_of(hello);
  pools_[id] = {std::move(info), &port, hello.instance, hello.ranks.front().pid};
  log_info("pool attached", {{"pool", hello.name},
                             {"ranks", hello.ranks.size()},
                             {"runs", hello.runs.size()},
                             {"slurm_job", hello.slurm_job},
                             {"cpu", hello.cpu_type}});
  port.send(encode_daemon_frame(
      Welcome{static_cast<std::uint32_t>(limits_.queue.heartbeat_interval.count()),
              static_cast<std::uint32_t>(limits_.queue.lease.count())}));
  put(jobs::PoolAttached{id, static_cast<std::uint32_t>(hello.ranks.size()),
                         !hello.instance.empty(), hello.runs});
  return id;
}

/// That which it had before its connection was cut, or a new one. A new pool under the name of one
/// that is away, or of its Slurm job (which was started anew), shows that that one is gone.
PoolId Service::id_of(const PoolHello& hello) {
  std::optional<PoolId> id;
  std::vector<PoolId> replaced;
  std::erase_if(away_, [&](const auto& entry) {
    const auto& [name, pool] = entry;
    const bool same_job = !hello.slurm_job.empty() && pool.info.slurm_job == hello.slurm_job;
    if (name == hello.name && (pool.instance.empty() || pool.instance == hello.instance)) {
      id = pool.id;
    } else if (name == hello.name || same_job) {
      replaced.push_back(pool.id);
    } else {
      return false;
    }
    return true;
  });
  for (const PoolId gone : replaced) {
    put(jobs::PoolLost{gone, "another pool has come in its place"});
  }
  return id ? *id : ++last_pool_;
}

void Service::note_away(PoolId id, AttachedPool pool) {
  // It sends its files again.
  std::erase_if(files_wait_, [&](const auto& waiting) { return waiting.first == id; });
  if (!queue_.awaits(id)) return;
  pool.info.state = "away";
  const std::string name = pool.info.name;
  away_[name] = {id, std::move(pool.instance), pool.process, std::move(pool.info)};
}

void Service::forget_pools() {
  std::erase_if(away_, [this](const auto& pool) { return !queue_.awaits(pool.second.id); });
}

bool Service::local_pool_has_left() {
  // Its rank 0 has died: that it is cut off is no reason to wait.
  const auto away = away_.find(local_pool_);
  if (away != away_.end() && away->second.process > 0 &&
      ::kill(static_cast<pid_t>(away->second.process), 0) != 0 && errno == ESRCH) {
    local_pool_left_ = true;
  }
  return std::exchange(local_pool_left_, false);
}

void Service::local_pool_ended(const std::string& how, bool is_loss) {
  const auto away = away_.extract(local_pool_);
  if (away.empty()) return;
  const PoolId id = away.mapped().id;
  if (is_loss) {
    put(jobs::PoolLost{id, how});
  } else {
    put(jobs::PoolLeft{id, how, {}});
  }
}

jobs::RestoredRun Service::restored(const RunRecord& record) {
  const Run& run = record.run;
  jobs::RestoredRun restored{run.number, run.state, run.attempt};
  if (run.state == JobState::queued || run.pool.empty()) return restored;
  AwayPool& pool = away_[run.pool];
  if (pool.id == PoolId{}) {
    pool.id = ++last_pool_;
    pool.info.name = run.pool;
    pool.info.state = "away";
  }
  restored.pool = pool.id;
  restored.ranks = run.ranks;
  return restored;
}

void Service::on_frame(PoolId pool, const PoolFrame& frame) {
  const auto at = pools_.find(pool);
  if (at == pools_.end()) return;  // dropped meanwhile; its connection is being closed
  at->second.info.heartbeat_unix_ms = unix_ms();
  put(jobs::PoolHeard{pool});
  std::visit(
      [&](const auto& what) {
        using Frame = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<Frame, PoolHello>) {
          throw ProtocolError("a pool says hello once");
        } else if constexpr (std::is_same_v<Frame, PoolGoodbye>) {
          const std::string reason =
              "the pool left" + (what.reason.empty() ? "" : ": " + what.reason);
          local_pool_left_ = local_pool_left_ || at->second.info.local;
          remove(pool, reason, jobs::PoolLeft{pool, reason, what.lost});
        } else if constexpr (!std::is_same_v<Frame, Heartbeat>) {
          on_run_frame(pool, what);
        }
      },
      frame);
}

void Service::detach(PoolId pool, const PoolPort& port, const std::string& reason) {
  const auto at = pools_.find(pool);
  if (at == pools_.end() || at->second.port != &port) return;
  AttachedPool gone = at->second;
  remove(pool, reason, jobs::PoolCut{pool, reason});
  note_away(pool, std::move(gone));
}

void Service::remove(PoolId pool, const std::string& reason, const jobs::Input& input) {
  const auto gone = pools_.extract(pool);
  if (gone.empty()) return;
  log_info("pool gone", {{"pool", gone.mapped().info.name}, {"reason", reason}});
  if (!ended_.empty()) flush();  // those runs are not lost
  put(input);
}

bool Service::local_pool_works() const {
  return std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
    const std::vector<JobId> jobs = queue_.rank_jobs(pool.first);
    return pool.second.info.local &&
           std::any_of(jobs.begin(), jobs.end(), [](JobId job) { return job != 0; });
  });
}

PoolList Service::pools() const {
  PoolList list;
  bool local_there = local_pool_.empty();
  for (const auto& [id, pool] : pools_) {
    list.pools.push_back(pool.info);
    list.pools.back().rank_jobs = queue_.rank_jobs(id);
    local_there = local_there || pool.info.local;
  }
  for (const auto& [name, pool] : away_) {
    list.pools.push_back(pool.info);
    list.pools.back().local = name == local_pool_;
    list.pools.back().rank_jobs = queue_.rank_jobs(pool.id);
    if (queue_.awaits(pool.id)) {
      list.pools.back().lease_ends_unix_ms =
          unix_ms() + queue_.awaits_for(pool.id, steady_ms()).count();
    }
    local_there = local_there || name == local_pool_;
  }
  if (!local_there) {
    PoolInfo starting;
    starting.name = local_pool_;
    starting.local = true;
    starting.state = "starting";
    list.pools.push_back(std::move(starting));
  }
  return list;
}

Service::DropAnswer Service::drop_pool(const std::string& name, const std::string& why) {
  const bool is_there = std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
    return pool.second.info.name == name;
  });
  if (is_there) return DropAnswer::is_there;
  const auto away = away_.extract(name);
  if (away.empty()) return DropAnswer::unknown;
  put(jobs::PoolLeft{away.mapped().id, why, {}});
  return DropAnswer::dropped;
}

void Service::on_run_frame(PoolId pool, const RunStarted& frame) {
  // A pool of an older version does not say it.
  if (!frame.maker.version.empty() && queue_.runs_on(pool, frame.run)) {
    journal_.add_maker(frame.run, frame.maker);
  }
  put(jobs::RunBegan{pool, frame.run});
}

void Service::on_run_frame(PoolId pool, const RunPoints& frame) {
  if (!queue_.runs_on(pool, frame.run)) return;  // of a run that was taken for lost
  acknowledgements_[{pool, frame.run}] = journal_.add_points(frame, unix_ms());
  metrics_.points_stored(frame.points.size());
  if (journal_.pending_events() >= limits_.pending_events_flush) flush();
}

void Service::on_run_frame(PoolId pool, const RunProgress& frame) {
  if (!queue_.runs_on(pool, frame.run)) return;
  journal_.set_progress(frame.run, frame.progress);
  wake_streams(frame.run.job);
}

void Service::on_run_frame(PoolId pool, const RunLog& frame) {
  if (!queue_.runs_on(pool, frame.run)) return;
  LogLine line = frame.line;
  if (line.text.size() > limits_.log_text_bytes_max) {
    // Not within a character of several bytes: the rest must stay valid UTF-8.
    std::size_t cut = limits_.log_text_bytes_max;
    while (cut > 0 && (static_cast<unsigned char>(line.text[cut]) & 0xc0) == 0x80) --cut;
    line.text.resize(cut);
    line.text += " [cut]";
  }
  journal_.add_log(frame.run, std::move(line), unix_ms());
}

void Service::on_run_frame(PoolId pool, const RunFileChunk& frame) {
  if (!files_wait_.empty() || !take_file(pool, frame)) files_wait_.emplace_back(pool, frame);
}

/// False when it has to wait.
bool Service::take_file(PoolId pool, const RunFileChunk& frame) {
  const RunKey key{frame.run.job, frame.run.run};
  if (!queue_.runs_on(pool, frame.run) || file_faults_.contains(key)) return true;
  try {
    files_.put(frame);
  } catch (const CannotWriteNow& error) {
    if (files_fault_.empty())
      log_error("files of runs wait for the disk", {{"error", error.what()}});
    files_fault_ = error.what();
    return false;
  } catch (const StoreError& error) {
    log_error("file of a run cannot be stored",
              {{"job", frame.run.job}, {"run", frame.run.run}, {"error", error.what()}});
    file_faults_[key] = error.what();
  }
  return true;
}

void Service::take_waiting_files() {
  while (!files_wait_.empty()) {
    if (!take_file(files_wait_.front().first, files_wait_.front().second)) return;
    files_wait_.pop_front();
  }
  files_fault_.clear();
}

void Service::on_run_frame(PoolId pool, const CheckpointChunk& frame) {
  const RunKey key{frame.run.job, frame.run.run};
  if (!queue_.runs_on(pool, frame.run) || checkpoint_faults_.contains(key)) return;
  try {
    checkpoints_of(frame.run).append(frame.name, frame.offset_bytes, frame.data, frame.last);
  } catch (const DataError& error) {
    // The run goes on without this one; the one before is still there.
    log_error("checkpoint cannot be stored",
              {{"job", frame.run.job}, {"run", frame.run.run}, {"reason", error.what()}});
    checkpoint_faults_.insert(key);
  }
}

void Service::on_run_frame(PoolId pool, const CheckpointSent& frame) {
  if (!queue_.runs_on(pool, frame.run)) return;
  const RunKey key{frame.run.job, frame.run.run};
  if (checkpoint_faults_.erase(key) == 0) {
    checkpoints_of(frame.run).keep_two(frame.tick);
    put(jobs::RunAdvanced{pool, frame.run});
    log_debug("checkpoint stored",
              {{"job", frame.run.job}, {"run", frame.run.run}, {"tick", frame.tick.value}});
  }
  if (const auto at = pools_.find(pool); at != pools_.end()) {
    at->second.port->send(encode_daemon_frame(CheckpointStored{frame.run, frame.tick}));
  }
}

void Service::on_run_frame(PoolId pool, const CheckpointWanted& frame) {
  if (!queue_.runs_on(pool, frame.run)) return;
  CheckpointPiece piece{frame.run, frame.name, frame.offset_bytes, {}, true};
  std::tie(piece.data, piece.last) =
      checkpoints_of(frame.run).read_part(frame.name, frame.offset_bytes, file_chunk_bytes_max);
  pools_.at(pool).port->send(encode_daemon_frame(piece));
}

/// The files that an attempt goes on from; of a first one there are none.
std::vector<std::string> Service::checkpoint_for(RunId run) const {
  if (run.attempt <= 1) return {};
  const CheckpointFolder folder = checkpoints_of(run);
  std::vector<std::string> refused;
  const auto newest = folder.newest(nullptr, refused);
  for (const std::string& why : refused) {
    log_warning("checkpoint refused", {{"job", run.job}, {"run", run.run}, {"reason", why}});
  }
  if (!newest) {
    folder.clear();
    return {};
  }
  folder.drop_after(newest->tick);
  std::vector<std::string> files = newest->rows;
  files.insert(files.end(), newest->values.begin(), newest->values.end());
  return files;
}

void Service::on_run_frame(PoolId pool, const RunEnded& frame) {
  ended_.push_back({pool, frame.run, frame.outcome, frame.message, frame.summary_json});
  wake_for_news_();
}

}  // namespace pipewright
