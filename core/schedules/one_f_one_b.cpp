// 1F1B with a flush (Narayanan et al., SC 2021).
#include "core/schedule/flush.hpp"

namespace pipewright {
namespace {

const Registration<ScheduleKind> registration{flush_kind(
    "one_f_one_b", "1F1B with a flush: forwards and backwards in turn, one update per group.",
    [](int stages, std::int64_t) { return default_warm_up(stages); })};

}  // namespace
}  // namespace pipewright
