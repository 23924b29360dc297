#include "core/schedule/known.hpp"

#include <cmath>
#include <optional>
#include <string_view>

namespace pipewright {

namespace {

constexpr std::string_view per_stage = "per_stage.";

std::optional<std::vector<double>> measure(const Value& metrics, std::string_view metric) {
  std::vector<const Value*> values;
  if (metric.starts_with(per_stage)) {
    for (const Value& stage : metrics.at("per_stage").as_list()) {
      values.push_back(find_path(stage, metric.substr(per_stage.size())));
    }
  } else {
    values.push_back(find_path(metrics, metric));
  }
  std::vector<double> measured;
  for (const Value* value : values) {
    if (value == nullptr || !value->is_number()) return std::nullopt;
    measured.push_back(value->as_real());
  }
  return measured;
}

bool agree(double measured, double expected, KnownResult::Relation relation) {
  const double slack = 1e-12 * std::abs(expected);
  if (relation == KnownResult::Relation::at_most) return measured <= expected + slack;
  return std::abs(measured - expected) <= slack;
}

Value number(double value) {
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
  return is_whole ? Value(static_cast<std::int64_t>(value)) : Value(value);
}

Value numbers(const std::vector<double>& values, bool is_list) {
  if (!is_list) return number(values.front());
  Value list = Value::list();
  for (const double value : values) list.as_list().push_back(number(value));
  return list;
}

}  // namespace

Value compare_known(const std::vector<KnownResult>& known, const Value& metrics) {
  Value list = Value::list();
  for (const KnownResult& result : known) {
    const auto measured = measure(metrics, result.metric);
    if (!measured) continue;
    bool holds = measured->size() == result.expected.size();
    for (std::size_t i = 0; holds && i < measured->size(); ++i) {
      holds = agree((*measured)[i], result.expected[i], result.relation);
    }
    const bool is_list = result.metric.starts_with(per_stage);
    Value entry = Value::map();
    entry.set("what", result.what);
    entry.set("formula", result.formula);
    entry.set("metric", result.metric);
    entry.set("expected", numbers(result.expected, is_list));
    entry.set("measured", numbers(*measured, is_list));
    entry.set("holds", holds);
    list.as_list().push_back(std::move(entry));
  }
  return list;
}

}  // namespace pipewright
