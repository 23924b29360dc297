#include "core/train/mean.hpp"

#include "core/base/tensor_math.hpp"

namespace pipewright {

namespace {

/// Mean of the replicas' blocks into `mean`, added in the order of the replicas: both placements
/// and any number of ranks give the same bytes.
template <class T>
void write_mean(const std::vector<const Tensor*>& replicas, Tensor& mean) {
  auto out = vec<T>(mean);
  out = vec<T>(*replicas.front());
  for (std::size_t r = 1; r < replicas.size(); ++r) out += vec<T>(*replicas[r]);
  if (replicas.size() > 1) out /= static_cast<T>(replicas.size());
}

}  // namespace

Tensor mean_of(const std::vector<const Tensor*>& replicas) {
  Tensor mean(replicas.front()->dtype(), replicas.front()->shape());
  if (mean.dtype() == DType::float32) {
    write_mean<float>(replicas, mean);
  } else {
    write_mean<double>(replicas, mean);
  }
  return mean;
}

}  // namespace pipewright
