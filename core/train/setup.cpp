#include "core/train/setup.hpp"

#include <cstring>

#include "core/base/error.hpp"
#include "core/data/npy.hpp"
#include "core/train/optimizer.hpp"

namespace pipewright {

namespace {

template <class T>
void read_weights(FileSource& files, const std::string& path, Tensor& weights) {
  const auto stream = files.open(path);
  const NpyArray<T> array = read_npy<T>(*stream, path);
  if (static_cast<std::int64_t>(array.values.size()) != weights.elements()) {
    throw DataError(path + ": holds " + std::to_string(array.values.size()) +
                    " numbers; this stage has " + std::to_string(weights.elements()) +
                    " parameters");
  }
  std::memcpy(weights.data<T>(), array.values.data(), weights.bytes());
}

Tensor starting_weights(const JobConfig& job, const StageModel& model, FileSource& files,
                        Stage stage) {
  Tensor weights = Tensor::zeros(model.dtype(), {model.parameter_count()});
  if (const Value* paths = job.init.find("npy")) {
    const std::string& path = paths->as_list()[static_cast<std::size_t>(stage.value)].as_text();
    if (model.dtype() == DType::float32) {
      read_weights<float>(files, path, weights);
    } else {
      read_weights<double>(files, path, weights);
    }
  } else if (job.init.has("random") ||
             (job.init.is_null() && job.objective_entry().default_init == DefaultInit::random)) {
    model.initialise_random(job.seed, weights);
  }
  return weights;
}

}  // namespace

ObjectiveShape shape_for(const JobConfig& job, const Objective& objective) {
  ObjectiveShape shape = objective.shape();
  if (job.theory) shape.theory = objective.theory();
  return shape;
}

bool decides_online(const JobConfig& job) {
  const Value* order = job.schedule.find("order");
  return order != nullptr && order->as_text() == "online";
}

RowSetup make_row(const JobConfig& job, const Objective& objective, FileSource& files, Row row) {
  RowSetup setup;
  setup.row = row;
  setup.header = job.schedule_header();
  const JobConfig sized = job.sized(objective.shape());
  setup.cost = sized.cost;
  setup.link = sized.link;
  setup.seed = job.seed;
  setup.gradient_noise = job.gradient_noise;
  const Stage stage = setup.header.stage_of(row);
  setup.model = objective.make_stage(stage);
  setup.theory = job.theory;
  if (job.theory && !setup.model->offers_full_gradient()) {
    throw ParamError("observe.theory", "the objective " + job.objective_kind +
                                           " does not offer its full gradient; leave it out");
  }
  const Tensor weights = starting_weights(job, *setup.model, files, stage);
  for (int r = 0; r < setup.header.replicas_of_row(); ++r) {
    setup.blocks.emplace_back(weights.clone(),
                              optimizers().at(job.optimizer_kind).make(job.optimizer));
  }
  if (const Value* outer = job.schedule.find("outer")) {
    const auto& [kind, parameters] = outer->as_map().front();
    Value all = parameters;
    all.set("nesterov", kind == "nesterov");
    all.set("weight_decay", 0.0);
    setup.outer = optimizers().at("sgd").make(all);
  }
  if (decides_online(job)) {
    setup.rule =
        RowRuleRegistry::instance()
            .at(job.schedule_kind)
            .make(job.schedule,
                  {setup.cost, setup.link, job.seed, objective.shape().batches, job.shuffle}, row);
  }
  return setup;
}

}  // namespace pipewright
