#include "tests/layout/rules.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/base/text.hpp"

namespace pipewright::layout {

namespace {

constexpr std::size_t lines_max = 500;

using Words = std::vector<std::string_view>;

/// Which folders of ours the sources of a folder may include. The longest folder that fits a file
/// decides.
struct InsideRule {
  std::string_view folder;
  Words may_include;
};

const std::vector<InsideRule>& inside_rules() {
  static const std::vector<InsideRule> rules{
      {"core", {"core"}},
      {"proto/codec", {"core", "proto/codec", "pipewright/v1", "pipewright_version.hpp"}},
      {"proto/net", {"core", "proto/net"}},
      {"worker", {"core", "proto/codec", "proto/net", "worker"}},
      // Both are handed a Transport: which one is not their business.
      {"worker/transport", {"core", "proto/codec", "worker/transport"}},
      {"worker/runtime",
       {"core", "proto/codec", "proto/net", "worker/transport", "worker/runtime"}},
      {"worker/mpi", {"core", "proto/codec", "worker/transport", "worker/mpi"}},
      {"daemon", {"core", "proto/codec", "proto/net", "daemon"}},
      {"daemon/jobs", {"core", "proto/codec", "daemon/jobs"}},
      {"daemon/store", {"core", "proto/codec", "daemon/jobs", "daemon/store"}},
      {"client", {"core", "proto/codec", "proto/net", "client"}},
  };
  return rules;
}

/// Where a part that is not ours may be seen. A header belongs to the part with the longest name
/// that it begins with; other headers may be seen everywhere.
struct OutsideRule {
  std::string_view header;
  Words folders;
  Words but_not = {};
};

const std::vector<OutsideRule>& outside_rules() {
  static const Words programs{"worker", "daemon", "client"};
  static const Words all{"core", "proto", "worker", "daemon", "client"};
  static const Words queue{"daemon/jobs"};  // no I/O, no threads: events in, effects out
  static const std::vector<OutsideRule> rules{
      {"mpi.h", {"worker/mpi"}},
      {"google/protobuf", {"proto/codec"}},
      {"pipewright/v1", {"proto/codec"}},
      {"yaml-cpp", {"proto/codec"}},
      {"sqlite3.h", {"daemon/store"}},
      {"boost", {"proto/net", "worker/runtime", "daemon/net", "client/cli/net"}},
      {"boost/math", {"core/train/confidence.cpp"}},  // Student's t; headers alone
      {"openssl", {"proto/codec", "proto/net", "daemon/auth"}},
      {"CLI", programs, queue},
      {"spdlog", programs, queue},
      {"Eigen", {"core"}},
      {"Random123", {"core"}},
      {"gtest", {}},
      {"gmock", {}},
      {"fstream", all, queue},
      {"filesystem", all, queue},
      {"iostream", all, queue},
      {"thread", programs, queue},
      {"mutex", programs, queue},
      {"shared_mutex", programs, queue},
      {"condition_variable", programs, queue},
      {"future", programs, queue},
      {"atomic", programs, queue},
      {"semaphore", programs, queue},
      {"latch", programs, queue},
      {"barrier", programs, queue},
      {"stop_token", programs, queue},
      // What is stored for later is synced.
      {"unistd.h", {"worker", "daemon", "client", "proto/codec/checkpoint_folder.cpp"}, queue},
      {"fcntl.h", {"worker", "daemon", "client", "proto/codec/checkpoint_folder.cpp"}, queue},
      {"poll.h", programs, queue},
      {"netdb.h", programs, queue},
      {"arpa", programs, queue},
      {"netinet", programs, queue},
      {"sys", programs, queue},
      {"ctime", programs, queue},
      {"time.h", programs, queue},
  };
  return rules;
}

/// Words that must not stand in the code of a folder, whatever the header they come from.
struct WordRule {
  std::string_view word;
  Words forbidden_in;
};

const std::vector<WordRule>& word_rules() {
  static const Words pure{"core", "daemon/jobs"};
  static const Words everywhere{"core", "proto", "worker", "daemon", "client", "tests", "bench"};
  static const std::vector<WordRule> rules{
      // The same inputs give the same bytes; nobody here asks for the time.
      {"_clock::now", pure},
      {"clock_gettime", pure},
      {"random_device", pure},
      {"std::mt19937", pure},
      // Put together from two halves: this file obeys its own rules.
      {"TO"
       "DO",
       everywhere},
      {"FIX"
       "ME",
       everywhere},
  };
  return rules;
}

bool is_in(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

bool is_in_any(std::string_view path, const Words& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](std::string_view folder) { return is_in(path, folder); });
}

/// The rule whose `name` is the longest that `path` lies in.
template <class Rule>
const Rule* longest(const std::vector<Rule>& rules, std::string_view Rule::*name,
                    std::string_view path) {
  const Rule* found = nullptr;
  for (const Rule& rule : rules) {
    if (is_in(path, rule.*name) &&
        (found == nullptr || (rule.*name).size() > (found->*name).size())) {
      found = &rule;
    }
  }
  return found;
}

struct Include {
  std::string_view header;
  bool quoted = false;
};

std::optional<Include> include_of(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trim(line.substr(1));
  if (!line.starts_with("include")) return std::nullopt;
  line = trim(line.substr(7));
  if (line.empty() || (line.front() != '"' && line.front() != '<')) return std::nullopt;
  const bool quoted = line.front() == '"';
  const std::size_t end = line.find(quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return Include{line.substr(1, end - 1), quoted};
}

bool is_test(std::string_view path) {
  return is_in(path, "tests") || is_in(path, "bench");
}

std::string fault_of_include(std::string_view path, const Include& include) {
  const std::string header(include.header);
  if (include.quoted && header.find('/') == std::string::npos &&
      header != "pipewright_version.hpp") {
    return "\"" + header + "\" is not given from the root of the project";
  }
  if (header.starts_with("../") || header.find("/../") != std::string::npos) {
    return "\"" + header + "\" goes through a parent folder";
  }
  if (is_test(path)) return {};
  if (const OutsideRule* rule = longest(outside_rules(), &OutsideRule::header, header)) {
    if (!is_in_any(path, rule->folders) || is_in_any(path, rule->but_not)) {
      return "may not include " + header;
    }
  }
  if (!include.quoted) return {};
  const InsideRule* rule = longest(inside_rules(), &InsideRule::folder, path);
  if (rule == nullptr) return "lies in no folder of the layout";
  if (is_in_any(header, rule->may_include)) return {};
  return std::string(rule->folder) + " may not include " + header + ", only " +
         join(std::vector<std::string>(rule->may_include.begin(), rule->may_include.end()), ", ");
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./").find(c) != std::string_view::npos;
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part_of_name(text[at - 1])) &&
        (end == text.size() || !is_part_of_name(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> faults_of_source(std::string_view path, std::string_view text) {
  std::vector<std::string> faults;
  const auto add = [&](std::size_t line, const std::string& message) {
    faults.push_back(std::string(path) + ":" + std::to_string(line) + ": " + message);
  };
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (const auto include = include_of(lines[i])) {
      const std::string fault = fault_of_include(path, *include);
      if (!fault.empty()) add(i + 1, fault);
    }
    for (const WordRule& rule : word_rules()) {
      if (lines[i].find(rule.word) != std::string_view::npos &&
          is_in_any(path, rule.forbidden_in)) {
        add(i + 1, std::string(rule.word) + " has no place here");
      }
    }
  }
  if (!is_test(path) && lines.size() > lines_max) {
    add(lines_max + 1, "more than " + std::to_string(lines_max) + " lines");
  }
  return faults;
}

std::vector<std::string> faults_of_listing(std::string_view path, std::string_view cmake_folder,
                                           std::string_view listed) {
  std::vector<std::string> faults;
  const std::string file(cmake_folder);
  if (has_word(listed, "GLOB")) {
    faults.push_back(file + "/CMakeLists.txt: lists sources with GLOB, not by hand");
  }
  const std::string_view folder = path.substr(0, path.rfind('/'));
  const bool is_plugin = folder == "core/objectives" || folder == "core/schedules";
  const std::string_view name = path.substr(cmake_folder.size() + 1);
  if (path.ends_with(".cpp") && is_plugin == has_word(listed, name)) {
    faults.push_back(std::string(path) +
                     (is_plugin ? ": a plug-in that is listed in " : ": not listed in ") + file +
                     "/CMakeLists.txt");
  }
  return faults;
}

}  // namespace pipewright::layout
