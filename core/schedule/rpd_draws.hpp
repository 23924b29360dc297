// What Randomized PipeDream draws for each of its updates, from all the sources that there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/schedule/batch_order.hpp"

namespace pipewright {

struct Draw {
  Stage stage;
  Batch batch;
  std::vector<std::int64_t> delays;  // per block
};

/// Gives the draws of k = 0, 1, ... in order.
class DrawSource {
 public:
  virtual ~DrawSource() = default;
  virtual Draw next() = 0;
};

enum class DelaySource { uniform, max, zero };
enum class DrawOrder { uniform, cyclic };

/// Stage, batch and delays by their own rules. Every draw depends on the seed and k alone.
struct RandomDrawRules {
  int stages = 1;
  std::int64_t batches = 1;
  BatchOrder batch_cycle;  // that a cyclic order follows
  std::int64_t delay_max = 0;
  DelaySource delays = DelaySource::uniform;
  DrawOrder stage_order = DrawOrder::uniform;
  DrawOrder batch_order = DrawOrder::uniform;
  std::uint64_t seed = 0;
};
std::unique_ptr<DrawSource> random_draws(const RandomDrawRules& rules);

/// The stages, batches and exact delays of PipeDream's own timeline on the paper's time model.
std::unique_ptr<DrawSource> pipedream_draws(int stages, std::int64_t updates, BatchOrder batches);

/// Recorded draws: CSV `iteration,stage,batch,delay_0,...` with a first line of names. Throws
/// DataError with file and line.
std::unique_ptr<DrawSource> recorded_draws(const std::string& path, int stages,
                                           std::int64_t updates);
/// The largest delay in such a file.
std::int64_t recorded_delay_max(const std::string& path, int stages, std::int64_t updates);

/// PipeDream's draws, but what is not wanted of them is taken from `others`.
struct PipeDreamParts {
  bool delays = true, stages = true, batches = true;
};
std::unique_ptr<DrawSource> mixed_draws(std::unique_ptr<DrawSource> pipedream,
                                        std::unique_ptr<DrawSource> others, PipeDreamParts parts);

}  // namespace pipewright
