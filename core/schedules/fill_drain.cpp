// Fill-drain: GPipe (Huang et al., NeurIPS 2019).
#include "core/schedule/flush.hpp"

namespace pipewright {
namespace {

const Registration<ScheduleKind> registration{flush_kind(
    "fill_drain", "GPipe: all forwards of a group, then all its backwards, then one update.",
    [](int stages, std::int64_t group) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(stages), group);
    })};

}  // namespace
}  // namespace pipewright
