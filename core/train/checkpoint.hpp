// Where the checkpoints of a run are kept: one at a time, made of a part for each row and one for
// the coordinator. Core does not know whether that is a folder or a wire (docs/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.hpp"

namespace pipewright {

class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// Parts come one by one, in any order. Throws DataError where they cannot be kept.
  virtual void put_row(Tick tick, Row row, std::string_view state) = 0;
  /// The coordinator's: its values since the checkpoint before.
  virtual void put_values(Tick tick, std::string_view values) = 0;
  /// All parts of this checkpoint have been given.
  virtual void complete(Tick tick) = 0;

  /// The checkpoint to go on from, if there is one.
  virtual std::optional<Tick> resume_from() const = 0;
  /// A row's part of it.
  virtual std::string row(Row row) const = 0;
  /// The coordinator's parts up to it, from the first on; nothing after the last.
  virtual std::optional<std::string> next_values() = 0;
};

}  // namespace pipewright
