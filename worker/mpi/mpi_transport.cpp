#include "worker/mpi/mpi_transport.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "proto/codec/tensor_wire.hpp"
#include "worker/mpi/launcher.hpp"

namespace pipewright {

namespace {

/// All runs share one communicator. One for each would be made by a collective call, in which the
/// ranks of a run would wait for one that has died. Control messages have another: who looks for
/// one should not walk past all the tensors that wait.
enum Tag { tag_control = 1, tag_runs_first = 16 };

/// A failed MPI call leaves the world in a state that nobody knows: there is no going on.
void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  std::fprintf(stderr, "pipewright-worker: %s failed: %.*s\n", call, length, text);
  MpiSession::abort(1);
}

#define PW_MPI(call) check(call, #call)

/// Sends under way, with what they send. Bounded by what the schedule has in flight: every tensor
/// is waited for by a row before it can send many more.
template <class Payload>
class Outgoing {
 public:
  void add(Payload payload, std::span<const std::byte> bytes, int to, int tag, MPI_Comm comm) {
    pending_.push_back({std::move(payload), MPI_REQUEST_NULL});
    PW_MPI(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, comm,
                     &pending_.back().request));
  }

  /// Frees what has left. Sends to several ranks complete in any order.
  bool done() {
    for (auto it = pending_.begin(); it != pending_.end();) {
      int complete = 0;
      PW_MPI(MPI_Test(&it->request, &complete, MPI_STATUS_IGNORE));
      it = complete != 0 ? pending_.erase(it) : std::next(it);
    }
    return pending_.empty();
  }

 private:
  struct Pending {
    Payload payload;
    MPI_Request request;
  };
  std::list<Pending> pending_;
};

/// What one can probe for and receive without blocking.
class Probe {
 public:
  /// True when a message of the tag is there, from `from` (or anybody, MPI_ANY_SOURCE).
  bool look(MPI_Comm comm, int from, int tag) {
    int found = 0;
    PW_MPI(MPI_Improbe(from, tag, comm, &found, &message_, &status_));
    return found != 0;
  }
  int from() const { return status_.MPI_SOURCE; }
  std::size_t bytes() const {
    int count = 0;
    PW_MPI(MPI_Get_count(&status_, MPI_BYTE, &count));
    return static_cast<std::size_t>(count);
  }
  void receive(void* into, std::size_t bytes) {
    PW_MPI(MPI_Mrecv(into, static_cast<int>(bytes), MPI_BYTE, &message_, &status_));
  }

 private:
  MPI_Message message_ = MPI_MESSAGE_NULL;
  MPI_Status status_{};
};

class MpiRun : public RunTransport {
 public:
  MpiRun(MPI_Comm world, std::span<const int> ranks, int me, int tag)
      : world_(world), ranks_(ranks.begin(), ranks.end()), tag_(tag), ended_(ranks.size()) {
    rank_ = index_of(me);
    ended_[static_cast<std::size_t>(rank_)] = true;
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  void send(int to, Message message) override {
    PW_CHECK(!is_closing_ && to != rank_, "rank " << rank_ << " of a run sends to " << to);
    outgoing_.done();
    const auto bytes = encode_tensor_message(message);
    outgoing_.add(std::move(message.tensor), bytes, ranks_[static_cast<std::size_t>(to)], tag_,
                  world_);
  }

  std::optional<Message> poll() override {
    outgoing_.done();
    // A run of one rank has nobody to hear from.
    if (size() == 1) return std::nullopt;
    Probe probe;
    if (!probe.look(world_, MPI_ANY_SOURCE, tag_)) return std::nullopt;
    return take(probe);
  }

  void begin_close() override {
    if (std::exchange(is_closing_, true)) return;
    // Messages between two ranks do not overtake each other, so after a rank's end nothing of it
    // comes. An end has no bytes, a tensor always its header.
    for (const int to : ranks_) {
      if (index_of(to) != rank_) ends_.add(0, {}, to, tag_, world_);
    }
  }

  bool closed() override {
    PW_CHECK(is_closing_, "closed() before begin_close()");
    // What a rank sends after its end belongs to the tag's next run.
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      Probe probe;
      while (!ended_[i] && probe.look(world_, ranks_[i], tag_)) take(probe);
    }
    return outgoing_.done() && ends_.done() &&
           std::find(ended_.begin(), ended_.end(), false) == ended_.end();
  }

 private:
  int index_of(int world_rank) const {
    const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), world_rank);
    return static_cast<int>(at - ranks_.begin());
  }

  std::optional<Message> take(Probe& probe) {
    if (probe.bytes() == 0) {
      probe.receive(nullptr, 0);
      ended_[static_cast<std::size_t>(index_of(probe.from()))] = true;
      return std::nullopt;
    }
    Buffer payload;
    const auto space = receive_space(payload, probe.bytes());
    probe.receive(space.data(), space.size());
    if (is_closing_) return std::nullopt;
    return decode_tensor_message(std::move(payload));
  }

  MPI_Comm world_;
  std::vector<int> ranks_;  // of the world
  int tag_;
  int rank_ = 0;
  bool is_closing_ = false;
  std::vector<bool> ended_;  // those that have sent their end, and this one
  Outgoing<Tensor> outgoing_;
  Outgoing<int> ends_;
};

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    PW_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
    PW_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    PW_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &runs_));
    PW_MPI(MPI_Comm_set_errhandler(runs_, MPI_ERRORS_RETURN));
    PW_MPI(MPI_Comm_rank(comm_, &rank_));
    PW_MPI(MPI_Comm_size(comm_, &size_));
  }
  ~MpiTransport() override {
    MPI_Comm_free(&runs_);
    MPI_Comm_free(&comm_);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send_control(int to, std::string bytes) override {
    if (to == rank_) {
      to_self_.push_back({rank_, std::move(bytes)});
      return;
    }
    outgoing_.done();
    // The heap keeps the bytes where they are while the string itself moves.
    auto held = std::make_unique<std::string>(std::move(bytes));
    const auto span = std::as_bytes(std::span(*held));
    outgoing_.add(std::move(held), span, to, tag_control, comm_);
  }

  std::optional<ControlArrival> poll_control() override {
    if (!to_self_.empty()) {
      ControlArrival arrival = std::move(to_self_.front());
      to_self_.pop_front();
      return arrival;
    }
    outgoing_.done();
    Probe probe;
    if (!probe.look(comm_, MPI_ANY_SOURCE, tag_control)) return std::nullopt;
    ControlArrival arrival{probe.from(), std::string(probe.bytes(), '\0')};
    probe.receive(arrival.bytes.data(), arrival.bytes.size());
    return arrival;
  }

  bool sends_done() override { return to_self_.empty() && outgoing_.done(); }

  std::unique_ptr<RunTransport> open_run(std::span<const int> ranks, int tag) override {
    PW_CHECK(std::find(ranks.begin(), ranks.end(), rank_) != ranks.end(),
             "rank " << rank_ << " opens a run that it is not part of");
    return std::make_unique<MpiRun>(runs_, ranks, rank_, tag_runs_first + tag);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;  // of control messages
  MPI_Comm runs_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  std::deque<ControlArrival> to_self_;
  Outgoing<std::unique_ptr<std::string>> outgoing_;
};

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  int provided = 0;
  check(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    std::fprintf(stderr, "pipewright-worker: this MPI has no MPI_THREAD_FUNNELED\n");
    abort(1);
  }
  PW_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

MpiSession::~MpiSession() {
  MPI_Finalize();
}

int MpiSession::rank() const {
  int rank = 0;
  PW_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

int MpiSession::size() const {
  int size = 0;
  PW_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

std::string MpiSession::host() {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  PW_MPI(MPI_Get_processor_name(name, &length));
  return {name, static_cast<std::size_t>(length)};
}

std::unique_ptr<Transport> MpiSession::transport() {
  return std::make_unique<MpiTransport>();
}

void MpiSession::abort(int status) {
  static constexpr std::chrono::seconds patience{5};
  end_launcher_within(patience);
  ::alarm(static_cast<unsigned>(patience.count()));  // should MPI itself wait for ever
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

}  // namespace pipewright
