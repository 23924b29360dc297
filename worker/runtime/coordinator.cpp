#include "worker/runtime/coordinator.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "worker/runtime/pool_run.hpp"

namespace pipewright {

Coordinator::Coordinator(Transport& transport, RunListener& listener, std::string spool)
    : transport_(transport), listener_(listener), spool_(std::move(spool)) {}
Coordinator::~Coordinator() = default;

void Coordinator::start(const StartRun& start) {
  const auto refuse = [&](const std::string& why) {
    throw ProtocolError("run " + std::to_string(start.run.run) + " of job " +
                        std::to_string(start.run.job) + " cannot be started: " + why);
  };
  if (start.ranks.empty()) refuse("it has no ranks");
  for (std::size_t i = 0; i < start.ranks.size(); ++i) {
    if (start.ranks[i] >= static_cast<std::uint32_t>(transport_.size()) ||
        (i > 0 && start.ranks[i] <= start.ranks[i - 1])) {
      refuse("its ranks are not ascending ranks of this world of " +
             std::to_string(transport_.size()));
    }
  }
  const auto is_it = [&](const auto& other) { return other == start.run; };
  if (std::any_of(runs_.begin(), runs_.end(),
                  [&](const auto& r) { return is_it(r.second->run()); }) ||
      std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& w) { return is_it(w.run); })) {
    refuse("it has been started");
  }
  waiting_.push_back(start);
  begin_waiting();
}

/// In their order: a run that waits keeps its ranks from those behind it.
void Coordinator::begin_waiting() {
  std::vector<bool> taken(static_cast<std::size_t>(transport_.size()));
  for (const auto& [number, run] : runs_) {
    for (const std::uint32_t rank : run->occupied()) taken[rank] = true;
  }
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const bool free = std::none_of(it->ranks.begin(), it->ranks.end(),
                                   [&](std::uint32_t rank) { return taken[rank]; });
    for (const std::uint32_t rank : it->ranks) taken[rank] = true;
    if (!free) {
      ++it;
      continue;
    }
    const StartRun start = std::move(*it);
    it = waiting_.erase(it);
    begin(start);
  }
}

void Coordinator::begin(const StartRun& start) {
  const std::string folder = spool_ + "/job-" + std::to_string(start.run.job) + "-" +
                             std::to_string(start.run.run) + "-" +
                             std::to_string(start.run.attempt);
  const std::uint32_t number = ++last_number_;
  try {
    runs_.emplace(number, std::make_unique<PoolRun>(transport_, listener_, start, folder, number));
  } catch (const std::exception& error) {
    // Nothing has been said to a rank yet: it is this run's fault alone, of a file that is not here
    // (any more), or of a daemon of another version.
    listener_.ended(start.run, RunOutcome::failed, error.what(), "", {});
  }
}

void Coordinator::cancel(RunId run) {
  for (const auto& [number, under_way] : runs_) {
    if (under_way->run() == run) under_way->cancel();
  }
  if (std::erase_if(waiting_, [&](const StartRun& start) { return start.run == run; }) > 0) {
    listener_.ended(run, RunOutcome::cancelled, "", "", {});
  }
}

void Coordinator::on_stored(const CheckpointStored& stored) {
  for (const auto& [number, under_way] : runs_) {
    if (under_way->run() == stored.run) under_way->on(stored);
  }
}

void Coordinator::on_piece(const CheckpointPiece& piece) {
  for (const auto& [number, under_way] : runs_) {
    if (under_way->run() == piece.run) under_way->on(piece);
  }
}

void Coordinator::give_back_all() {
  waiting_.clear();
  for (const auto& [number, under_way] : runs_) under_way->give_back();
}

std::vector<RunId> Coordinator::runs() const {
  std::vector<RunId> all;
  for (const auto& [number, run] : runs_) all.push_back(run->run());
  for (const StartRun& start : waiting_) all.push_back(start.run);
  return all;
}

std::vector<RunId> Coordinator::runs_on(const std::set<std::uint32_t>& ranks) const {
  std::vector<RunId> found;
  for (const auto& [number, run] : runs_) {
    if (std::any_of(run->ranks().begin(), run->ranks().end(),
                    [&](std::uint32_t rank) { return ranks.contains(rank); })) {
      found.push_back(run->run());
    }
  }
  return found;
}

std::set<std::uint32_t> Coordinator::starting() const {
  std::set<std::uint32_t> ranks;
  for (const auto& [number, run] : runs_) ranks.merge(run->starting());
  return ranks;
}

std::set<std::uint32_t> Coordinator::leaving() const {
  std::set<std::uint32_t> ranks;
  for (const auto& [number, run] : runs_) ranks.merge(run->leaving());
  return ranks;
}

void Coordinator::on_control(ControlMessage message) {
  std::visit(
      [&](auto& what) {
        if constexpr (requires(PoolRun & run) { run.on(std::move(what)); }) {
          const auto at = runs_.find(what.run);
          if (at == runs_.end()) {
            throw ProtocolError("a rank reports on run " + std::to_string(what.run) +
                                ", which is not under way");
          }
          at->second->on(std::move(what));
        } else {
          throw ProtocolError("a control message that only a rank can use");
        }
      },
      message);
}

bool Coordinator::poll() {
  bool moved = false;
  for (auto& [number, run] : runs_) moved = run->poll() || moved;
  // Before the files of those that are over are written: the ranks do not wait for that.
  if (!waiting_.empty()) begin_waiting();
  for (auto it = runs_.begin(); it != runs_.end();) {
    if (!it->second->over()) {
      ++it;
      continue;
    }
    it->second->finish();
    it = runs_.erase(it);
    moved = true;
  }
  return moved;
}

}  // namespace pipewright
