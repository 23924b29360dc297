// Who may use the daemon: the token of the data folder (DATA_DIR/token, its owner's, an admin) and
// those made later, of which DATA_DIR/tokens.json (mode 0600) keeps names, roles and SHA-256
// hashes. A token is 32 random bytes in hexadecimal: nobody guesses one, so a fast hash is as good
// as a slow one, and a stolen tokens.json opens nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "daemon/auth/role.hpp"
#include "proto/codec/token.hpp"

namespace pipewright {

/// A token that is known, without its secret. Shared with the connections that were let in by it,
/// which end with it.
struct Holder {
  std::string name;
  Role role = Role::read;
  std::string sha256;
  std::int64_t created_unix_ms = 0;
  std::int64_t last_used_unix_ms = 0;
  std::int64_t expires_unix_ms = 0;  // 0: never
  bool revoked = false;

  bool ended(std::int64_t now_unix_ms) const {
    return revoked || (expires_unix_ms != 0 && expires_unix_ms <= now_unix_ms);
  }
};

/// A name that is taken.
class TokenExists : public Error {
 public:
  using Error::Error;
};

class Tokens {
 public:
  /// Reads both files, or makes the first at the first start. Throws ConfigError when one cannot be
  /// read, may be read by others or holds something else.
  explicit Tokens(const std::filesystem::path& data_dir);

  /// The token that this is the secret of, even when it has expired; null for none. Takes the same
  /// time for every secret of the same length.
  std::shared_ptr<const Holder> find(std::string_view secret, std::int64_t now_unix_ms);

  /// Makes a token and gives its secret, once and for all. Throws ConfigError for a bad name, role
  /// or expiry, TokenExists, and StoreError when it cannot be written (then there is none).
  TokenReply create(const TokenRequest& request, std::int64_t now_unix_ms);
  /// By name, that of the data folder too.
  TokenList list() const;
  bool contains(std::string_view name) const;
  /// Ends a token that is there and gives it as it was. Throws ConfigError for that of the data
  /// folder, and StoreError.
  TokenInfo revoke(std::string_view name);

  /// There are more than that of the data folder.
  bool several() const { return holders_.size() > 1; }
  /// Writes when tokens were used last, if that has changed; at most once a minute, or at once when
  /// the daemon ends. A disk that refuses is no fault.
  void save_uses(std::int64_t now_unix_ms, bool at_once = false);

 private:
  void read();
  void save() const;

  std::filesystem::path file_;
  std::vector<std::shared_ptr<Holder>> holders_;  // that of the data folder first
  std::int64_t saved_unix_ms_ = 0;
  bool used_ = false;
};

}  // namespace pipewright
