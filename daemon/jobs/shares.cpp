#include "daemon/jobs/shares.hpp"

#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace pipewright::jobs {
namespace {

constexpr double kept_seconds = 60;
constexpr std::size_t users_max = 1000;  // before those without a use worth mentioning are dropped

}  // namespace

Shares::Use Shares::at(const std::string& user, Time now) const {
  const auto known = uses_.find(user);
  if (known == uses_.end()) return {0, 0, now};
  Use use = known->second;
  using Seconds = std::chrono::duration<double>;
  const double kept = std::exp2(-(Seconds(now - use.at) / Seconds(half_life_)));
  // The integral for constant ranks r: r half_life / ln 2 times what has decayed of it.
  const double rank_seconds_max =
      Seconds(half_life_).count() / std::numbers::ln2 * static_cast<double>(use.ranks);
  use.rank_seconds = kept * use.rank_seconds + (1 - kept) * rank_seconds_max;
  use.at = now;
  return use;
}

void Shares::take(const std::string& user, std::size_t ranks, Time now) {
  if (uses_.size() >= users_max && !uses_.contains(user)) forget_the_idle(now);
  Use use = at(user, now);
  use.ranks += ranks;
  uses_[user] = use;
}

void Shares::give_back(const std::string& user, std::size_t ranks, Time now) {
  Use use = at(user, now);
  PW_CHECK(use.ranks >= ranks,
           "user '" << user << "' gives back " << ranks << " ranks of " << use.ranks);
  use.ranks -= ranks;
  uses_[user] = use;
}

double Shares::load(const std::string& user, Time now) const {
  const Use use = at(user, now);
  return use.rank_seconds + kept_seconds * static_cast<double>(use.ranks);
}

void Shares::forget_the_idle(Time now) {
  std::erase_if(uses_, [&](const auto& item) {
    return item.second.ranks == 0 && at(item.first, now).rank_seconds < 1;
  });
}

}  // namespace pipewright::jobs
