// A daemon that is killed, stands still or stays away: its pool goes on with the runs for as long
// as the lease says, and they end with the bytes of runs that nobody disturbed.
#include "tests/e2e/faults.hpp"

namespace pipewright::e2e {
namespace {

struct Lease : Faults {};

TEST_F(Lease, ADaemonThatIsKilledGoesOnWithTheSameRun) {
  const std::vector<pid_t> world = descendants(daemon->pid());
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 60000}"));
  until([&] { return done(victim_id) > 0; });
  daemon->signal(SIGKILL);
  daemon->wait();
  for (const pid_t pid : world) EXPECT_TRUE(alive(pid)) << "the pool goes on";
  start_daemon();
  until([&] { return is_whole(); });
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 1);
  EXPECT_THAT(cli({"log", victim_id}).out, Not(HasSubstr("attempt")));
  EXPECT_TRUE(is_whole());
  for (const pid_t pid : world) EXPECT_TRUE(alive(pid)) << "it is the same pool";
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait().status, 0);
  for (const pid_t pid : world) EXPECT_TRUE(wait_gone(pid)) << "process " << pid << " is left";
  daemon.reset();
}

TEST_F(Lease, ADaemonThatStaysAwayForLongerThanItsLeaseStartsTheRunAgain) {
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait().status, 0);
  start_daemon("1");
  until([&] { return is_whole(); });
  const std::vector<pid_t> world = descendants(daemon->pid());
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 60000}"));
  until([&] { return done(victim_id) > 0; });
  daemon->signal(SIGKILL);
  daemon->wait();
  for (const pid_t pid : world) EXPECT_TRUE(wait_gone(pid)) << "it waits no longer than the lease";
  EXPECT_THAT(read_file(data() + "/pool-local.log"), HasSubstr("has not come back within 1000 ms"));
  start_daemon("1");
  until([&] { return is_whole(); });
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 2);
  EXPECT_THAT(cli({"log", victim_id}).out, HasSubstr("attempt 1 was given back: "));
}

TEST_F(Lease, ARunThatEndsWhileTheDaemonIsAwayHasEndedOnce) {
  const fs::path spool =
      fs::temp_directory_path() / ("pipewright-pool-" + std::to_string(process_of(0)));
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 20000}"));
  until([&] { return done(victim_id) > 0; });
  daemon->signal(SIGKILL);
  daemon->wait();
  until([&] { return fs::exists(spool / ("job-" + victim_id + "-0-1") / "summary.json"); });
  start_daemon();
  until([&] { return is_whole(); });
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 1);
  until([&] { return !fs::exists(spool / ("job-" + victim_id + "-0-1")); });  // it is acknowledged
  expect_one_end(victim_id);
}

TEST_F(Lease, ADaemonThatStandsStillIsAttachedToAgainWithTheSameRun) {
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 60000}"));
  until([&] { return done(victim_id) > 0; });
  daemon->signal(SIGSTOP);
  const fs::path pool_log = data() + "/pool-local.log";
  until([&] {
    return read_file(pool_log).find("the daemon was silent for more than") != std::string::npos;
  });
  daemon->signal(SIGCONT);
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 1);
  EXPECT_THAT(read_file(pool_log), HasSubstr("the daemon is there again"));
  expect_one_end(victim_id);
}

TEST_F(Lease, ARunIsCancelledWhileItsPoolIsAway) {
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 600000}"));
  until([&] { return done(victim_id) > 0; });
  const pid_t coordinator = process_of(0);
  daemon->signal(SIGKILL);
  daemon->wait();
  ::kill(coordinator, SIGSTOP);  // so that it comes back after the cancel
  start_daemon();
  until([&] { return cli({"cancel", victim_id}).status == 0; });
  ::kill(coordinator, SIGCONT);
  EXPECT_EQ(cli({"wait", victim_id}).status, 3);
  EXPECT_EQ(attempts(victim_id), 1);
  expect_one_end(victim_id);
}

TEST_F(Lease, DownEndsThePoolOfADaemonThatWasKilled) {
  const std::vector<pid_t> world = descendants(daemon->pid());
  daemon->signal(SIGKILL);
  daemon->wait();
  daemon.reset();
  EXPECT_TRUE(alive(world.front()));
  EXPECT_EQ(cli({"down"}).status, 0);
  for (const pid_t pid : world) EXPECT_TRUE(wait_gone(pid)) << "process " << pid << " is left";
}

}  // namespace
}  // namespace pipewright::e2e
