#include "core/schedule/batch_order.hpp"

#include <numeric>
#include <utility>

#include "core/base/random.hpp"

namespace pipewright {

Batch BatchOrder::of(Microbatch m) {
  if (batches_ == 0) return Batch(m.value);
  const std::int64_t in_epoch = m.value % batches_;
  if (!seed_) return Batch(in_epoch);
  const std::int64_t number = m.value / batches_;
  Epoch& epoch = epochs_[static_cast<std::size_t>(number % 2)];
  if (epoch.number != number) {
    epoch.number = number;
    epoch.order.resize(static_cast<std::size_t>(batches_));
    std::iota(epoch.order.begin(), epoch.order.end(), std::int64_t{0});
    RandomStream random(*seed_, DrawKind::shuffle, 0, static_cast<std::uint64_t>(number));
    for (std::size_t i = epoch.order.size() - 1; i > 0; --i) {
      std::swap(epoch.order[i], epoch.order[random.below(i + 1)]);
    }
  }
  return Batch(epoch.order[static_cast<std::size_t>(in_epoch)]);
}

}  // namespace pipewright
