// The one family of exceptions for mistakes of users and peers. A message says what was given,
// where, and what would be right. A programmer's mistake trips PW_CHECK (check.hpp) instead.
#pragma once

#include <stdexcept>
#include <string>

namespace pipewright {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A job file, a schedule or an argument asks for something impossible.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A ConfigError at a known key of a job: `path()` is dotted ("objective.logistic.l2",
/// "sweep.a[2]"). Whoever has the text of the job adds file and line.
class ParamError : public ConfigError {
 public:
  ParamError(std::string path, const std::string& message)
      : ConfigError(path.empty() ? message : path + ": " + message),
        path_(std::move(path)),
        message_(message) {}
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_;
  std::string message_;
};

/// A data file holds something that it must not; the message names file and line or byte.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A peer (rank, pool, daemon, client) sent something that the protocol forbids.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

}  // namespace pipewright
