#include "core/train/row_runner.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/tensor_math.hpp"

namespace pipewright {

namespace {

void add_to(Tensor& sum, const Tensor& more) {
  if (sum.dtype() == DType::float32) {
    vec<float>(sum) += vec<float>(more);
  } else {
    vec<double>(sum) += vec<double>(more);
  }
}

void divide(Tensor& sum, int by) {
  if (sum.dtype() == DType::float32) {
    vec<float>(sum) /= static_cast<float>(by);
  } else {
    vec<double>(sum) /= static_cast<double>(by);
  }
}

}  // namespace

RowRunner::RowRunner(RowSetup setup, Outbox& outbox, const RowClock& time)
    : setup_(std::move(setup)),
      outbox_(outbox),
      time_(time),
      stage_(setup_.header.stage_of(setup_.row)) {
  PW_CHECK(setup_.blocks.size() == static_cast<std::size_t>(setup_.header.replicas_of_row()),
           describe() << " was given " << setup_.blocks.size() << " blocks");
  scratch_gradient_ = Tensor(setup_.model->dtype(), {setup_.model->parameter_count()});
  if (setup_.outer) last_synced_ = setup_.blocks.front().weights().clone();
  report_.row = setup_.row;
}

std::string RowRunner::describe() const {
  std::string text =
      "row " + std::to_string(setup_.row.value) + " (stage " + std::to_string(stage_.value) + ")";
  if (at_ < program_.size()) {
    static constexpr const char* kinds[] = {"?",          "F", "B", "U", "SYNC", "observation ",
                                            "checkpoint "};
    const Instruction& instruction = program_[at_].instruction;
    text += std::string(" at ") + kinds[static_cast<int>(instruction.kind)] +
            std::to_string(instruction.microbatch.value);
  }
  return text;
}

VersionedBlock& RowRunner::block_of(Replica replica) {
  return setup_.blocks[is_spread() ? 0 : static_cast<std::size_t>(replica.value)];
}

void RowRunner::append(const Window& window) {
  PW_CHECK(window.row == setup_.row && !no_more_,
           describe() << " was given a window of row " << window.row);
  program_.erase(program_.begin(), program_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  for (const Instruction& instruction : window.instructions) {
    if (setup_.rule) {
      append_online(instruction);
    } else {
      program_.push_back({instruction, ActionRecord::next_in_plan});
    }
  }
  cuts_.append(window.cuts.begin(), window.cuts.end());
  no_more_ = window.last;
}

void RowRunner::deliver(Message message) {
  check_header(message);
  if (passed_ && passed_->missing > 0) store_in_flight(message);
  switch (message.kind) {
    case MessageKind::activation:
    case MessageKind::gradient:
      if (time_.is_real()) {
        on_the_way_.push_back(std::move(message));
      } else {
        inbox_of(message.kind).push_back(std::move(message));
      }
      return;
    case MessageKind::evaluation:
      evaluations_.push_back(std::move(message));
      return;
    case MessageKind::full_gradient:
      full_gradients_.push_back(std::move(message));
      return;
    case MessageKind::evaluated:
      --parts_under_way_;
      return;
    case MessageKind::updated:
      if (setup_.rule) return tell_rule(message);
      sync_messages_.push_back(std::move(message));
      return;
    default:
      sync_messages_.push_back(std::move(message));
  }
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
  if (message.tensor.dtype() != setup_.model->dtype()) refuse("its numbers are of another type");
  std::int32_t from = stage_.value;
  Shape shape = scratch_gradient_.shape();
  switch (message.kind) {
    case MessageKind::activation:
    case MessageKind::gradient:
      from += message.kind == MessageKind::gradient ? 1 : -1;
      shape = setup_.model->activation_shape();
      break;
    case MessageKind::evaluation:
    case MessageKind::full_gradient:
      from += message.kind == MessageKind::full_gradient ? 1 : -1;
      shape = message.tensor.shape();  // the model checks what only it knows
      break;
    case MessageKind::barrier:
    case MessageKind::release:
    case MessageKind::updated:
      from = message.kind == MessageKind::release ? 0 : message.from_stage.value;
      shape = {1};
      break;
    case MessageKind::evaluated:
      if (parts_under_way_ == 0) refuse("no part of an evaluation is under way");
      from = setup_.header.stages - 1;
      shape = {1};
      break;
    case MessageKind::weights:
    case MessageKind::average:
    case MessageKind::observed:
      break;
  }
  if (message.from_stage != Stage(from) || from < 0 || from >= setup_.header.stages) {
    refuse("a message of this kind comes from stage " + std::to_string(from));
  }
  if (message.tensor.shape() != shape) {
    refuse("its shape is " + message.tensor.shape().text() + ", not " + shape.text());
  }
  if (message.replica < Replica(0) || message.replica.value >= setup_.header.replicas) {
    refuse("there is no replica " + std::to_string(message.replica.value));
  }
}

RowRunner::Step RowRunner::step() {
  const bool observed = continue_observations();
  const Step step = next_step();
  return observed && step != Step::finished ? Step::ran : step;
}

RowRunner::Step RowRunner::next_step() {
  if (!time_.has_come(clock_)) return Step::blocked;
  release();
  take_what_has_come();
  if (setup_.rule) observe_what_is_due();
  if (at_ == program_.size()) {
    if (!no_more_) return Step::starved;
    return observations_.empty() && going_back_.empty() ? Step::finished : Step::blocked;
  }
  if (setup_.rule && !choose()) return Step::blocked;
  if (!execute(program_[at_].instruction)) return Step::blocked;
  ++at_;
  chosen_.reset();
  if (time_.has_come(clock_)) release();
  return Step::ran;
}

bool RowRunner::execute(const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::forward:
      return forward(instruction);
    case Instruction::Kind::backward:
      return backward(instruction);
    case Instruction::Kind::update:
      update(instruction);
      return true;
    case Instruction::Kind::observe:
      observe(instruction);
      return true;
    case Instruction::Kind::checkpoint:
      checkpoint();
      return true;
    case Instruction::Kind::sync:
      return sync(instruction);
  }
  return true;
}

std::optional<Tick> RowRunner::wakes_at() const {
  if (!time_.has_come(clock_)) return clock_;
  const auto first =
      std::min_element(on_the_way_.begin(), on_the_way_.end(),
                       [](const Message& a, const Message& b) { return a.arrival < b.arrival; });
  return first == on_the_way_.end() ? std::nullopt : std::optional(first->arrival);
}

/// A message stays invisible until its latency has passed.
void RowRunner::take_what_has_come() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < on_the_way_.size(); ++i) {
    Message& message = on_the_way_[i];
    if (time_.has_come(message.arrival)) {
      if (setup_.rule) tell_rule(message);
      inbox_of(message.kind).push_back(std::move(message));
    } else {
      if (kept != i) on_the_way_[kept] = std::move(message);
      ++kept;
    }
  }
  on_the_way_.resize(kept);
}

std::optional<Message> RowRunner::take(std::vector<Message>& inbox, MessageKind kind, Microbatch m,
                                       std::optional<Replica> replica) {
  const auto at = std::find_if(inbox.begin(), inbox.end(), [&](const Message& message) {
    return message.kind == kind && message.microbatch == m &&
           (!replica || message.replica == *replica);
  });
  if (at == inbox.end()) return std::nullopt;
  Message message = std::move(*at);
  inbox.erase(at);
  return message;
}

/// An action has been computed; step() lets go what it made when its end has come.
void RowRunner::finish(Tick start, ActionKind kind, Microbatch m, WeightVersion version) {
  clock_ = time_.end(start, setup_.cost.of(kind, stage_, m));
  held_.emplace(
      Held{{start, clock_, version, program_[at_].position}, chosen_, std::nullopt, std::nullopt});
}

void RowRunner::release() {
  if (!held_) return;
  report_.records.push_back(held_->record);
  if (held_->loss) report_.losses.push_back(*held_->loss);
  if (held_->output) {
    Message& output = *held_->output;
    if (output.kind != MessageKind::updated) {
      const bool is_next = output.to_row > setup_.row;
      const auto bytes = static_cast<std::int64_t>(output.tensor.bytes());
      (is_next ? report_.bytes_to_next : report_.bytes_to_previous) += bytes;
      (is_next ? bytes_to_next_ : bytes_to_previous_) += bytes;
      ++messages_sent_;
    }
    outbox_.send(std::move(output));
  }
  if (held_->action) tell_rule(*held_->action);
  held_.reset();
}

Tick RowRunner::arrival(LinkQueue& queue, std::int32_t to, Microbatch m) {
  return setup_.link.arrival(queue, stage_, Stage(to), m, clock_);
}

Message RowRunner::message(MessageKind kind, Row to, Microbatch m, Replica replica,
                           WeightVersion version, Tick arrival, Tensor tensor) const {
  return {kind, stage_, to, m, replica, version, clock_, arrival, std::move(tensor)};
}

void RowRunner::send(MessageKind kind, Row to, Microbatch m, Replica replica, WeightVersion version,
                     Tick arrival, Tensor tensor) {
  outbox_.send(message(kind, to, m, replica, version, arrival, std::move(tensor)));
}

/// The version that a forward is to read: the newest, or for RPD the one with exactly the updates
/// of microbatches below read_update.
VersionedBlock::Pin RowRunner::pin_for_read(const Instruction& instruction, VersionedBlock& block) {
  if (instruction.read_update == Action::reads_newest) return block.pin();
  for (const Superseded& old : superseded_) {
    if (instruction.read_update.value <= old.by.value) return block.pin(old.pin);
  }
  return block.pin();
}

/// Under an in-flight cap: whether the update that lets this forward begin has ended. A rule sees
/// to that by itself.
bool RowRunner::is_admitted(const Instruction& instruction, Tick& ready) {
  if (setup_.rule || instruction.admitted_by < Microbatch(0)) return true;
  const auto message = take(sync_messages_, MessageKind::updated, instruction.admitted_by);
  if (!message) return false;
  ready = std::max(ready, message->sent);
  return true;
}

bool RowRunner::forward(const Instruction& instruction) {
  Tick ready = clock_;
  if (!is_admitted(instruction, ready)) return false;
  Tensor x;
  if (!is_first()) {
    auto input = take(activations_, MessageKind::activation, instruction.microbatch);
    if (!input) return false;
    if (input->replica != instruction.replica) {
      throw ProtocolError(describe() + " received an activation of replica " +
                          std::to_string(input->replica.value) + ", not " +
                          std::to_string(instruction.replica.value));
    }
    ready = std::max(ready, input->arrival);
    x = std::move(input->tensor);
  }
  const Tick start = time_.begin(ready);
  VersionedBlock& block = block_of(instruction.replica);
  Stashed stashed{
      instruction.microbatch, instruction.replica, pin_for_read(instruction, block), {}};
  if (!spare_saved_.empty()) {
    stashed.saved = std::move(spare_saved_.back());
    spare_saved_.pop_back();
  }
  double loss = 0;
  const WeightVersion version = stashed.pin.version();
  Tensor y = setup_.model->forward(instruction.batch, block.weights(stashed.pin), std::move(x),
                                   stashed.saved, loss);
  finish(start, ActionKind::forward, instruction.microbatch, version);
  if (is_last()) {
    held_->loss = loss;
  } else {
    held_->output =
        message(MessageKind::activation, Row(setup_.row.value + 1), instruction.microbatch,
                instruction.replica, version,
                arrival(to_next_, stage_.value + 1, instruction.microbatch), std::move(y));
  }
  if (setup_.header.one_block) note_forward(instruction.microbatch);
  if (stage_ < instruction.backward_to) {
    // No backward will come here.
    block.unpin(stashed.pin);
    stashed.saved.tensors.clear();
    spare_saved_.push_back(std::move(stashed.saved));
    return true;
  }
  stash_bytes_ += static_cast<std::int64_t>(stashed.saved.bytes());
  stash_.push_back(std::move(stashed));
  std::int64_t kept = stash_bytes_;
  activation_bytes_max_ = std::max(activation_bytes_max_, kept);
  for (const VersionedBlock& one : setup_.blocks) kept += one.bytes();
  stash_bytes_max_ = std::max(stash_bytes_max_, kept);
  return true;
}

/// Old versions are kept as long as a forward that is still to come may read them.
void RowRunner::note_forward(Microbatch m) {
  forwards_ahead_.push_back(m);
  while (true) {
    const auto next = std::find(forwards_ahead_.begin(), forwards_ahead_.end(), next_forward_);
    if (next == forwards_ahead_.end()) break;
    forwards_ahead_.erase(next);
    ++next_forward_;
  }
  drop_superseded();
}

void RowRunner::drop_superseded() {
  const std::int64_t oldest_read = next_forward_.value - setup_.header.delay_max;
  while (!superseded_.empty() && superseded_.front().by.value < oldest_read) {
    setup_.blocks.front().unpin(superseded_.front().pin);
    superseded_.pop_front();
  }
}

RowRunner::Gradient& RowRunner::gradient_for(const Instruction& instruction) {
  const auto at =
      std::find_if(gradients_due_.begin(), gradients_due_.end(), [&](const Gradient& gradient) {
        if (gradient.count == 0) return false;
        return setup_.header.one_block ? gradient.microbatch == instruction.microbatch
                                       : gradient.replica == instruction.replica;
      });
  if (at != gradients_due_.end()) return *at;
  const auto spare = std::find_if(gradients_due_.begin(), gradients_due_.end(),
                                  [](const Gradient& gradient) { return gradient.count == 0; });
  if (spare == gradients_due_.end()) {
    Tensor sum(scratch_gradient_.dtype(), scratch_gradient_.shape());
    gradients_due_.push_back({instruction.microbatch, instruction.replica, std::move(sum), 0});
    return gradients_due_.back();
  }
  spare->microbatch = instruction.microbatch;
  spare->replica = instruction.replica;
  return *spare;
}

void RowRunner::add_noise(Tensor& gradient, Microbatch m) const {
  RandomStream draws(setup_.seed, DrawKind::gradient_noise,
                     static_cast<std::uint32_t>(stage_.value), static_cast<std::uint64_t>(m.value));
  const auto add = [&](auto* entries) {
    for (Index i = 0; i < gradient.elements(); ++i) {
      entries[i] += static_cast<std::remove_reference_t<decltype(*entries)>>(setup_.gradient_noise *
                                                                             draws.normal());
    }
  };
  if (gradient.dtype() == DType::float32) {
    add(gradient.data<float>());
  } else {
    add(gradient.data<double>());
  }
}

bool RowRunner::backward(const Instruction& instruction) {
  Tick ready = clock_;
  Tensor dout;
  if (!is_last()) {
    auto input = take(gradients_, MessageKind::gradient, instruction.microbatch);
    if (!input) return false;
    ready = std::max(ready, input->arrival);
    dout = std::move(input->tensor);
  }
  const Tick start = time_.begin(ready);
  const auto at = std::find_if(stash_.begin(), stash_.end(), [&](const Stashed& stashed) {
    return stashed.microbatch == instruction.microbatch;
  });
  PW_CHECK(at != stash_.end(), describe() << " has no stash of its forward");
  VersionedBlock& block = block_of(instruction.replica);
  const bool updates_this_block = !setup_.header.one_block || stage_ == instruction.backward_to;
  Gradient* gradient = updates_this_block ? &gradient_for(instruction) : nullptr;
  // The first gradient since an update is written in place, further ones are added to it.
  Tensor& into = gradient != nullptr && gradient->count == 0 ? gradient->sum : scratch_gradient_;
  // weights(pin) checks that these are the weights that the forward used.
  stash_bytes_ -= static_cast<std::int64_t>(at->saved.bytes());
  Tensor dx = setup_.model->backward(instruction.batch, block.weights(at->pin), at->saved,
                                     std::move(dout), into, updates_this_block);
  if (gradient != nullptr && setup_.gradient_noise > 0) add_noise(into, instruction.microbatch);
  if (gradient != nullptr && gradient->count++ > 0) add_to(gradient->sum, scratch_gradient_);
  const WeightVersion version = at->pin.version();
  finish(start, ActionKind::backward, instruction.microbatch, version);
  if (stage_ > instruction.backward_to) {
    held_->output =
        message(MessageKind::gradient, Row(setup_.row.value - 1), instruction.microbatch,
                instruction.replica, version,
                arrival(to_previous_, stage_.value - 1, instruction.microbatch), std::move(dx));
  }
  block.unpin(at->pin);
  at->saved.tensors.clear();
  spare_saved_.push_back(std::move(at->saved));
  if (at != stash_.end() - 1) *at = std::move(stash_.back());
  stash_.pop_back();
  return true;
}

void RowRunner::update(const Instruction& instruction) {
  const Tick start = time_.begin(clock_);
  Gradient& gradient = gradient_for(instruction);
  PW_CHECK(gradient.count > 0, describe() << " has no gradient");
  if (gradient.count > 1) divide(gradient.sum, gradient.count);
  if (setup_.theory) report_.update_norms.push_back(norm_of(gradient.sum));
  VersionedBlock& block = block_of(instruction.replica);
  if (setup_.header.one_block) superseded_.push_back({instruction.microbatch, block.pin()});
  block.update(gradient.sum);
  gradient.count = 0;
  ++contents_;
  if (setup_.header.one_block) drop_superseded();
  finish(start, ActionKind::update, instruction.microbatch, block.version());
  if (setup_.header.in_flight_max > 0 && !is_first()) {
    held_->output =
        message(MessageKind::updated, Row(0), instruction.microbatch, instruction.replica,
                block.version(), clock_, Tensor::zeros(setup_.model->dtype(), {1}));
  }
}

RowReport RowRunner::take_report(RowReport spare) {
  spare.clear();
  std::swap(report_, spare);
  spare.row = setup_.row;
  return spare;
}

RowFinal RowRunner::take_final() {
  RowFinal final;
  final.row = setup_.row;
  for (const VersionedBlock& block : setup_.blocks) {
    final.weights.push_back(block.weights().clone());
  }
  final.messages_sent = messages_sent_;
  final.stash_bytes_max = stash_bytes_max_;
  final.activation_bytes_max = activation_bytes_max_;
  return final;
}

}  // namespace pipewright
