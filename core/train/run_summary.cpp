// What a run's summary says, from what its coordinator has counted.
#include <cmath>

#include "core/train/plan_value.hpp"
#include "core/train/run_control.hpp"

namespace pipewright {

Value RunControl::target_value() const {
  Value value = Value::map();
  value.set("value", *job_.target);
  const auto set = [&](const char* key, std::int64_t number) {
    value.set(key, target_ ? Value(number) : Value());
  };
  const Reached reached = target_.value_or(Reached());
  set("tick", reached.tick.value);
  set("updates", reached.updates);
  set("microbatches", reached.microbatches);
  set("bytes_sent", reached.messages * shape_.activation_bytes);
  return value;
}

namespace {

Value number(const std::optional<double>& value) {
  return value ? Value(*value) : Value();
}

}  // namespace

/// exp of the losses of a language model, which are nats per token.
Value RunControl::perplexity_value() const {
  Value value = Value::map();
  const auto set = [&](const char* key, const std::optional<double>& loss) {
    value.set(key, loss ? Value(std::exp(*loss)) : Value());
  };
  set("last_stage", loss_last_);
  set("objective", objective_last_);
  set("validation", validation_last_);
  return value;
}

Value RunControl::summary() const {
  Value value = Value::map();
  value.set("name", job_.name);
  value.set("objective", job_.objective_kind);
  value.set("schedule", job_.schedule_kind);
  value.set("optimizer", job_.optimizer_kind);
  value.set("stages", header_.stages);
  value.set("parameters", shape_.parameters());
  value.set("seed", static_cast<std::int64_t>(job_.seed));
  value.set("objective_first", number(objective_first_));
  value.set("objective_last", number(objective_last_));
  value.set("objective_best", number(objective_best_));
  if (validation_last_) {
    value.set("validation_last", number(validation_last_));
    value.set("validation_best", number(validation_best_));
  }
  value.set("last_stage_loss", number(loss_last_));
  if (shape_.tokens_per_batch > 0) {
    value.set("perplexity", perplexity_value());
    value.set("tokens", metrics_.microbatches() * shape_.tokens_per_batch);
  }
  if (!shape_.facts.is_null()) value.set("objective_facts", shape_.facts);
  if (job_.target) value.set("target", target_value());
  if (theory_) value.set("theory", theory_->to_value());
  if (divergence_) {
    Value diverged = Value::map();
    diverged.set("tick", divergence_->tick.value);
    diverged.set("what", divergence_->what);
    value.set("diverged", std::move(diverged));
  } else {
    value.set("diverged", false);
  }
  value.set("clock", measured_ ? "real" : "virtual");
  if (measured_) value.set("planned_makespan_ticks", totals_.makespan.value);
  stability_.describe(
      value,
      divergence_ ? divergence_->what + " at tick " + std::to_string(divergence_->tick.value) : "");
  const Value planned = plan_value(job_, metrics_, &shape_);
  for (const auto& [key, part] : planned.as_map()) value.set(key, part);
  Value links = Value::list();
  std::int64_t messages = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto add = [&](std::int64_t bytes, std::int64_t to) {
      if (bytes == 0) return;
      Value link = Value::map();
      link.set("from", static_cast<std::int64_t>(r));
      link.set("to", to);
      link.set("bytes", bytes);
      links.as_list().push_back(std::move(link));
    };
    add(rows_[r].bytes_to_next, static_cast<std::int64_t>(r) + 1);
    add(rows_[r].bytes_to_previous, static_cast<std::int64_t>(r) - 1);
    if (!rows_[r].final) continue;
    messages += rows_[r].final->messages_sent;
    Value& stage = value.find("per_stage")
                       ->as_list()[static_cast<std::size_t>(
                           header_.stage_of(Row(static_cast<std::int32_t>(r))).value)];
    const auto add_bytes = [&](const char* key, std::int64_t bytes) {
      const Value* before = stage.find(key);
      stage.set(key, (before != nullptr ? before->as_integer() : 0) + bytes);
    };
    add_bytes("stash_bytes_max", rows_[r].final->stash_bytes_max);
    add_bytes("activation_bytes_max", rows_[r].final->activation_bytes_max);
  }
  // Formulas are of whole runs, and of the times of the plan.
  if (divergence_ || measured_) value.set("known", Value::list());
  // Where the rows of a diverged run stopped is not part of its result.
  if (!divergence_) {
    value.set("messages_sent", messages);
    value.set("links", std::move(links));
  }
  return value;
}

}  // namespace pipewright
