// How ranks exchange messages. Two implementations pass one test body: threads of one process
// (in_process.hpp) and MPI (worker/mpi). A Transport and its RunTransports belong to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/train/message.hpp"

namespace pipewright {

struct ControlArrival {
  int from = 0;
  std::string bytes;
};

/// The ranks of one run among themselves: tensors in order from each sender to each receiver.
class RunTransport {
 public:
  virtual ~RunTransport() = default;

  virtual int rank() const = 0;  // in the run
  virtual int size() const = 0;

  /// Takes the message over and returns at once. Nothing is sent to oneself.
  virtual void send(int to, Message message) = 0;
  /// A message that has come, or nothing. Throws ProtocolError for bytes that are not a message.
  virtual std::optional<Message> poll() = 0;

  /// No more will be sent. From now on poll() only drops what still comes.
  virtual void begin_close() = 0;
  /// True once every rank of the run has begun to close and all that was sent has arrived; the
  /// run's tag may then be used again.
  virtual bool closed() = 0;
};

/// The world of a pool.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends bytes to a rank (also to oneself) and returns at once. Per pair of ranks in order.
  virtual void send_control(int to, std::string bytes) = 0;
  virtual std::optional<ControlArrival> poll_control() = 0;
  /// True when all that this rank has sent has left it.
  virtual bool sends_done() = 0;

  /// A run's transport among `ranks` (of the world, ascending; this one is among them), all of
  /// which call it with the same `tag`, from 0 to 32,000. Returns at once: nobody waits for a rank
  /// that has died.
  virtual std::unique_ptr<RunTransport> open_run(std::span<const int> ranks, int tag) = 0;
};

}  // namespace pipewright
