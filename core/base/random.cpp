#include "core/base/random.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace pipewright {

RandomStream::RandomStream(std::uint64_t seed, DrawKind kind, std::uint32_t a, std::uint64_t b)
    : seed_(seed), kind_(static_cast<std::uint32_t>(kind)), a_(a), b_(b) {}

void RandomStream::refill() {
  // Key: the seed, its upper half mixed with the kind. Counter: a, b, and the number of the block.
  const r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(seed_),
       static_cast<std::uint32_t>(seed_ >> 32) ^ (kind_ * 0x9e3779b9u)}};
  const r123::Philox4x32::ctr_type counter{
      {block_++, a_, static_cast<std::uint32_t>(b_), static_cast<std::uint32_t>(b_ >> 32)}};
  const auto out = r123::Philox4x32{}(counter, key);
  for (unsigned i = 0; i < 4; ++i) words_[i] = out[i];
  used_ = 0;
}

RandomStream::result_type RandomStream::operator()() {
  if (used_ == words_.size()) refill();
  return words_[used_++];
}

double RandomStream::uniform() {
  const std::uint64_t high = (*this)();
  const std::uint64_t low = (*this)();
  const std::uint64_t bits = ((high << 32) | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Rejection: the last, incomplete copy of [0, bound) in 64 bits is drawn again.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  while (true) {
    const std::uint64_t high = (*this)();
    const std::uint64_t draw = (high << 32) | (*this)();
    if (draw < limit) return draw % bound;
  }
}

double RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

}  // namespace pipewright
