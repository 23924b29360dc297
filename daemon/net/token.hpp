// The secret that clients and pools show: 64 hexadecimal digits in DATA_DIR/token (mode 0600).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pipewright {

class Token {
 public:
  /// Reads the file, or makes it at the first start. Throws ConfigError when it cannot, or when the
  /// file may be read by others or holds no token.
  static Token load_or_make(const std::filesystem::path& file);

  explicit Token(std::string text) : text_(std::move(text)) {}

  /// Takes the same time for every wrong token of the right length.
  bool equals(std::string_view given) const;

 private:
  std::string text_;
};

}  // namespace pipewright
