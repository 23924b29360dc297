#include "daemon/pools/process_tree.hpp"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "core/base/text.hpp"

namespace pipewright {
namespace {

/// The parent that "pid (name) state parent ..." names; 0 for a process that has just gone.
pid_t parent_in(const std::filesystem::path& stat) {
  std::ifstream file(stat);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::string_view rest = std::string_view(text).substr(name_end + 1);
  const std::vector<std::string_view> words = split(trim(rest), ' ');
  return words.size() < 2 ? 0 : static_cast<pid_t>(parse_integer(words[1]).value_or(0));
}

}  // namespace

std::vector<pid_t> processes_below(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ec)) {
    const auto pid = parse_integer(entry.path().filename().string());
    if (!pid) continue;
    if (const pid_t parent = parent_in(entry.path() / "stat"); parent > 0) {
      children.emplace(parent, static_cast<pid_t>(*pid));
    }
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto at = first; at != last; ++at) found.push_back(at->second);
  }
  found.erase(found.begin());
  return found;
}

void kill_tree(pid_t root) {
  const std::vector<pid_t> below = processes_below(root);
  ::kill(root, SIGKILL);
  for (const pid_t pid : below) ::kill(pid, SIGKILL);
}

}  // namespace pipewright
