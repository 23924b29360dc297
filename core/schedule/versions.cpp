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
      replica_k_(static_cast<std::size_t>(header.replicas)),
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
      reads_newest ? replica_k_[static_cast<std::size_t>(action.replica.value)]
                   : action.read_update.value;
  RowState& state = rows_[static_cast<std::size_t>(row.value)];
  state.last_read = version_read(row, action);
  if (header_.one_block) note_forward(state, action.microbatch);
  if (action.stage < action.backward_to) return;
  const Stashed stashed{action.microbatch, action.replica, state.last_read};
  state.stash_distinct += state.stash.empty() || differ(state.stash.back(), stashed);
  state.stash.push_back(stashed);
  StageVersions& stage = stages_[static_cast<std::size_t>(header_.stage_of(row).value)];
  stage.stash_microbatches_max =
      std::max(stage.stash_microbatches_max, static_cast<std::int64_t>(state.stash.size()));
  stage.stash_versions_max = std::max(stage.stash_versions_max, state.stash_distinct);
}

std::int64_t VersionTracker::version_read(Row row, const Action& action) {
  if (action.read_update == Action::reads_newest) return version_of(row, action.replica);
  const RowState& state = rows_[static_cast<std::size_t>(row.value)];
  // Own updates happen in the order of k.
  const auto first_unseen = std::lower_bound(state.own_updates.begin(), state.own_updates.end(),
                                             Microbatch(action.read_update.value));
  return state.older_updates + (first_unseen - state.own_updates.begin());
}

void VersionTracker::note_forward(RowState& state, Microbatch m) {
  auto& ahead = state.forwards_ahead;
  ahead.push_back(m);
  while (true) {
    const auto next = std::find(ahead.begin(), ahead.end(), state.next_forward);
    if (next == ahead.end()) break;
    ahead.erase(next);
    ++state.next_forward;
  }
  while (!state.own_updates.empty() &&
         state.own_updates.front().value < state.next_forward.value - header_.delay_max) {
    state.own_updates.pop_front();
    ++state.older_updates;
  }
}

/// Of the versions in the order of their forwards those count that differ from the one before.
void VersionTracker::drop(RowState& state, std::vector<Stashed>::iterator at) {
  const bool first = at == state.stash.begin();
  const auto next = at + 1;
  state.stash_distinct -= first || differ(*(at - 1), *at);
  if (next != state.stash.end()) {
    state.stash_distinct -= differ(*at, *next);
    state.stash_distinct += first || differ(*(at - 1), *next);
  }
  state.stash.erase(at);
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
  drop(state, at);
}

void VersionTracker::update(Row row, const Action& action) {
  RowState& state = rows_[static_cast<std::size_t>(row.value)];
  std::int64_t& version = version_of(row, action.replica);
  const bool start_up = k_ < (header_.updates + 1) / 2;
  StageVersions& stage = stages_[static_cast<std::size_t>(action.stage.value)];
  Histogram& staleness = start_up ? stage.staleness.start_up : stage.staleness.steady;
  Histogram& delay = start_up ? delay_.start_up : delay_.steady;
  std::int64_t& replica_k = replica_k_[static_cast<std::size_t>(action.replica.value)];
  const std::int64_t k = header_.one_block ? action.microbatch.value : replica_k;
  UpdateFacts facts{UpdateCount(header_.one_block ? k : k_), row, action, 0, &delays_};
  std::fill(delays_.begin(), delays_.end(), 0);
  // RPD may have gradients of later updates ready; all others use up what there is.
  const auto is_of_another = [&](const Stashed& contribution) {
    return header_.one_block && contribution.microbatch != action.microbatch;
  };
  for (const Stashed& contribution : state.contributing) {
    if (is_of_another(contribution)) continue;
    const std::int64_t lag = version - contribution.version;
    staleness.add(lag);
    facts.staleness = std::max(facts.staleness, lag);
    Reads& reads = reads_of(contribution.microbatch);
    for (std::size_t s = 0; s < delays_.size(); ++s) {
      const std::int64_t d = k - reads.counter[s];
      delay.add(d);
      delays_[s] = std::max(delays_[s], d);
    }
    --reads.updates_left;
  }
  std::erase_if(state.contributing, [&](const auto& c) { return !is_of_another(c); });
  if (header_.one_block) state.own_updates.push_back(action.microbatch);
  ++version;
  ++replica_k;
  ++k_;
  if (callback_) callback_(facts);
}

}  // namespace pipewright
