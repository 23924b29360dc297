#include "core/train/plan_value.hpp"

namespace pipewright {

namespace {

Value links_of(const TimelineMetrics& metrics, std::int64_t message_bytes) {
  Value links = Value::list();
  const auto& messages = metrics.messages();
  for (std::size_t r = 0; r < messages.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    for (const auto& [count, to] :
         {std::pair{messages[r].to_next, row + 1}, {messages[r].to_previous, row - 1}}) {
      if (count == 0) continue;
      Value link = Value::map();
      link.set("from", row);
      link.set("to", to);
      link.set("bytes", count * message_bytes);
      links.as_list().push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace

Value plan_value(const JobConfig& job, const TimelineMetrics& metrics,
                 const ObjectiveShape* shape) {
  Value value = metrics.to_value();
  if (shape != nullptr) {
    value.set("bytes_sent", metrics.messages_sent() * shape->activation_bytes);
    value.set("links", links_of(metrics, shape->activation_bytes));
    auto& stages = value.find("per_stage")->as_list();
    for (std::size_t s = 0; s < stages.size(); ++s) {
      stages[s].set("stash_weight_bytes_max", metrics.versions().stages()[s].stash_versions_max *
                                                  shape->block_parameters[s] *
                                                  static_cast<std::int64_t>(size_of(shape->dtype)));
    }
  }
  value.set("known", compare_known(job.known_results(), value));
  return value;
}

}  // namespace pipewright
