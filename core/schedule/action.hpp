// One entry of a schedule. DESIGN.md section 3: schedules are data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.hpp"

namespace pipewright {

enum class ActionKind : std::uint8_t { forward, backward, update, sync };

/// "F", "B", "U", "SYNC".
std::string_view name_of(ActionKind kind);
std::optional<ActionKind> action_kind_from(std::string_view name);

struct Action {
  /// `read_update` of everything but an RPD forward.
  static constexpr UpdateCount reads_newest{-1};

  ActionKind kind = ActionKind::forward;
  Stage stage;
  Replica replica;
  Stage backward_to;  // the lowest stage on which this microbatch has a B: 0, but for RPD. Not in
                      // the CSV form, which implies it
  Microbatch microbatch;  // of a SYNC: the number of the round
  Batch batch;
  UpdateCount read_update = reads_newest;  // an RPD forward reads the block as it was after so many
                                           // updates of all blocks together
  Microbatch admitted_by{-1};  // an RPD forward on stage 0: the update on another stage that had
                               // to end before it (the in-flight cap); -1: none. simulate() finds
                               // it

  friend bool operator==(const Action&, const Action&) = default;
  /// "F12", "B3", "U3", "SYNC0"; with the replica ("F12/r1") where there are several.
  std::string label(bool with_replica = false) const;
};

}  // namespace pipewright
