// The registry through which plug-ins (schedules, objectives, optimizers) are found. A plug-in is
// one .cpp file with a namespace-scope
//   const Registration<ScheduleKind> registration{{.kind = "pipedream", ...}};
// and nothing else refers to it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/params.hpp"
#include "core/base/text.hpp"

namespace pipewright {

/// `Entry` has members `kind` (std::string), `summary` (one sentence) and `parameters`
/// (std::vector<ParamSpec>).
template <class Entry>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  void add(Entry entry) {
    const auto at =
        std::lower_bound(entries_.begin(), entries_.end(), entry.kind,
                         [](const Entry& e, const std::string& kind) { return e.kind < kind; });
    PW_CHECK(at == entries_.end() || at->kind != entry.kind,
             "two plug-ins register the kind '" << entry.kind << "'");
    entries_.insert(at, std::move(entry));
  }

  /// In the order of their kinds: the order of linking must not show.
  const std::vector<Entry>& all() const { return entries_; }

  const Entry* find(std::string_view kind) const {
    for (const Entry& entry : entries_) {
      if (entry.kind == kind) return &entry;
    }
    return nullptr;
  }

  const Entry& at(std::string_view kind) const {
    if (const Entry* entry = find(kind)) return *entry;
    std::vector<std::string> kinds;
    for (const Entry& entry : entries_) kinds.push_back(entry.kind);
    throw ConfigError("'" + std::string(kind) + "' is not known" + suggest(kind, kinds));
  }

  /// A spec that takes exactly one of the kinds with its parameters.
  ParamSpec spec(std::string name, std::string help) const {
    std::vector<ParamSpec> children;
    for (const Entry& entry : entries_) {
      children.push_back(ParamSpec::group_of(entry.kind, entry.summary, entry.parameters));
    }
    return ParamSpec::one_of(std::move(name), std::move(help), std::move(children));
  }

 private:
  std::vector<Entry> entries_;
};

template <class Entry>
struct Registration {
  explicit Registration(Entry entry) { Registry<Entry>::instance().add(std::move(entry)); }
};

}  // namespace pipewright
