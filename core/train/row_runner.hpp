// The executor of one row's actions: it computes, keeps versions and stash, and exchanges messages
// with its neighbours. It does not know whether these are in the same process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fifo.hpp"
#include "core/objectives/objective.hpp"
#include "core/schedule/schedule.hpp"
#include "core/sim/cost.hpp"
#include "core/sim/link.hpp"
#include "core/sim/row_rule.hpp"
#include "core/train/block.hpp"
#include "core/train/message.hpp"
#include "core/train/program.hpp"
#include "core/train/row_clock.hpp"

namespace pipewright {

/// Where a row's messages go. A call takes the message over and must not block for long.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void send(Message message) = 0;
};

struct RowSetup {
  Row row;
  ScheduleHeader header;
  CostModel cost;
  LinkModel link;
  std::unique_ptr<StageModel> model;
  std::vector<VersionedBlock> blocks;  // one per replica of the row
  std::unique_ptr<Optimizer> outer;    // of LocalSGD's syncs; none: plain averaging
  std::uint64_t seed = 0;              // of the noise
  double gradient_noise = 0;           // standard deviation, added to every entry; 0: none
  bool theory = false;                 // full gradients at observations, norms of the updates'
  std::unique_ptr<RowRule> rule;       // decides about the order; none: that of the plan
};

class RowRunner {
 public:
  /// `outbox` and `time` outlive this.
  RowRunner(RowSetup setup, Outbox& outbox, const RowClock& time);

  Row row() const { return setup_.row; }

  /// More instructions, in order. `last` says that no more will come.
  void append(const Window& window);
  /// A message for this row. Throws ProtocolError when the schedule has no use for such a one.
  void deliver(Message message);

  enum class Step { ran, blocked, starved, finished };
  /// Executes the next instruction if what it needs is there. `blocked`: it waits for a message, or
  /// for wakes_at(); `starved`: it waits for instructions; `finished`: all is done, observations
  /// included.
  Step step();
  /// The time from which on a blocked row can go on without a message that is not here yet. Nothing
  /// when it waits for no time.
  std::optional<Tick> wakes_at() const;

  /// What has been done since the last report. The next one is put into the storage of `spare`.
  RowReport take_report(RowReport spare = {});
  bool has_report() const {
    return !report_.records.empty() || !report_.values.empty() || !report_.observed.empty() ||
           !report_.gradients.empty() || report_.bytes_to_next > 0 || report_.bytes_to_previous > 0;
  }
  std::size_t records() const { return report_.records.size(); }
  RowFinal take_final();

  /// The state at a checkpoint that has been passed, once the messages are here that were on their
  /// way then.
  std::optional<RowCheckpoint> take_checkpoint();
  /// Goes on from such a state; before the first window. Throws DataError for what is not of such a
  /// row.
  void restore(std::string_view state);

 private:
  /// One microbatch between its F and its B.
  struct Stashed {
    Microbatch microbatch;
    Replica replica;
    VersionedBlock::Pin pin;
    Saved saved;
  };
  /// Gradients between B and U. A microbatch that updates one block only has one of its own.
  struct Gradient {
    Microbatch microbatch;
    Replica replica;
    Tensor sum;
    int count = 0;
  };
  /// A version that was superseded by the update of a microbatch, kept for reads that are to see
  /// it.
  struct Superseded {
    Microbatch by;
    VersionedBlock::Pin pin;
  };
  /// The block at an observation: pinned, or the average over the replicas.
  struct Observation {
    std::int64_t number = 0;
    std::int64_t part = 0;  // the next to be evaluated
    std::uint64_t contents = 0;
    VersionedBlock::Pin pin;
    Tensor average;
    int replicas_missing = 0;
    std::vector<Tensor> replicas;  // by replica, until all are there
    std::vector<std::int64_t> replica_contents;
  };
  /// An observation that not all rows have been given, as it is to be begun again after a
  /// checkpoint.
  struct KeptObservation {
    std::int64_t number = 0;
    VersionedBlock::Pin pin;
  };
  /// A checkpoint that has been passed.
  struct PassedCut {
    Cut cut;
    std::int64_t missing = 0;  // of the messages that were on their way
    std::string bytes;
  };
  /// What an action has made, to be let go when the action's end has come.
  struct Held {
    ActionRecord record;
    std::optional<Action> action;  // that the rule has picked
    std::optional<double> loss;
    std::optional<Message> output;
  };
  struct Planned {
    Instruction instruction;
    std::int64_t position = 0;  // among the row's actions
  };
  /// Of a row that decides: an observation comes after as many updates and syncs as in the plan.
  struct DueObservation {
    Instruction instruction;
    std::int64_t updates = 0;
    std::int64_t syncs = 0;
  };
  enum class SyncPhase { gathering, waiting_for_release, waiting_for_average };

  bool is_first() const { return stage_ == Stage(0); }
  bool is_last() const { return stage_.value + 1 == setup_.header.stages; }
  bool is_spread() const { return setup_.header.placement == Placement::spread; }
  /// Of a row that holds one replica; 0 where a row holds all.
  Replica replica_of_row() const {
    return is_spread() ? setup_.header.first_replica_of(setup_.row) : Replica(0);
  }
  VersionedBlock& block_of(Replica replica);

  // row_runner.cpp
  bool forward(const Instruction& instruction);
  bool backward(const Instruction& instruction);
  void update(const Instruction& instruction);
  VersionedBlock::Pin pin_for_read(const Instruction& instruction, VersionedBlock& block);
  bool is_admitted(const Instruction& instruction, Tick& ready);
  void note_forward(Microbatch m);
  void drop_superseded();
  void add_noise(Tensor& gradient, Microbatch m) const;
  Gradient& gradient_for(const Instruction& instruction);
  std::optional<Message> take(std::vector<Message>& inbox, MessageKind kind, Microbatch m,
                              std::optional<Replica> replica = std::nullopt);
  void check_header(const Message& message) const;
  bool execute(const Instruction& instruction);
  Step next_step();
  std::vector<Message>& inbox_of(MessageKind kind) {
    return kind == MessageKind::activation ? activations_ : gradients_;
  }
  void take_what_has_come();
  void finish(Tick start, ActionKind kind, Microbatch m, WeightVersion version);
  void release();
  /// When what is sent now to a neighbouring stage arrives.
  Tick arrival(LinkQueue& queue, std::int32_t to, Microbatch m);
  Message message(MessageKind kind, Row to, Microbatch m, Replica replica, WeightVersion version,
                  Tick arrival, Tensor tensor) const;
  void send(MessageKind kind, Row to, Microbatch m, Replica replica, WeightVersion version,
            Tick arrival, Tensor tensor);
  std::string describe() const;

  // row_online.cpp
  void append_online(const Instruction& instruction);
  void observe_what_is_due();
  bool choose();
  void tell_rule(const Message& message);
  void tell_rule(const Action& ended);

  // row_state.cpp
  void checkpoint();
  void store_in_flight(const Message& message);
  void archive_state(Archive& archive, std::int64_t observations);
  void archive_pins(Archive& archive, std::int64_t observations);

  // row_sync.cpp
  bool sync(const Instruction& instruction);
  bool gather_for_sync(const Instruction& instruction);
  void average_blocks();
  void observe(const Instruction& instruction);
  void keep_observation(std::int64_t number, std::int64_t given_to_all);
  bool continue_observations();
  bool continue_evaluation();
  bool complete(Observation& observation);
  void finish_average(Observation& observation);
  const Tensor& weights_of(const Observation& observation) const;
  void evaluate(Tensor partial);
  void end_evaluation();
  void give_full_gradient(Observation observation, Tensor back);

  RowSetup setup_;
  Outbox& outbox_;
  const RowClock& time_;
  Stage stage_;
  Tick clock_{0};  // end of the last action
  LinkQueue to_next_, to_previous_;
  std::vector<Planned> program_;
  std::size_t at_ = 0;
  std::int64_t actions_given_ = 0;
  std::optional<Action> chosen_;  // program_[at_], by the rule
  Fifo<DueObservation> observations_due_;
  std::int64_t updates_given_ = 0, syncs_given_ = 0, updates_done_ = 0, syncs_done_ = 0;
  bool no_more_ = false;
  std::optional<Held> held_;
  std::vector<Message> on_the_way_;  // here already, to be used when their latency has passed
  std::vector<Message> activations_, gradients_, sync_messages_;
  Fifo<Message> evaluations_;
  Fifo<Observation> observations_;
  std::int64_t parts_under_way_ = 0;  // of evaluations, sent by row 0 and not yet at the last stage
  Fifo<Message> full_gradients_;
  Fifo<Observation> going_back_;  // evaluated; their full gradient has not come back yet
  std::vector<Stashed> stash_;    // in no order
  std::int64_t stash_bytes_ = 0;  // of its saved tensors
  std::vector<Saved> spare_saved_;
  std::vector<Gradient> gradients_due_;
  Tensor scratch_gradient_;
  Fifo<Superseded> superseded_;
  Fifo<KeptObservation> kept_observations_;
  Fifo<Cut> cuts_;
  std::optional<PassedCut> passed_;
  std::int64_t bytes_to_next_ = 0, bytes_to_previous_ = 0;  // sent in all
  std::vector<Microbatch> forwards_ahead_;                  // done beyond the first that is not
  Microbatch next_forward_{0};
  std::uint64_t contents_ = 1;  // names the contents of the row's blocks: changes with them
  SyncPhase sync_phase_ = SyncPhase::gathering;
  Tick sync_start_{0};
  std::vector<Tensor> gathered_;  // by replica, of a sync
  Tensor average_;
  Tensor last_synced_;                           // where the outer optimizer started from
  std::vector<std::int64_t> averaged_contents_;  // what the last observed average was made of
  std::uint64_t averaged_id_ = 0;
  RowReport report_;
  std::int64_t messages_sent_ = 0;
  std::int64_t stash_bytes_max_ = 0, activation_bytes_max_ = 0;
};

}  // namespace pipewright
