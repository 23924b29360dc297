#include "core/train/row_runner.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace pipewright {

RowRunner::RowRunner(RowSetup setup, Outbox& outbox)
    : setup_(std::move(setup)), outbox_(outbox), stage_(setup_.header.stage_of(setup_.row)) {
  PW_CHECK(setup_.blocks.size() == static_cast<std::size_t>(setup_.header.replicas_of_row()),
           describe() << " was given " << setup_.blocks.size() << " blocks");
  accumulated_.resize(setup_.blocks.size());
  gradient_ = Tensor(setup_.model->dtype(), {setup_.model->parameter_count()});
  report_.row = setup_.row;
}

std::string RowRunner::describe() const {
  std::string text =
      "row " + std::to_string(setup_.row.value) + " (stage " + std::to_string(stage_.value) + ")";
  if (at_ < program_.size()) {
    static constexpr const char* kinds[] = {"?", "F", "B", "U", "SYNC", "observation "};
    text += std::string(" at ") + kinds[static_cast<int>(program_[at_].kind)] +
            std::to_string(program_[at_].microbatch.value);
  }
  return text;
}

std::size_t RowRunner::slot(Replica replica) const {
  return setup_.header.placement == Placement::spread ? 0 : static_cast<std::size_t>(replica.value);
}

void RowRunner::append(const Window& window) {
  PW_CHECK(window.row == setup_.row && !no_more_,
           describe() << " was given a window of row " << window.row);
  program_.erase(program_.begin(), program_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  program_.insert(program_.end(), window.instructions.begin(), window.instructions.end());
  no_more_ = window.last;
}

void RowRunner::deliver(Message message) {
  check_header(message);
  switch (message.kind) {
    case MessageKind::activation:
      activations_.push_back(std::move(message));
      return;
    case MessageKind::gradient:
      gradients_.push_back(std::move(message));
      return;
    case MessageKind::evaluation:
      evaluations_.push_back(std::move(message));
      return;
    case MessageKind::weights:
      break;
  }
  throw ProtocolError(describe() + " cannot use a message of kind weights");
}

void RowRunner::check_header(const Message& message) const {
  const auto refuse = [&](const std::string& why) {
    throw ProtocolError(describe() + " received microbatch " +
                        std::to_string(message.microbatch.value) + " from stage " +
                        std::to_string(message.from_stage.value) + ": " + why);
  };
  if (message.to_row != setup_.row) {
    refuse("it is for row " + std::to_string(message.to_row.value));
  }
  const std::int32_t from = stage_.value + (message.kind == MessageKind::gradient ? 1 : -1);
  if (message.from_stage != Stage(from) || from < 0 || from >= setup_.header.stages) {
    refuse("a message of this kind comes from stage " + std::to_string(from));
  }
  if (message.tensor.dtype() != setup_.model->dtype()) refuse("its numbers are of another type");
  if (message.kind != MessageKind::evaluation &&
      message.tensor.shape() != setup_.model->activation_shape()) {
    refuse("its shape is " + message.tensor.shape().text() + ", not " +
           setup_.model->activation_shape().text());
  }
}

RowRunner::Step RowRunner::step() {
  continue_observations();
  if (at_ == program_.size()) {
    if (!no_more_) return Step::starved;
    return observations_.empty() ? Step::finished : Step::blocked;
  }
  const Instruction& instruction = program_[at_];
  switch (instruction.kind) {
    case Instruction::Kind::forward:
      if (!forward(instruction)) return Step::blocked;
      break;
    case Instruction::Kind::backward:
      if (!backward(instruction)) return Step::blocked;
      break;
    case Instruction::Kind::update:
      update(instruction);
      break;
    case Instruction::Kind::observe:
      observe(instruction);
      break;
    case Instruction::Kind::sync:
      throw ConfigError(describe() + ": a sync of " + std::to_string(setup_.header.replicas) +
                        " replicas is not supported");
  }
  ++at_;
  return Step::ran;
}

Message* RowRunner::find(std::vector<Message>& inbox, Microbatch m) {
  const auto at = std::find_if(inbox.begin(), inbox.end(),
                               [&](const Message& message) { return message.microbatch == m; });
  return at == inbox.end() ? nullptr : &*at;
}

void RowRunner::record(Tick start, ActionKind kind, WeightVersion version) {
  clock_ = start + setup_.cost.of(kind, stage_);
  report_.records.push_back({start, clock_, version});
}

void RowRunner::send(MessageKind kind, Row to, const Instruction& instruction,
                     WeightVersion version, Tensor tensor) {
  // An observation looks at the run without being part of it: it takes no schedule time and is not
  // counted.
  Tick arrival = clock_;
  if (kind != MessageKind::evaluation) {
    auto& bytes = to > setup_.row ? report_.bytes_to_next : report_.bytes_to_previous;
    bytes += static_cast<std::int64_t>(tensor.bytes());
    ++messages_sent_;
    arrival = setup_.link.arrival(clock_);
  }
  outbox_.send({kind, stage_, to, instruction.microbatch, instruction.replica, version, clock_,
                arrival, std::move(tensor)});
}

bool RowRunner::forward(const Instruction& instruction) {
  Tick start = clock_;
  Tensor x;
  if (!is_first()) {
    Message* input = find(activations_, instruction.microbatch);
    if (input == nullptr) return false;
    if (input->replica != instruction.replica) {
      throw ProtocolError(describe() + " received an activation of replica " +
                          std::to_string(input->replica.value) + ", not " +
                          std::to_string(instruction.replica.value));
    }
    start = std::max(start, input->arrival);
    x = std::move(input->tensor);
    activations_.erase(activations_.begin() + (input - activations_.data()));
  }
  VersionedBlock& block = setup_.blocks[slot(instruction.replica)];
  Stashed stashed{instruction.microbatch, block.pin(), {}};
  if (!spare_saved_.empty()) {
    stashed.saved = std::move(spare_saved_.back());
    spare_saved_.pop_back();
  }
  double loss = 0;
  Tensor y =
      setup_.model->forward(instruction.batch, block.weights(), std::move(x), stashed.saved, loss);
  record(start, ActionKind::forward, block.version());
  if (is_last()) {
    report_.losses.push_back(loss);
  } else {
    send(MessageKind::activation, Row(setup_.row.value + 1), instruction, block.version(),
         std::move(y));
  }
  stash_.push_back(std::move(stashed));
  std::int64_t bytes = block.bytes();
  for (const Stashed& one : stash_) bytes += static_cast<std::int64_t>(one.saved.bytes());
  stash_bytes_max_ = std::max(stash_bytes_max_, bytes);
  return true;
}

bool RowRunner::backward(const Instruction& instruction) {
  Tick start = clock_;
  Tensor dout;
  if (!is_last()) {
    Message* input = find(gradients_, instruction.microbatch);
    if (input == nullptr) return false;
    start = std::max(start, input->arrival);
    dout = std::move(input->tensor);
    gradients_.erase(gradients_.begin() + (input - gradients_.data()));
  }
  const auto at = std::find_if(stash_.begin(), stash_.end(), [&](const Stashed& stashed) {
    return stashed.microbatch == instruction.microbatch;
  });
  PW_CHECK(at != stash_.end(), describe() << " has no stash of its forward");
  VersionedBlock& block = setup_.blocks[slot(instruction.replica)];
  Accumulated& sum = accumulated_[slot(instruction.replica)];
  // The first gradient since an update is written in place, further ones are added to it.
  if (sum.gradient.empty()) sum.gradient = Tensor(gradient_.dtype(), gradient_.shape());
  Tensor& into = sum.count == 0 ? sum.gradient : gradient_;
  // weights(pin) checks that these are the weights that the forward used.
  Tensor dx = setup_.model->backward(instruction.batch, block.weights(at->pin), at->saved,
                                     std::move(dout), into, true);
  if (sum.count > 0) {
    if (into.dtype() == DType::float32) {
      sum.gradient.vec<float>() += into.vec<float>();
    } else {
      sum.gradient.vec<double>() += into.vec<double>();
    }
  }
  ++sum.count;
  const WeightVersion version = at->pin.version();
  record(start, ActionKind::backward, version);
  if (!is_first()) {
    send(MessageKind::gradient, Row(setup_.row.value - 1), instruction, version, std::move(dx));
  }
  block.unpin(at->pin);
  at->saved.tensors.clear();
  spare_saved_.push_back(std::move(at->saved));
  stash_.erase(at);
  return true;
}

void RowRunner::update(const Instruction& instruction) {
  Accumulated& sum = accumulated_[slot(instruction.replica)];
  PW_CHECK(sum.count > 0, describe() << " has no gradient");
  if (sum.count > 1) {
    if (sum.gradient.dtype() == DType::float32) {
      sum.gradient.vec<float>() /= static_cast<float>(sum.count);
    } else {
      sum.gradient.vec<double>() /= static_cast<double>(sum.count);
    }
  }
  VersionedBlock& block = setup_.blocks[slot(instruction.replica)];
  block.update(sum.gradient);
  sum.count = 0;
  record(clock_, ActionKind::update, block.version());
}

void RowRunner::observe(const Instruction& instruction) {
  VersionedBlock& block = setup_.blocks.front();
  observations_.push_back({instruction.microbatch.value, block.pin()});
  continue_observations();
}

void RowRunner::continue_observations() {
  while (!observations_.empty()) {
    Tensor partial;
    const Observation observation = observations_.front();
    if (!is_first()) {
      if (evaluations_.empty()) return;
      if (evaluations_.front().microbatch.value != observation.number) {
        throw ProtocolError(describe() + " received observation " +
                            std::to_string(evaluations_.front().microbatch.value) + ", not " +
                            std::to_string(observation.number));
      }
      partial = std::move(evaluations_.front().tensor);
      evaluations_.pop_front();
    }
    VersionedBlock& block = setup_.blocks.front();
    double value = 0;
    // A version is never made twice, so its number names the contents; 0 is taken by "nothing yet".
    const auto weights_id = static_cast<std::uint64_t>(observation.pin.version().value) + 1;
    partial = setup_.model->evaluate(block.weights(observation.pin), weights_id, std::move(partial),
                                     value);
    block.unpin(observation.pin);
    observations_.pop_front();
    if (is_last()) {
      report_.values.push_back({observation.number, value});
    } else {
      Instruction instruction;
      instruction.microbatch = Microbatch(observation.number);
      send(MessageKind::evaluation, Row(setup_.row.value + 1), instruction,
           observation.pin.version(), std::move(partial));
    }
  }
}

RowReport RowRunner::take_report() {
  RowReport report = std::exchange(report_, {});
  report_.row = setup_.row;
  return report;
}

RowFinal RowRunner::take_final() {
  RowFinal final;
  final.row = setup_.row;
  for (const VersionedBlock& block : setup_.blocks) {
    final.weights.push_back(block.weights().clone());
  }
  final.messages_sent = messages_sent_;
  final.stash_bytes_max = stash_bytes_max_;
  return final;
}

}  // namespace pipewright
