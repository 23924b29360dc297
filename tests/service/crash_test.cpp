// kill -9 of the daemon at random moments, while clients submit, a pool runs and a client watches:
// nothing that was acknowledged is lost, nothing happens twice. PIPEWRIGHT_CRASHES=2000 makes it
// long.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/service/daemon_process.hpp"

namespace pipewright::test {
namespace {

constexpr std::size_t points_per_job = 30;
constexpr std::size_t jobs_waiting_max = 60;
constexpr int submitters = 3;

/// What the clients know, and where the daemon is now.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Client> client;
  std::map<std::string, std::uint32_t> acknowledged;  // by key
  std::map<std::uint32_t, std::uint64_t> points_stored;
  std::size_t ended = 0;  // of what is acknowledged
  std::vector<std::string> faults;
  std::atomic<bool> no_more_jobs = false;
  std::atomic<bool> over = false;

  Client daemon() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return client.has_value() || over; });
    if (!client) throw std::runtime_error("the test is over");
    return *client;
  }
  void fault(const std::string& what) {
    const std::lock_guard lock(mutex);
    faults.push_back(what);
  }
  /// False when no more jobs are wanted.
  bool wait_until_few_wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock,
                 [&] { return no_more_jobs || acknowledged.size() < ended + jobs_waiting_max; });
    return !no_more_jobs;
  }
};

/// The id, or nothing when no answer came.
std::optional<std::uint32_t> try_to_submit(World& world, const std::string& key) {
  try {
    const Client client = world.daemon();
    const Reply reply = client.send(
        "POST", "/v1/jobs", encode(JobSpecBody{small_job(1, key)}, WireFormat::protobuf),
        {{"Content-Type", "application/x-protobuf"}, {"Idempotency-Key", key}});
    if (reply.status != 200 && reply.status != 201) return std::nullopt;
    return decode<SubmitReply>(reply.body, WireFormat::json).id;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void submit_jobs(World& world, int number) {
  for (int i = 0; world.wait_until_few_wait(); ++i) {
    const std::string key = std::to_string(number) + "-" + std::to_string(i);
    for (int times = 0; times < (i % 3 == 0 ? 2 : 1) && !world.over;) {
      const auto id = try_to_submit(world, key);
      if (!id) {
        std::this_thread::yield();
        continue;
      }
      ++times;
      const std::lock_guard lock(world.mutex);
      const auto [known, is_new] = world.acknowledged.emplace(key, *id);
      if (!is_new && known->second != *id) {
        world.faults.push_back("key " + key + " is job " + std::to_string(known->second) +
                               " and job " + std::to_string(*id));
      }
    }
  }
}

/// All of a run that has ended in the pool, whatever of it the daemon has heard before.
void tell(FakePool& pool, RunId run) {
  pool.send(RunStarted{run});
  for (std::size_t first = 0; first < points_per_job; first += 10) pool.send_points(run, first, 10);
  pool.send_file(run, "objective.csv", "tick,updates,value\n0,0,1\n");
  pool.end(run);
}

/// Serves one attachment until the daemon is gone. `kept` are the runs whose end is not known to be
/// stored: none of them may be started again.
void serve(World& world, FakePool& pool, std::set<RunId>& kept) {
  for (const RunId run : kept) tell(pool, run);
  while (const auto frame = pool.receive()) {
    if (const auto* start = std::get_if<StartRun>(&*frame)) {
      for (const RunId run : kept) {
        if (run.job != start->run.job) continue;
        world.fault("job " + std::to_string(run.job) + " is started as attempt " +
                    std::to_string(start->run.attempt) + ", but the pool has it as attempt " +
                    std::to_string(run.attempt));
      }
      kept.insert(start->run);
      tell(pool, start->run);
    } else if (const auto* stored = std::get_if<PointsStored>(&*frame)) {
      const std::lock_guard lock(world.mutex);
      auto& most = world.points_stored[stored->run.job];
      most = std::max(most, stored->next_index);
    } else if (const auto* ended = std::get_if<RunEndStored>(&*frame)) {
      kept.erase(ended->run);
      const std::lock_guard lock(world.mutex);
      ++world.ended;
      world.changed.notify_all();
    }
  }
}

void run_jobs(World& world) {
  std::set<RunId> kept;
  while (!world.over) {
    try {
      FakePool pool(world.daemon(), "crash", "instance", {kept.begin(), kept.end()}, 2);
      serve(world, pool, kept);
    } catch (const std::exception&) {
      std::this_thread::yield();  // the daemon is gone
    }
  }
}

/// Follows one job after the other; each of its events must come once, in order.
void watch_jobs(World& world, std::atomic<std::size_t>& watched) {
  for (std::uint32_t id = 1; !world.over; ++id) {
    std::uint64_t next = 1;
    for (bool ended = false; !ended && !world.over;) {
      try {
        Watcher watcher(world.daemon(), id, "?from=" + std::to_string(next));
        ended = watcher.until<JobEnded>().has_value();
        for (const Event& event : watcher.events()) {
          if (event.sequence != next++) {
            world.fault("the stream of job " + std::to_string(id) + " gives event " +
                        std::to_string(event.sequence) + " for " + std::to_string(next - 1));
          }
        }
      } catch (const std::exception&) {
        std::this_thread::yield();  // the daemon is gone, or there is no such job yet
      }
    }
    if (!world.over) ++watched;
  }
}

/// At the end the daemon goes first: that is what threads that listen to it wait for.
class Threads {
 public:
  Threads(World& world, std::unique_ptr<Process>& daemon) : world_(world), daemon_(daemon) {}
  ~Threads() {
    {
      const std::lock_guard lock(world_.mutex);
      world_.over = world_.no_more_jobs = true;
    }
    world_.changed.notify_all();
    if (daemon_->running()) {
      EXPECT_EQ(daemon_->kill(SIGTERM), 0);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  template <class Function>
  void add(Function function) {
    threads_.emplace_back(function);
  }

 private:
  World& world_;
  std::unique_ptr<Process>& daemon_;
  std::vector<std::thread> threads_;
};

int crashes_wanted() {
  const char* given = std::getenv("PIPEWRIGHT_CRASHES");
  return given == nullptr ? 20 : std::atoi(given);
}

void expect_whole(const Client& client, std::uint32_t id) {
  const Job job = wait_for(client, id, JobState::succeeded);
  const EventList all = events(client, id, "?limit=10000");
  expect_numbered(all.events, 1);
  const auto expected = some_points(0, points_per_job);
  const auto points = points_of(all);
  ASSERT_EQ(points.size(), expected.size()) << "job " << id;
  int ends = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(points[i].value, expected[i].value) << "job " << id << ", point " << i;
  }
  for (const Event& event : all.events) {
    const auto* state = std::get_if<StateChange>(&event.what);
    ends += state != nullptr && is_final(state->state);
  }
  ASSERT_EQ(ends, 1) << "job " << id;
}

std::size_t count_jobs(const Client& client) {
  std::size_t count = 0;
  std::uint32_t before = 0;
  do {
    const Reply reply = client.get("/v1/jobs?limit=1000" +
                                   (before == 0 ? "" : "&before=" + std::to_string(before)));
    const auto page = decode<JobList>(reply.body, WireFormat::json);
    count += page.jobs.size();
    before = page.next_before;
  } while (before != 0);
  return count;
}

std::size_t count_ended(const Client& client) {
  static constexpr std::string_view line = "pipewright_jobs{state=\"succeeded\"} ";
  const std::string text = client.get("/metrics").body;
  return std::stoul(text.substr(text.find(line) + line.size()));
}

struct Crash : DaemonProcess {
  World world;

  std::unique_ptr<Process> start() {
    auto process = launch({"--port", "0", "--log-level", "warning"});
    const Client client = client_of(*process);
    const std::lock_guard lock(world.mutex);
    world.ended = count_ended(client);  // what the pool has not been told counts too
    world.client = client;
    world.changed.notify_all();
    return process;
  }
  /// At any moment, also of its start.
  void crash(Process& process) {
    {
      const std::lock_guard lock(world.mutex);
      world.client.reset();
    }
    EXPECT_EQ(process.kill(SIGKILL), -SIGKILL);
  }
  void expect_acknowledged_points() {
    std::map<std::uint32_t, std::uint64_t> stored;
    {
      const std::lock_guard lock(world.mutex);
      // The newest are those that a crash could have taken.
      for (auto at = world.points_stored.rbegin();
           at != world.points_stored.rend() && stored.size() < 10; ++at) {
        stored.insert(*at);
      }
    }
    for (const auto& [id, count] : stored) {
      EXPECT_GE(points_of(events(*world.client, id, "?limit=10000")).size(), count) << "job " << id;
    }
  }
};

TEST_F(Crash, NothingAcknowledgedIsLostAndNothingHappensTwice) {
  const int crashes = crashes_wanted();
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  std::mt19937 random(seed);
  std::atomic<std::size_t> watched = 0;
  auto process = start();
  {
    Threads threads(world, process);
    for (int i = 0; i < submitters; ++i) threads.add([&, i] { submit_jobs(world, i); });
    threads.add([&] { run_jobs(world); });
    threads.add([&] { watch_jobs(world, watched); });
    for (int i = 0; i < crashes && !HasFailure(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
      crash(*process);
      process = start();
      expect_acknowledged_points();
    }
    {
      const std::lock_guard lock(world.mutex);
      world.no_more_jobs = true;
    }
    world.changed.notify_all();
    std::set<std::uint32_t> ids;
    std::size_t before = 0;
    do {  // those under way are acknowledged in the end
      before = ids.size();
      {
        const std::lock_guard lock(world.mutex);
        for (const auto& [key, id] : world.acknowledged) ids.insert(id);
      }
      for (const std::uint32_t id : ids) expect_whole(*world.client, id);
    } while (!HasFatalFailure() && ids.size() != before);
    EXPECT_EQ(count_jobs(*world.client), ids.size());
    EXPECT_EQ(world.acknowledged.size(), ids.size()) << "a job for every key, and one only";
  }
  for (const std::string& fault : world.faults) ADD_FAILURE() << fault;
  std::cout << "| crashes | jobs acknowledged | points | streams followed to their end |\n"
            << "| " << crashes << " | " << world.acknowledged.size() << " | "
            << world.acknowledged.size() * points_per_job << " | " << watched << " |" << std::endl;
}

}  // namespace
}  // namespace pipewright::test
