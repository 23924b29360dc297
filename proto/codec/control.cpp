#include "proto/codec/control.hpp"

#include <cstring>
#include <limits>

#include "core/base/utf8.hpp"
#include "pipewright/v1/control.pb.h"
#include "proto/codec/api_messages.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

namespace {

std::uint64_t count(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}
std::uint32_t id(std::int32_t number) {
  return static_cast<std::uint32_t>(number);
}

std::int32_t id_from(std::uint32_t number, std::string_view message_name, std::string_view field) {
  if (number > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
    wire::refuse(message_name, std::string(field) + " is too large: " + std::to_string(number));
  }
  return static_cast<std::int32_t>(number);
}

}  // namespace

// static, not in the namespace above: there they would hide their overloads from the headers.
static void put(const Instruction& plain, v1::Instruction& message) {
  message.set_kind(static_cast<v1::Instruction::Kind>(plain.kind));
  message.set_microbatch(count(plain.microbatch.value));
  message.set_replica(id(plain.replica.value));
  message.set_batch(count(plain.batch.value));
  message.set_read_update_plus_1(count(plain.read_update.value + 1));
  message.set_backward_to(id(plain.backward_to.value));
  message.set_admitted_by_plus_1(count(plain.admitted_by.value + 1));
}

static Instruction get(const v1::Instruction& message) {
  static constexpr std::string_view name = "Instruction";
  const int kind = message.kind();
  Instruction plain;
  plain.kind =
      wire::enum_from<Instruction::Kind>(kind, v1::Instruction::Kind_IsValid(kind), name, "kind");
  plain.microbatch = Microbatch(wire::count_from(message.microbatch(), name, "microbatch"));
  plain.replica = Replica(id_from(message.replica(), name, "replica"));
  plain.batch = Batch(wire::count_from(message.batch(), name, "batch"));
  plain.read_update =
      UpdateCount(wire::count_from(message.read_update_plus_1(), name, "read_update_plus_1") - 1);
  plain.backward_to = Stage(id_from(message.backward_to(), name, "backward_to"));
  plain.admitted_by =
      Microbatch(wire::count_from(message.admitted_by_plus_1(), name, "admitted_by_plus_1") - 1);
  return plain;
}

static void put(const Window& plain, v1::Window& message) {
  message.set_row(id(plain.row.value));
  message.mutable_instructions()->Reserve(static_cast<int>(plain.instructions.size()));
  for (const Instruction& one : plain.instructions) put(one, *message.add_instructions());
  for (const Cut& cut : plain.cuts) {
    v1::Cut& out = *message.add_cuts();
    out.set_tick(count(cut.tick.value));
    out.set_observations(count(cut.observations));
    out.set_activations(count(cut.activations));
    out.set_gradients(count(cut.gradients));
    out.set_updates(count(cut.updates));
  }
  message.set_last(plain.last);
}

static Window get(const v1::Window& message) {
  Window plain;
  plain.row = Row(id_from(message.row(), "Window", "row"));
  plain.instructions.reserve(static_cast<std::size_t>(message.instructions_size()));
  for (const v1::Instruction& one : message.instructions()) {
    plain.instructions.push_back(get(one));
  }
  for (const v1::Cut& cut : message.cuts()) {
    const auto number = [](std::uint64_t value, const char* field) {
      return wire::count_from(value, "Cut", field);
    };
    plain.cuts.push_back({Tick(number(cut.tick(), "tick")),
                          number(cut.observations(), "observations"),
                          number(cut.activations(), "activations"),
                          number(cut.gradients(), "gradients"), number(cut.updates(), "updates")});
  }
  plain.last = message.last();
  return plain;
}

static void put(const RowReport& plain, v1::RowReport& message) {
  message.set_row(id(plain.row.value));
  const int records = static_cast<int>(plain.records.size());
  message.mutable_start_tick()->Reserve(records);
  message.mutable_end_tick()->Reserve(records);
  message.mutable_weight_version()->Reserve(records);
  for (const ActionRecord& record : plain.records) {
    message.add_start_tick(count(record.start.value));
    message.add_end_tick(count(record.end.value));
    message.add_weight_version(count(record.weight_version.value));
  }
  message.mutable_loss()->Add(plain.losses.begin(), plain.losses.end());
  for (const ObservationValue& value : plain.values) {
    message.add_observation(count(value.observation));
    message.add_observation_value(value.value);
    if (value.validation) message.add_validation_value(*value.validation);
  }
  for (const ObservationValue& gradient : plain.gradients) {
    message.add_gradient_observation(count(gradient.observation));
    message.add_gradient_norm_sq(gradient.value);
  }
  message.mutable_update_norm()->Add(plain.update_norms.begin(), plain.update_norms.end());
  message.set_bytes_to_next(count(plain.bytes_to_next));
  message.set_bytes_to_previous(count(plain.bytes_to_previous));
  for (const Tick tick : plain.observed) message.add_observed_tick(count(tick.value));
  const bool is_in_order =
      plain.records.empty() || plain.records.front().position == ActionRecord::next_in_plan;
  for (const ActionRecord& record : plain.records) {
    if (!is_in_order) message.add_position(count(record.position));
  }
}

static RowReport get(const v1::RowReport& message) {
  static constexpr std::string_view name = "RowReport";
  const int records = message.start_tick_size();
  if (message.end_tick_size() != records || message.weight_version_size() != records) {
    wire::refuse(name, "start_tick, end_tick and weight_version differ in length");
  }
  if (message.position_size() != 0 && message.position_size() != records) {
    wire::refuse(name, "position and start_tick differ in length");
  }
  if (message.observation_size() != message.observation_value_size()) {
    wire::refuse(name, "observation and observation_value differ in length");
  }
  if (message.validation_value_size() != 0 &&
      message.validation_value_size() != message.observation_size()) {
    wire::refuse(name, "observation and validation_value differ in length");
  }
  if (message.gradient_observation_size() != message.gradient_norm_sq_size()) {
    wire::refuse(name, "gradient_observation and gradient_norm_sq differ in length");
  }
  RowReport plain;
  plain.row = Row(id_from(message.row(), name, "row"));
  plain.records.reserve(static_cast<std::size_t>(records));
  for (int i = 0; i < records; ++i) {
    plain.records.push_back(
        {Tick(wire::count_from(message.start_tick(i), name, "start_tick")),
         Tick(wire::count_from(message.end_tick(i), name, "end_tick")),
         WeightVersion(wire::count_from(message.weight_version(i), name, "weight_version"))});
    if (message.position_size() == 0) continue;
    plain.records.back().position = wire::count_from(message.position(i), name, "position");
  }
  for (const std::uint64_t tick : message.observed_tick()) {
    plain.observed.push_back(Tick(wire::count_from(tick, name, "observed_tick")));
  }
  plain.losses.assign(message.loss().begin(), message.loss().end());
  for (int i = 0; i < message.observation_size(); ++i) {
    plain.values.push_back({wire::count_from(message.observation(i), name, "observation"),
                            message.observation_value(i)});
    if (message.validation_value_size() > 0) {
      plain.values.back().validation = message.validation_value(i);
    }
  }
  for (int i = 0; i < message.gradient_observation_size(); ++i) {
    plain.gradients.push_back(
        {wire::count_from(message.gradient_observation(i), name, "gradient_observation"),
         message.gradient_norm_sq(i)});
  }
  plain.update_norms.assign(message.update_norm().begin(), message.update_norm().end());
  plain.bytes_to_next = wire::count_from(message.bytes_to_next(), name, "bytes_to_next");
  plain.bytes_to_previous =
      wire::count_from(message.bytes_to_previous(), name, "bytes_to_previous");
  return plain;
}

static void put(const RowFinal& plain, v1::RowFinal& message) {
  message.set_row(id(plain.row.value));
  for (const Tensor& weights : plain.weights) {
    message.set_weight_bytes(static_cast<std::uint32_t>(size_of(weights.dtype())));
    message.add_weights(weights.buffer().data(), weights.bytes());
  }
  message.set_messages_sent(count(plain.messages_sent));
  message.set_stash_bytes_max(count(plain.stash_bytes_max));
  message.set_activation_bytes_max(count(plain.activation_bytes_max));
}

static Tensor weights_from(const std::string& bytes, std::uint32_t weight_bytes) {
  if ((weight_bytes != 4 && weight_bytes != 8) || bytes.size() % weight_bytes != 0) {
    wire::refuse("RowFinal", std::to_string(bytes.size()) + " bytes of weights of " +
                                 std::to_string(weight_bytes) + " bytes each");
  }
  const DType dtype = weight_bytes == 4 ? DType::float32 : DType::float64;
  Tensor weights(dtype, Shape{static_cast<std::int64_t>(bytes.size() / weight_bytes)});
  if (!bytes.empty()) std::memcpy(weights.buffer().data(), bytes.data(), bytes.size());
  return weights;
}

static RowFinal get(const v1::RowFinal& message) {
  static constexpr std::string_view name = "RowFinal";
  RowFinal plain;
  plain.row = Row(id_from(message.row(), name, "row"));
  for (const std::string& bytes : message.weights()) {
    plain.weights.push_back(weights_from(bytes, message.weight_bytes()));
  }
  plain.messages_sent = wire::count_from(message.messages_sent(), name, "messages_sent");
  plain.stash_bytes_max = wire::count_from(message.stash_bytes_max(), name, "stash_bytes_max");
  plain.activation_bytes_max =
      wire::count_from(message.activation_bytes_max(), name, "activation_bytes_max");
  return plain;
}

static void put(const ObjectiveShape& plain, v1::ObjectiveShape& message) {
  message.set_stages(id(plain.stages));
  message.set_examples(count(plain.examples));
  message.set_batch_size(count(plain.batch_size));
  message.set_batches(count(plain.batches));
  message.set_number_bytes(static_cast<std::uint32_t>(size_of(plain.dtype)));
  message.mutable_block_parameters()->Add(plain.block_parameters.begin(),
                                          plain.block_parameters.end());
  message.set_activation_bytes(count(plain.activation_bytes));
  message.set_evaluation_bytes(count(plain.evaluation_bytes));
  message.set_data_bytes(count(plain.data_bytes));
  if (plain.theory.smoothness) message.set_smoothness(*plain.theory.smoothness);
  if (plain.theory.optimum) message.set_optimum(*plain.theory.optimum);
  message.set_tokens_per_batch(count(plain.tokens_per_batch));
  if (!plain.facts.is_null()) message.set_facts_json(to_json(plain.facts));
}

static ObjectiveShape get(const v1::ObjectiveShape& message) {
  static constexpr std::string_view name = "ObjectiveShape";
  ObjectiveShape plain;
  plain.stages = id_from(message.stages(), name, "stages");
  plain.examples = wire::count_from(message.examples(), name, "examples");
  plain.batch_size = wire::count_from(message.batch_size(), name, "batch_size");
  plain.batches = wire::count_from(message.batches(), name, "batches");
  if (message.number_bytes() != 4 && message.number_bytes() != 8) {
    wire::refuse(name, "number_bytes is " + std::to_string(message.number_bytes()));
  }
  plain.dtype = message.number_bytes() == 4 ? DType::float32 : DType::float64;
  for (const std::uint64_t block : message.block_parameters()) {
    plain.block_parameters.push_back(wire::count_from(block, name, "block_parameters"));
  }
  plain.activation_bytes = wire::count_from(message.activation_bytes(), name, "activation_bytes");
  plain.evaluation_bytes = wire::count_from(message.evaluation_bytes(), name, "evaluation_bytes");
  plain.data_bytes = wire::count_from(message.data_bytes(), name, "data_bytes");
  if (message.has_smoothness()) plain.theory.smoothness = message.smoothness();
  if (message.has_optimum()) plain.theory.optimum = message.optimum();
  plain.tokens_per_batch = wire::count_from(message.tokens_per_batch(), name, "tokens_per_batch");
  plain.facts = value_from_json(message.facts_json());
  return plain;
}

static RankReady get(const v1::RankReady& message) {
  RankReady plain{message.run(),
                  message.rank(),
                  get(message.shape()),
                  {},
                  wire::count_from(message.clock_error_ns(), "RankReady", "clock_error_ns"),
                  get(message.maker())};
  for (const v1::DataFile& file : message.data()) {
    plain.data.push_back({file.path(), file.bytes(), file.sha256()});
  }
  return plain;
}

namespace {

/// Fills the one field of a ControlMessage that a plain message goes to.
struct PutControl {
  v1::ControlMessage& message;

  void operator()(const RankStart& plain) const {
    v1::RankStart& start = *message.mutable_start();
    start.set_run(plain.run);
    put(plain.spec, *start.mutable_spec());
    start.mutable_ranks()->Add(plain.ranks.begin(), plain.ranks.end());
    start.set_communicator_tag(plain.communicator_tag);
    for (const std::string& root : plain.data_roots) start.add_data_roots(clean_utf8(root));
  }
  void operator()(const RankReady& plain) const {
    message.mutable_ready()->set_run(plain.run);
    message.mutable_ready()->set_rank(plain.rank);
    put(plain.shape, *message.mutable_ready()->mutable_shape());
    message.mutable_ready()->set_clock_error_ns(count(plain.clock_error_ns));
    put(plain.maker, *message.mutable_ready()->mutable_maker());
    for (const HashedFile& file : plain.data) {
      v1::DataFile& out = *message.mutable_ready()->add_data();
      out.set_path(clean_utf8(file.path));
      out.set_bytes(file.bytes);
      out.set_sha256(file.sha256);
    }
  }
  void operator()(const WindowMessage& plain) const {
    message.mutable_window()->set_run(plain.run);
    put(plain.window, *message.mutable_window());
  }
  void operator()(const ReportMessage& plain) const {
    message.mutable_report()->set_run(plain.run);
    put(plain.report, *message.mutable_report());
  }
  void operator()(const FinalMessage& plain) const {
    message.mutable_final()->set_run(plain.run);
    put(plain.final, *message.mutable_final());
  }
  void operator()(const ClockQuestion& plain) const {
    message.mutable_clock_question()->set_run(plain.run);
    message.mutable_clock_question()->set_rank(plain.rank);
    message.mutable_clock_question()->set_asked_ns(plain.asked_ns);
  }
  void operator()(const ClockAnswer& plain) const {
    v1::ClockAnswer& answer = *message.mutable_clock_answer();
    answer.set_run(plain.run);
    answer.set_asked_ns(plain.asked_ns);
    answer.set_received_ns(plain.received_ns);
    answer.set_answered_ns(plain.answered_ns);
    answer.set_clock(clean_utf8(plain.clock));
  }
  void operator()(const ClockStart& plain) const {
    message.mutable_clock_start()->set_run(plain.run);
    message.mutable_clock_start()->set_start_ns(plain.start_ns);
  }
  void operator()(const StateChunk& plain) const {
    v1::StateChunk& chunk = *message.mutable_state_chunk();
    chunk.set_run(plain.run);
    chunk.set_row(id(plain.row.value));
    chunk.set_tick(count(plain.tick.value));
    chunk.set_data(plain.data);
    chunk.set_last(plain.last);
  }
  void operator()(const StateTaken& plain) const {
    message.mutable_state_taken()->set_run(plain.run);
  }
  void operator()(const RestoreChunk& plain) const {
    v1::RestoreChunk& chunk = *message.mutable_restore_chunk();
    chunk.set_run(plain.run);
    chunk.set_row(id(plain.row.value));
    chunk.set_data(plain.data);
    chunk.set_last(plain.last);
  }
  void operator()(const RankFault& plain) const {
    message.mutable_fault()->set_run(plain.run);
    message.mutable_fault()->set_rank(plain.rank);
    message.mutable_fault()->set_message(clean_utf8(plain.message));
  }
  void operator()(const RankStop& plain) const { message.mutable_stop()->set_run(plain.run); }
  void operator()(const RankIdle& plain) const {
    message.mutable_idle()->set_run(plain.run);
    message.mutable_idle()->set_rank(plain.rank);
  }
  void operator()(const RankShutDown&) const { message.mutable_shut_down(); }
  void operator()(const LeaveAsked& plain) const {
    message.mutable_leave_asked()->set_rank(plain.rank);
  }
  void operator()(const RankAlive& plain) const { message.mutable_alive()->set_rank(plain.rank); }
  void operator()(const RankHello& plain) const {
    message.mutable_hello()->set_rank(plain.info.rank);
    message.mutable_hello()->set_host(clean_utf8(plain.info.host));
    message.mutable_hello()->set_pid(plain.info.pid);
  }
};

RankStart start_from(const v1::RankStart& message) {
  if (!message.has_spec()) wire::refuse("RankStart", "spec is missing");
  return {message.run(),
          get(message.spec()),
          {message.ranks().begin(), message.ranks().end()},
          message.communicator_tag(),
          {message.data_roots().begin(), message.data_roots().end()}};
}

}  // namespace

std::string encode_control(const ControlMessage& message) {
  v1::ControlMessage proto;
  std::visit(PutControl{proto}, message);
  return wire::serialize(proto, WireFormat::protobuf);
}

ControlMessage decode_control(std::string_view bytes) {
  v1::ControlMessage message;
  wire::parse(bytes, WireFormat::protobuf, message);
  switch (message.what_case()) {
    case v1::ControlMessage::kStart:
      return start_from(message.start());
    case v1::ControlMessage::kReady:
      return get(message.ready());
    case v1::ControlMessage::kWindow:
      return WindowMessage{message.window().run(), get(message.window())};
    case v1::ControlMessage::kReport:
      return ReportMessage{message.report().run(), get(message.report())};
    case v1::ControlMessage::kFinal:
      return FinalMessage{message.final().run(), get(message.final())};
    case v1::ControlMessage::kFault:
      return RankFault{message.fault().run(), message.fault().rank(), message.fault().message()};
    case v1::ControlMessage::kStop:
      return RankStop{message.stop().run()};
    case v1::ControlMessage::kIdle:
      return RankIdle{message.idle().run(), message.idle().rank()};
    case v1::ControlMessage::kShutDown:
      return RankShutDown{};
    case v1::ControlMessage::kHello:
      return RankHello{{message.hello().rank(), message.hello().host(), message.hello().pid()}};
    case v1::ControlMessage::kClockQuestion:
      return ClockQuestion{message.clock_question().run(), message.clock_question().rank(),
                           message.clock_question().asked_ns()};
    case v1::ControlMessage::kClockAnswer:
      return ClockAnswer{message.clock_answer().run(), message.clock_answer().asked_ns(),
                         message.clock_answer().received_ns(), message.clock_answer().answered_ns(),
                         message.clock_answer().clock()};
    case v1::ControlMessage::kClockStart:
      return ClockStart{message.clock_start().run(), message.clock_start().start_ns()};
    case v1::ControlMessage::kLeaveAsked:
      return LeaveAsked{message.leave_asked().rank()};
    case v1::ControlMessage::kAlive:
      return RankAlive{message.alive().rank()};
    case v1::ControlMessage::kStateChunk: {
      const v1::StateChunk& chunk = message.state_chunk();
      return StateChunk{chunk.run(), Row(id_from(chunk.row(), "StateChunk", "row")),
                        Tick(wire::count_from(chunk.tick(), "StateChunk", "tick")), chunk.data(),
                        chunk.last()};
    }
    case v1::ControlMessage::kStateTaken:
      return StateTaken{message.state_taken().run()};
    case v1::ControlMessage::kRestoreChunk: {
      const v1::RestoreChunk& chunk = message.restore_chunk();
      return RestoreChunk{chunk.run(), Row(id_from(chunk.row(), "RestoreChunk", "row")),
                          chunk.data(), chunk.last()};
    }
    default:
      wire::refuse("ControlMessage", "it holds none of the messages that are known");
  }
}

}  // namespace pipewright
