// Job files: YAML (so JSON too) to a Value tree, with the line of every key for error messages.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright {

/// A job file's tree and where its keys stand. Nothing is checked but that the text is YAML with
/// unique text keys.
class JobFile {
 public:
  /// Throws ConfigError "FILE:LINE:COLUMN: message" for text that is not such YAML. `file` is used
  /// in messages only.
  static JobFile parse(std::string_view text, const std::string& file);
  /// Reads and parses a file; "-" is standard input.
  static JobFile read(const std::string& path);

  Value& tree() { return tree_; }
  const Value& tree() const { return tree_; }

  /// Sets `key=value` as `--set` gives it: a dotted path and a YAML value. Throws ConfigError.
  void set(std::string_view assignment);

  /// "FILE:LINE: " of the nearest known ancestor of a dotted path (list elements as "a[2]"), or of
  /// what
  /// `--set` gave ("--set KEY: ").
  std::string where(std::string_view path) const;

  /// The tree checked against the job schema (core/train/job.hpp), defaults filled in, and relative
  /// paths made absolute against the file's folder. Throws ConfigError with file, line and the
  /// nearest valid key.
  Value checked() const;

 private:
  Value tree_;
  std::string file_;
  std::string folder_;  // that relative paths are meant from; empty: the current one
  std::map<std::string, std::string, std::less<>> places_;  // dotted path -> "FILE:LINE: "
};

}  // namespace pipewright
