// Ranks as threads of one process, for tests and for builds without MPI.
#pragma once

#include <memory>

#include "worker/transport/transport.hpp"

namespace pipewright {

class InProcessWorld {
 public:
  explicit InProcessWorld(int size);
  ~InProcessWorld();

  /// The transport of one rank, to be used by one thread. The world outlives it.
  std::unique_ptr<Transport> rank(int rank);

 private:
  friend class InProcessTransport;
  friend class InProcessRun;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace pipewright
