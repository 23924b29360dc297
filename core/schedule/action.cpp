#include "core/schedule/action.hpp"

namespace pipewright {

std::string_view name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "F";
    case ActionKind::backward:
      return "B";
    case ActionKind::update:
      return "U";
    case ActionKind::sync:
      return "SYNC";
  }
  return "?";
}

std::optional<ActionKind> action_kind_from(std::string_view name) {
  for (const auto kind :
       {ActionKind::forward, ActionKind::backward, ActionKind::update, ActionKind::sync}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

std::string Action::label(bool with_replica) const {
  std::string text(name_of(kind));
  text += std::to_string(microbatch.value);
  if (with_replica && kind != ActionKind::sync) text += "/r" + std::to_string(replica.value);
  return text;
}

}  // namespace pipewright
