#include "daemon/auth/role.hpp"

namespace pipewright {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::read:
      return "read";
    case Role::submit:
      return "submit";
    case Role::pool:
      return "pool";
    case Role::admin:
      break;
  }
  return "admin";
}

std::optional<Role> role_from(std::string_view name) {
  for (const Role role : {Role::read, Role::submit, Role::pool, Role::admin}) {
    if (name_of(role) == name) return role;
  }
  return std::nullopt;
}

bool includes(Role has, Role needs) {
  if (has == needs || has == Role::admin) return true;
  return has == Role::submit && needs == Role::read;
}

}  // namespace pipewright
