#include "core/theory/rpd_bound.hpp"

namespace pipewright::theory {

double RpdBound::value() const {
  const double s = stages;
  const double g2 = gradient_norm * gradient_norm;
  const double lag = step * smoothness * static_cast<double>(delay);
  return 2 * s * (start_value - optimum) / (step * static_cast<double>(updates)) +
         step * s * smoothness * g2 + lag * lag * g2;
}

}  // namespace pipewright::theory
