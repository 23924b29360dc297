// Counter-based random numbers: a draw depends on its key and nothing else, so never on the order
// of execution. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11) as the Random123 package has it.
#pragma once

#include <array>
#include <cstdint>

namespace pipewright {

/// What a stream of draws is for. A number once given is never reused: curves depend on it.
enum class DrawKind : std::uint32_t {
  initial_weights = 1,
  generated_data = 2,
  generated_targets = 3,
  shuffle = 4,
  cost_jitter = 5,
  link_jitter = 6,
  rpd_sampling = 7,
  label_noise = 8,
  gradient_noise = 9,
  text_sampling = 10,
};

/// The stream of draws of one (seed, kind, a, b): a and b are a stage and a microbatch, or whatever
/// else names the draw. Satisfies UniformRandomBitGenerator over 32-bit words.
class RandomStream {
 public:
  using result_type = std::uint32_t;

  RandomStream(std::uint64_t seed, DrawKind kind, std::uint32_t a = 0, std::uint64_t b = 0);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffffu; }
  result_type operator()();

  /// Uniform in (0, 1), 53 bits.
  double uniform();
  /// Uniform in {0, ..., bound - 1}, without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box and Muller).
  double normal();

 private:
  void refill();

  std::uint64_t seed_;
  std::uint32_t kind_;
  std::uint32_t a_;
  std::uint64_t b_;
  std::uint32_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

}  // namespace pipewright
