#include "worker/transport/in_process.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/check.hpp"

namespace pipewright {

namespace {

/// The mailboxes of one run, shared by its ranks.
struct RunBoxes {
  explicit RunBoxes(std::size_t size) : boxes(size), closing(size) {}
  std::mutex mutex;
  std::vector<std::deque<Message>> boxes;
  std::vector<bool> closing;
  std::size_t joined = 0;
};

}  // namespace

struct InProcessWorld::Shared {
  explicit Shared(int size) : boxes(static_cast<std::size_t>(size)) {}
  std::mutex mutex;
  std::vector<std::deque<ControlArrival>> boxes;
  // Runs that not all ranks have joined yet, by their ranks and tag.
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<RunBoxes>> opening;
};

class InProcessRun : public RunTransport {
 public:
  InProcessRun(std::shared_ptr<RunBoxes> run, int rank) : run_(std::move(run)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(run_->boxes.size()); }

  void send(int to, Message message) override {
    PW_CHECK(to != rank_, "rank " << rank_ << " of a run sends to itself");
    const std::lock_guard lock(run_->mutex);
    PW_CHECK(!run_->closing[static_cast<std::size_t>(rank_)], "a send after begin_close()");
    run_->boxes[static_cast<std::size_t>(to)].push_back(std::move(message));
  }

  std::optional<Message> poll() override {
    const std::lock_guard lock(run_->mutex);
    auto& box = run_->boxes[static_cast<std::size_t>(rank_)];
    if (run_->closing[static_cast<std::size_t>(rank_)]) box.clear();
    if (box.empty()) return std::nullopt;
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }

  void begin_close() override {
    const std::lock_guard lock(run_->mutex);
    run_->closing[static_cast<std::size_t>(rank_)] = true;
  }

  bool closed() override {
    const std::lock_guard lock(run_->mutex);
    return std::find(run_->closing.begin(), run_->closing.end(), false) == run_->closing.end();
  }

 private:
  std::shared_ptr<RunBoxes> run_;
  int rank_;
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessWorld::Shared> shared, int rank)
      : shared_(std::move(shared)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_->boxes.size()); }

  void send_control(int to, std::string bytes) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->boxes[static_cast<std::size_t>(to)].push_back({rank_, std::move(bytes)});
  }

  std::optional<ControlArrival> poll_control() override {
    const std::lock_guard lock(shared_->mutex);
    auto& box = shared_->boxes[static_cast<std::size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    ControlArrival arrival = std::move(box.front());
    box.pop_front();
    return arrival;
  }

  bool sends_done() override { return true; }

  std::unique_ptr<RunTransport> open_run(std::span<const int> ranks, int tag) override {
    const std::vector<int> key(ranks.begin(), ranks.end());
    const auto me = std::find(key.begin(), key.end(), rank_);
    PW_CHECK(me != key.end(), "rank " << rank_ << " opens a run that it is not part of");
    const std::lock_guard lock(shared_->mutex);
    auto& opening = shared_->opening[{key, tag}];
    if (!opening) opening = std::make_shared<RunBoxes>(key.size());
    const std::shared_ptr<RunBoxes> run = opening;
    // The last to join takes it off the list: ranks and tag may come again.
    if (++run->joined == key.size()) shared_->opening.erase({key, tag});
    return std::make_unique<InProcessRun>(run, static_cast<int>(me - key.begin()));
  }

 private:
  std::shared_ptr<InProcessWorld::Shared> shared_;
  int rank_;
};

InProcessWorld::InProcessWorld(int size) : shared_(std::make_shared<Shared>(size)) {}
InProcessWorld::~InProcessWorld() = default;

std::unique_ptr<Transport> InProcessWorld::rank(int rank) {
  return std::make_unique<InProcessTransport>(shared_, rank);
}

}  // namespace pipewright
