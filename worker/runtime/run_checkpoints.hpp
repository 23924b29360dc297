// The checkpoints of a run on ranks, as its coordinator has them: parts come from the ranks, lie in
// a folder of the coordinator's until whoever listens has stored them, and come back from there
// when the run is started again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/train/run_control.hpp"
#include "proto/codec/checkpoint_folder.hpp"
#include "proto/codec/control.hpp"
#include "worker/runtime/run_listener.hpp"

namespace pipewright {

class RunCheckpoints {
 public:
  /// `files` are those of the checkpoint to go on from; they are asked for one by one.
  RunCheckpoints(RunListener& listener, RunId run, std::string folder,
                 std::vector<std::string> files);

  /// All files to go on from are here.
  bool fetched() const { return fetched_ == files_.size(); }
  void on(const CheckpointPiece& piece);

  /// Looks at what was fetched. Gives why it cannot be used, if it cannot.
  std::vector<std::string> open(CheckpointOrigin origin, int rows, Maker maker);
  /// After open(): from where the run goes on, and with what.
  StoredCheckpoints& store() { return *store_; }

  /// Of a row's state. A part that has come is to be acknowledged.
  void on(StateChunk chunk);
  void put_values(const ControlCheckpoint& part);
  /// It has been stored elsewhere.
  void stored(RunControl& control);

 private:
  void ask();
  void part_is_there(Tick tick, std::string name);

  RunListener& listener_;
  RunId run_;
  CheckpointFolder folder_;
  std::vector<std::string> files_;
  std::size_t fetched_ = 0;
  std::uint64_t offset_ = 0;  // of the next part of files_[fetched_]
  int rows_ = 0;
  std::optional<StoredCheckpoints> store_;
  std::map<Row, std::string> coming_;  // states, as far as they are here
  std::vector<std::string> parts_;     // that are here, of the checkpoint under way
};

}  // namespace pipewright
