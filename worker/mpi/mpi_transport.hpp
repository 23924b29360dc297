// The world of MPI ranks. Everything here is called by one thread of a process.
#pragma once

#include <memory>

#include "worker/transport/transport.hpp"

namespace pipewright {

/// Initialises MPI and finalises it.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const;
  int size() const;
  /// Of the machine that this rank runs on.
  static std::string host();
  /// The transport on all ranks; a collective call.
  std::unique_ptr<Transport> transport();
  /// Ends all ranks of the world, at once and without cleaning up.
  [[noreturn]] static void abort(int status);
};

}  // namespace pipewright
