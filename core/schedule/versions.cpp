#include "core/schedule/versions.hpp"

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace pipewright {

void Histogram::add(std::int64_t value, std::int64_t times) {
  PW_CHECK(value >= 0, "a histogram of counts was given " << value);
  const auto at = static_cast<std::size_t>(value);
  if (at >= counts_.size()) counts_.resize(at + 1);
  counts_[at] += times;
  count_ += times;
  sum_ += value * times;
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::int64_t Histogram::quantile(double share) const {
  std::int64_t seen = 0;
  for (std::size_t value = 0; value < counts_.size(); ++value) {
    seen += counts_[value];
    if (static_cast<double>(seen) >= share * static_cast<double>(count_)) {
      return static_cast<std::int64_t>(value);
    }
  }
  return max();
}

VersionTracker::VersionTracker(const ScheduleHeader& header)
    : header_(header),
      rows_(static_cast<std::size_t>(header.rows())),
      stages_(static_cast<std::size_t>(header.stages)),
      reads_(64),
      delays_(static_cast<std::size_t>(header.stages)) {
  for (RowState& row : rows_)
    row.versions.resize(static_cast<std::size_t>(header.replicas_of_row()));
}

void VersionTracker::add(Row row, const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(row, action);
    case ActionKind::backward:
      return backward(row, action);
    case ActionKind::update:
      return update(row, action);
    case ActionKind::sync:
      return;
  }
}

std::int64_t& VersionTracker::version_of(Row row, Replica replica) {
  auto& versions = rows_[static_cast<std::size_t>(row.value)].versions;
  return versions[header_.placement == Placement::spread ? 0
                                                         : static_cast<std::size_t>(replica.value)];
}

WeightVersion VersionTracker::version(Row row, Replica replica) const {
  return WeightVersion(const_cast<VersionTracker*>(this)->version_of(row, replica));
}

VersionTracker::Reads& VersionTracker::new_reads(Microbatch m, int updates) {
  const auto slot = [&] { return static_cast<std::size_t>(m.value) % reads_.size(); };
  while (reads_[slot()].updates_left > 0) {
    std::vector<Reads> larger(reads_.size() * 2);
    for (Reads& reads : reads_) {
      if (reads.updates_left == 0) continue;
      larger[static_cast<std::size_t>(reads.microbatch.value) % larger.size()] = std::move(reads);
    }
    reads_ = std::move(larger);
  }
  Reads& reads = reads_[slot()];
  reads.microbatch = m;
  reads.updates_left = updates;
  reads.counter.assign(static_cast<std::size_t>(header_.stages), 0);
  return reads;
}

VersionTracker::Reads& VersionTracker::reads_of(Microbatch m) {
  Reads& reads = reads_[static_cast<std::size_t>(m.value) % reads_.size()];
  if (reads.updates_left == 0 || reads.microbatch != m) {
    throw ConfigError("microbatch " + std::to_string(m.value) +
                      " is used by an action before its forward on stage 0");
  }
  return reads;
}

void VersionTracker::forward(Row row, const Action& action) {
  const int updates = header_.one_block ? 1 : header_.stages;
  Reads& reads = action.stage == Stage(0) ? new_reads(action.microbatch, updates)
                                          : reads_of(action.microbatch);
  const bool reads_newest = action.read_update == Action::reads_newest;
  reads.counter[static_cast<std::size_t>(action.stage.value)] =
      reads_newest ? k_ : action.read_update.value;
  if (action.stage < action.backward_to) return;
  rows_[static_cast<std::size_t>(row.value)].stash.push_back(
      {action.microbatch, version_of(row, action.replica)});
  note_stash(row);
}

void VersionTracker::note_stash(Row row) {
  const auto& stash = rows_[static_cast<std::size_t>(row.value)].stash;
  auto& stage = stages_[static_cast<std::size_t>(header_.stage_of(row).value)];
  stage.stash_microbatches_max =
      std::max(stage.stash_microbatches_max, static_cast<std::int64_t>(stash.size()));
  std::int64_t distinct = 0;
  for (std::size_t i = 0; i < stash.size(); ++i) {
    distinct += i == 0 || stash[i].version != stash[i - 1].version;
  }
  stage.stash_versions_max = std::max(stage.stash_versions_max, distinct);
}

void VersionTracker::backward(Row row, const Action& action) {
  RowState& state = rows_[static_cast<std::size_t>(row.value)];
  const auto at = std::find_if(state.stash.begin(), state.stash.end(),
                               [&](const Stashed& s) { return s.microbatch == action.microbatch; });
  if (at == state.stash.end()) {
    throw ConfigError("row " + std::to_string(row.value) + " has " + action.label() +
                      " without a forward of that microbatch before it");
  }
  if (!header_.one_block || action.stage == action.backward_to) state.contributing.push_back(*at);
  state.stash.erase(at);
}

void VersionTracker::update(Row row, const Action& action) {
  RowState& state = rows_[static_cast<std::size_t>(row.value)];
  std::int64_t& version = version_of(row, action.replica);
  const bool start_up = k_ < (header_.updates + 1) / 2;
  StageVersions& stage = stages_[static_cast<std::size_t>(action.stage.value)];
  Histogram& staleness = start_up ? stage.staleness.start_up : stage.staleness.steady;
  Histogram& delay = start_up ? delay_.start_up : delay_.steady;
  UpdateFacts facts{UpdateCount(k_), row, action, 0, &delays_};
  std::fill(delays_.begin(), delays_.end(), 0);
  for (const Stashed& contribution : state.contributing) {
    const std::int64_t lag = version - contribution.version;
    staleness.add(lag);
    facts.staleness = std::max(facts.staleness, lag);
    Reads& reads = reads_of(contribution.microbatch);
    for (std::size_t s = 0; s < delays_.size(); ++s) {
      const std::int64_t d = k_ - reads.counter[s];
      delay.add(d);
      delays_[s] = std::max(delays_[s], d);
    }
    --reads.updates_left;
  }
  state.contributing.clear();
  ++version;
  ++k_;
  if (callback_) callback_(facts);
}

}  // namespace pipewright
