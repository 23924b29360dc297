#include "daemon/jobs/shares.hpp"

#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace pipewright::jobs {
namespace {

constexpr std::size_t users_max = 1000;  // before those without a use worth mentioning are dropped

}  // namespace

double Shares::of_ever() const {
  return std::chrono::duration<double>(half_life_).count() / std::numbers::ln2;
}

Shares::Use Shares::at(const std::string& user, Time now) const {
  const auto known = uses_.find(user);
  if (known == uses_.end()) return {0, 0, now};
  Use use = known->second;
  const double halvings =
      std::chrono::duration<double>(now - use.at) / std::chrono::duration<double>(half_life_);
  const double kept = std::exp2(-halvings);
  use.rank_seconds =
      kept * use.rank_seconds + (1 - kept) * of_ever() * static_cast<double>(use.ranks);
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
  return use.rank_seconds + of_ever() * static_cast<double>(use.ranks);
}

void Shares::forget_the_idle(Time now) {
  std::erase_if(uses_, [&](const auto& item) {
    return item.second.ranks == 0 && at(item.first, now).rank_seconds < 1;
  });
}

}  // namespace pipewright::jobs
