#include "core/schedule/rpd_draws.hpp"

#include <algorithm>
#include <deque>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/data/lines.hpp"
#include "core/schedule/kind.hpp"
#include "core/schedule/schedule_file.hpp"
#include "core/schedule/versions.hpp"
#include "core/sim/timeline.hpp"

namespace pipewright {

namespace {

/// Stage, batch and delays by their own rules. Every draw depends on the seed and k alone.
class RandomDraws : public DrawSource {
 public:
  explicit RandomDraws(const RandomDrawRules& rules) : rules_(rules) {}

  Draw next() override {
    RandomStream random(rules_.seed, DrawKind::rpd_sampling, 0, static_cast<std::uint64_t>(k_));
    Draw draw;
    const std::int64_t stage = draw_below(random, rules_.stages);
    const std::int64_t batch = draw_below(random, rules_.batches);
    draw.stage = Stage(static_cast<std::int32_t>(
        rules_.stage_order == DrawOrder::uniform ? stage : k_ % rules_.stages));
    draw.batch = rules_.batch_order == DrawOrder::uniform ? Batch(batch)
                                                          : rules_.batch_cycle.of(Microbatch(k_));
    const std::int64_t bound = std::min(rules_.delay_max, k_);
    for (int s = 0; s < rules_.stages; ++s) {
      const auto drawn =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound) + 1));
      draw.delays.push_back(rules_.delays == DelaySource::uniform ? drawn
                            : rules_.delays == DelaySource::max   ? bound
                                                                  : 0);
    }
    ++k_;
    return draw;
  }

 private:
  static std::int64_t draw_below(RandomStream& random, std::int64_t count) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  }

  RandomDrawRules rules_;
  std::int64_t k_ = 0;
};

/// The stages, batches and exact delays of PipeDream's own timeline on the paper's time model.
class PipeDreamDraws : public DrawSource {
 public:
  PipeDreamDraws(int stages, std::int64_t updates, BatchOrder batches)
      : batches_(std::move(batches)),
        simulator_(make_pipedream(stages, updates), {}, {}),
        tracker_(simulator_.header()) {
    tracker_.on_update([this](const UpdateFacts& facts) {
      const Action& action = facts.action;
      ready_.push_back({action.stage, batches_.of(action.microbatch), *facts.delays});
    });
  }

  Draw next() override {
    while (ready_.empty()) {
      const auto entry = simulator_.next();
      PW_CHECK(entry.has_value(), "PipeDream's timeline has fewer updates than were asked for");
      tracker_.add(entry->row, entry->action);
    }
    Draw draw = std::move(ready_.front());
    ready_.pop_front();
    return draw;
  }

 private:
  static std::unique_ptr<ScheduleSource> make_pipedream(int stages, std::int64_t updates) {
    Value parameters = Value::map();
    parameters.set("stages", stages);
    // Its last microbatches drain: enough of them that the first `updates` are those of a long run.
    parameters.set("microbatches", updates / stages + 2 * stages + 2);
    parameters.set("order", "greedy");
    static const CostModel cost;
    static const LinkModel link;
    return ScheduleRegistry::instance().at("pipedream").make(parameters, {cost, link, 0, 0});
  }

  BatchOrder batches_;
  Simulator simulator_;
  VersionTracker tracker_;
  std::deque<Draw> ready_;
};

/// Recorded draws: CSV `iteration,stage,batch,delay_0,...` with a first line of names.
class RecordedDraws : public DrawSource {
 public:
  RecordedDraws(const std::string& path, int stages, std::int64_t updates) : path_(path) {
    const auto stream = open_schedule_file(path);
    std::string line;
    std::int64_t number = 0;
    while (static_cast<std::int64_t>(draws_.size()) < updates &&
           next_line(*stream, line, path, number + 1)) {
      ++number;
      if (number == 1 || trim(line).empty()) continue;
      draws_.push_back(parse(line, number, stages));
    }
    if (static_cast<std::int64_t>(draws_.size()) < updates) {
      throw DataError(path + ": holds " + std::to_string(draws_.size()) + " iterations; " +
                      std::to_string(updates) + " updates are asked for");
    }
  }

  Draw next() override {
    Draw draw = std::move(draws_.front());
    draws_.pop_front();
    return draw;
  }

  std::int64_t delay_max() const { return delay_max_; }

 private:
  [[noreturn]] void fail(std::int64_t line, const std::string& message) const {
    throw DataError(path_ + ":" + std::to_string(line) + ": " + message);
  }

  Draw parse(const std::string& line, std::int64_t number, int stages) {
    const auto cells = split(trim(line), ',');
    if (cells.size() != static_cast<std::size_t>(stages) + 3) {
      fail(number, "has " + std::to_string(cells.size()) +
                       " columns; iteration, stage, batch and " + std::to_string(stages) +
                       " delays are " + std::to_string(stages + 3));
    }
    const auto k = static_cast<std::int64_t>(draws_.size());
    const auto whole = [&](std::size_t column, const char* what, std::int64_t most) {
      const auto value = parse_integer(trim(cells[column]));
      if (!value || *value < 0 || *value > most) {
        fail(number, std::string(what) + " '" + std::string(cells[column]) +
                         "' is not a whole number from 0 to " + std::to_string(most));
      }
      return *value;
    };
    if (whole(0, "iteration", INT64_MAX) != k)
      fail(number, "iteration " + std::to_string(k) + " is expected");
    Draw draw;
    draw.stage = Stage(static_cast<std::int32_t>(whole(1, "stage", stages - 1)));
    draw.batch = Batch(whole(2, "batch", INT64_MAX));
    for (int s = 0; s < stages; ++s) {
      // A read before the first update does not exist.
      draw.delays.push_back(whole(static_cast<std::size_t>(s) + 3, "delay", k));
      delay_max_ = std::max(delay_max_, draw.delays.back());
    }
    return draw;
  }

  std::string path_;
  std::deque<Draw> draws_;
  std::int64_t delay_max_ = 0;
};

/// PipeDream's draws, with what is not to be PipeDream's taken from others.
class MixedDraws : public DrawSource {
 public:
  MixedDraws(std::unique_ptr<DrawSource> pipedream, std::unique_ptr<DrawSource> others,
             PipeDreamParts parts)
      : pipedream_(std::move(pipedream)), others_(std::move(others)), parts_(parts) {}

  Draw next() override {
    Draw draw = pipedream_->next();
    Draw other = others_->next();
    if (!parts_.delays) draw.delays = std::move(other.delays);
    if (!parts_.stages) draw.stage = other.stage;
    if (!parts_.batches) draw.batch = other.batch;
    return draw;
  }

 private:
  std::unique_ptr<DrawSource> pipedream_, others_;
  PipeDreamParts parts_;
};

}  // namespace

std::unique_ptr<DrawSource> random_draws(const RandomDrawRules& rules) {
  return std::make_unique<RandomDraws>(rules);
}

std::unique_ptr<DrawSource> pipedream_draws(int stages, std::int64_t updates, BatchOrder batches) {
  return std::make_unique<PipeDreamDraws>(stages, updates, std::move(batches));
}

std::unique_ptr<DrawSource> recorded_draws(const std::string& path, int stages,
                                           std::int64_t updates) {
  return std::make_unique<RecordedDraws>(path, stages, updates);
}

std::int64_t recorded_delay_max(const std::string& path, int stages, std::int64_t updates) {
  return RecordedDraws(path, stages, updates).delay_max();
}

std::unique_ptr<DrawSource> mixed_draws(std::unique_ptr<DrawSource> pipedream,
                                        std::unique_ptr<DrawSource> others, PipeDreamParts parts) {
  return std::make_unique<MixedDraws>(std::move(pipedream), std::move(others), parts);
}

}  // namespace pipewright
