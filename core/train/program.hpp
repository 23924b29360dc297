// The work of one row in the form in which it is handed out: windows of instructions down, reports
// up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/schedule/action.hpp"

namespace pipewright {

/// An action of the schedule, or an observation: "give this block as it is now to the chain that
/// computes the full objective", where microbatch is the number of the observation, and batch says
/// how many of them have been given to all rows; or a checkpoint: "store your state as it is now",
/// whose particulars are the next of the window's cuts.
struct Instruction {
  enum class Kind : std::uint8_t { forward = 1, backward, update, sync, observe, checkpoint };
  Kind kind = Kind::forward;
  Microbatch microbatch;
  Replica replica;
  Batch batch;
  UpdateCount read_update = Action::reads_newest;
  Stage backward_to;           // the lowest stage on which the microbatch has a B
  Microbatch admitted_by{-1};  // the update that has to end before this forward begins; -1: none
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A checkpoint, as one row sees it: all of its actions that end by `tick` are before it, none of
/// the others. What neighbours have made by then and the row uses later is on its way to it.
struct Cut {
  Tick tick;
  std::int64_t observations = 0;  // that all rows were given before it: they are over by then
  std::int64_t activations = 0;   // on their way
  std::int64_t gradients = 0;
  std::int64_t updates = 0;  // of the kind `updated`
  std::int64_t in_flight() const { return activations + gradients + updates; }
  friend bool operator==(const Cut&, const Cut&) = default;
};

struct Window {
  Row row;
  std::vector<Instruction> instructions;
  bool last = false;           // no more will follow
  std::vector<Cut> cuts = {};  // one for each checkpoint among the instructions
};

/// What a row has done, one entry per action executed (observations and checkpoints have none).
struct ActionRecord {
  static constexpr std::int64_t next_in_plan = -1;

  Tick start;
  Tick end;
  WeightVersion weight_version;  // that an F or B used, or that a U made
  /// Which of the row's actions this is, counted in the order in which they were handed out; for a
  /// row that decides about its order.
  std::int64_t position = next_in_plan;
};

struct ObservationValue {
  std::int64_t observation = 0;
  double value = 0;
  std::optional<double> validation = {};
};

struct RowReport {
  Row row;
  std::vector<ActionRecord> records;
  std::vector<double> losses;            // of each F on a last stage, in order
  std::vector<ObservationValue> values;  // of each observation whose chain ended here, in order
  // Of runs with theory: the squared norm of the full gradient of each observation whose chain back
  // ended here, and the norm of the gradient of each U, in order.
  std::vector<ObservationValue> gradients;
  std::vector<double> update_norms;
  std::int64_t bytes_to_next = 0;  // sent since the last report
  std::int64_t bytes_to_previous = 0;
  std::vector<Tick> observed;  // real clock: end of the action before each observation executed

  /// Keeps the storage of the lists.
  void clear() {
    records.clear();
    losses.clear();
    values.clear();
    gradients.clear();
    update_norms.clear();
    observed.clear();
    bytes_to_next = bytes_to_previous = 0;
  }
};

/// All that a row needs to go on from a cut.
struct RowCheckpoint {
  Tick tick;
  std::string bytes;
};

struct RowFinal {
  Row row;
  std::vector<Tensor> weights;  // per replica that the row holds
  std::int64_t messages_sent = 0;
  std::int64_t stash_bytes_max = 0;       // weights and what forwards have kept
  std::int64_t activation_bytes_max = 0;  // the latter alone
};

}  // namespace pipewright
