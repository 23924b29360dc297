#include "worker/runtime/rank_watch.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {

namespace {

constexpr std::chrono::milliseconds look_interval{100};

/// The text of /proc/PID/stat: "pid (name) state ..."; empty when there is no such process here.
std::string process_text(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "(name)", which may hold anything.
std::string name_in(const std::string& text) {
  const std::size_t begin = text.find('('), end = text.rfind(')');
  return end == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
}

}  // namespace

RankWatch::RankWatch(std::vector<RankInfo> ranks, Milliseconds silence_max, Time now)
    : silence_max_(silence_max), heard_to_(now), looked_(now) {
  const std::string host = ranks.front().host;
  const std::string program = name_in(process_text(ranks.front().pid));
  for (RankInfo& info : ranks) {
    // A machine of the same name may be another one, or see other processes.
    const bool is_here =
        info.host == host && !program.empty() && name_in(process_text(info.pid)) == program;
    ranks_.push_back({std::move(info), is_here, now, false});
  }
}

void RankWatch::look(const std::set<std::uint32_t>& starting, Time now) {
  // What was sent while this rank itself computed has been read only now, or is still under way.
  const auto gap = now - std::exchange(heard_to_, now);
  if (gap > silence_max_ / 4) {
    for (Rank& rank : ranks_) rank.heard = std::min(now, rank.heard + gap);
  }
  if (now - looked_ < look_interval) return;
  looked_ = now;
  for (std::uint32_t r = 1; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    // Its launcher takes notice of its end at once, so nothing is left of it then.
    const auto pid = static_cast<pid_t>(rank.info.pid);
    if (rank.is_here && ::kill(pid, 0) != 0 && errno == ESRCH) rank.has_died = true;
    const Milliseconds patience = silence_max_ * (starting.contains(r) ? starting_factor : 1);
    if (rank.has_died || now - rank.heard > patience) missing_.insert(r);
  }
}

bool RankWatch::is_there(std::uint32_t rank) const {
  const Rank& one = ranks_.at(rank);
  if (!one.is_here || one.has_died) return false;
  const std::string text = process_text(one.info.pid);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  static constexpr std::string_view not_there = "ZXxTt";  // dead or stopped
  return not_there.find(text[name_end + 2]) == std::string_view::npos;
}

void CoordinatorWatch::look(Time now) {
  const auto gap = now - std::exchange(looked_, now);
  if (gap > patience_ / 4) heard_ = std::min(now, heard_ + gap);
  if (!speaks_ || now - heard_ <= patience_) return;
  throw Error("rank 0 cannot be reached: it has said nothing for " +
              std::to_string(patience_.count()) + " ms");
}

std::string RankWatch::describe(std::uint32_t rank, Time now) const {
  const Rank& one = ranks_.at(rank);
  const std::string name = "rank " + std::to_string(rank) + " (host " + one.info.host +
                           ", process " + std::to_string(one.info.pid) + ") ";
  if (one.has_died) return name + "has died";
  const std::chrono::duration<double> silent = now - one.heard;
  return name + "has said nothing for " + format_number(std::round(silent.count() * 10) / 10) +
         " s";
}

}  // namespace pipewright
