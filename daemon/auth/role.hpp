// What the holder of a token may do. read < submit < admin; a pool's token is for attaching alone,
// so what lies about on the nodes of a cluster reads no jobs and submits none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {

enum class Role : std::uint8_t { read, submit, pool, admin };

std::string_view name_of(Role role);
std::optional<Role> role_from(std::string_view name);

/// Whether one who has a role may do what asks for another.
bool includes(Role has, Role needs);

}  // namespace pipewright
