// The executor of one row's actions: it computes, keeps versions and stash, and exchanges messages
// with its neighbours. It does not know whether these are in the same process.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/objectives/objective.hpp"
#include "core/schedule/schedule.hpp"
#include "core/sim/cost.hpp"
#include "core/sim/link.hpp"
#include "core/train/block.hpp"
#include "core/train/message.hpp"
#include "core/train/program.hpp"

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
};

class RowRunner {
 public:
  RowRunner(RowSetup setup, Outbox& outbox);

  Row row() const { return setup_.row; }

  /// More instructions, in order. `last` says that no more will come.
  void append(const Window& window);
  /// A message for this row. Throws ProtocolError when the schedule has no use for such a one.
  void deliver(Message message);

  enum class Step { ran, blocked, starved, finished };
  /// Executes the next instruction if what it needs is there. `blocked`: it waits for a message;
  /// `starved`: it waits for instructions; `finished`: all is done, observations included.
  Step step();

  /// What has been done since the last report.
  RowReport take_report();
  bool has_report() const { return !report_.records.empty() || !report_.values.empty(); }
  std::size_t records() const { return report_.records.size(); }
  RowFinal take_final();

 private:
  /// One microbatch between its F and its B.
  struct Stashed {
    Microbatch microbatch;
    VersionedBlock::Pin pin;
    Saved saved;
  };
  struct Accumulated {
    Tensor gradient;
    int count = 0;
  };
  struct Observation {
    std::int64_t number;
    VersionedBlock::Pin pin;
  };

  bool is_first() const { return stage_ == Stage(0); }
  bool is_last() const { return stage_.value + 1 == setup_.header.stages; }
  std::size_t slot(Replica replica) const;
  bool forward(const Instruction& instruction);
  bool backward(const Instruction& instruction);
  void update(const Instruction& instruction);
  void observe(const Instruction& instruction);
  void continue_observations();
  Message* find(std::vector<Message>& inbox, Microbatch m);
  void check_header(const Message& message) const;
  void record(Tick start, ActionKind kind, WeightVersion version);
  void send(MessageKind kind, Row to, const Instruction& instruction, WeightVersion version,
            Tensor tensor);
  std::string describe() const;

  RowSetup setup_;
  Outbox& outbox_;
  Stage stage_;
  Tick clock_{0};
  std::vector<Instruction> program_;
  std::size_t at_ = 0;
  bool no_more_ = false;
  std::vector<Message> activations_, gradients_;
  std::deque<Message> evaluations_;
  std::deque<Observation> observations_;
  std::vector<Stashed> stash_;
  std::vector<Saved> spare_saved_;
  std::vector<Accumulated> accumulated_;  // per replica of the row
  Tensor gradient_;
  RowReport report_;
  std::int64_t messages_sent_ = 0;
  std::int64_t stash_bytes_max_ = 0;
};

}  // namespace pipewright
