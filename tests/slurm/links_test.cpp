// Links that are cut between the hosts of a Slurm, each with networks of its own (hosts.sh): what
// cannot be reached is found, and runs end with the bytes of one process. `tests/slurm/cluster.sh
// --hosts` runs this program on login.
#include <set>
#include <sstream>

#include "tests/e2e/events.hpp"
#include "tests/slurm/slurm.hpp"

namespace pipewright::e2e {
namespace {

/// The ranks of a pool reach each other by eth0 of their hosts (network "cluster"), the daemon by
/// eth1 ("lan").
class Links : public Slurm {
 protected:
  static constexpr const char* lease_seconds = "3";
  static constexpr const char* silence_max_seconds = "2";

  void SetUp() override { set_up(lease_seconds); }
  void set_up(const std::string& lease) {
    // So that mpirun and its daemons find soon that they cannot reach each other.
    for (const std::string what : {"time", "intvl"}) {
      ::setenv(("OMPI_MCA_oob_tcp_keepalive_" + what).c_str(), "1", 1);
    }
    start_daemon("10.77.1.254", {"--lease", lease});
  }
  void TearDown() override {
    for (const std::string& link : std::set<std::string>(cut_)) mend(link);
    Slurm::TearDown();
  }

  void cut(const std::string& link) {
    set(link, "down");
    cut_.insert(link);
  }
  void mend(const std::string& link) {
    set(link, "up");
    cut_.erase(link);
  }

  std::string start_pool_on(const std::string& hosts, Words options = {}) {
    options.insert(options.end(), {"--nodelist", hosts, "--nodes", "2", "--ntasks-per-node", "1",
                                   "--silence-max", silence_max_seconds});
    return start_pool(options);
  }
  void submit_and_wait_until_it_runs(int microbatches) const {
    EXPECT_EQ(cli({"submit", job_file(2, microbatches)}).out, "1\n");
    until([&] { return shows("RUNNING"); });
  }
  bool shows(const std::string& text) const {
    return cli({"show", "1"}).out.find(text) != std::string::npos;
  }
  bool pool_is(const std::string& pool, const std::string& state) const {
    const Value list = JobFile::parse(cli({"pools", "--json"}).out, "pools").tree();
    const Value* pools = list.find("pools");
    if (pools == nullptr) return false;
    return std::any_of(pools->as_list().begin(), pools->as_list().end(), [&](const Value& one) {
      return one.at("slurm_job").as_text() == pool && one.at("state").as_text() == state;
    });
  }
  std::string job_log() const { return cli({"log", "1"}).out; }

  /// Also that nothing of it was told twice.
  void expect_undisturbed() const {
    expect_same_bytes();
    const Told told = read_events(cli({"watch", "1", "--json"}).out);
    EXPECT_EQ(told.ends, 1);
    std::vector<std::int64_t> ticks;
    std::istringstream lines(read_file(path / "slurm/objective.csv"));
    std::string line;
    std::getline(lines, line);  // the names
    while (std::getline(lines, line)) ticks.push_back(std::stoll(line));
    EXPECT_EQ(told.objective, ticks);
  }

 private:
  static void set(const std::string& link, const std::string& state) {
    EXPECT_EQ(run({"/usr/sbin/ip", "link", "set", link, state}).status, 0) << link;
  }

  std::set<std::string> cut_;
};

TEST_F(Links, ARunGoesOnWhenItsPoolCannotReachTheDaemonForLessThanTheLease) {
  const std::string pool = start_pool_on("h[1-2]");
  submit_and_wait_until_it_runs(30'000);
  cut("lan-h1");
  until([&] { return pool_is(pool, "away"); });
  EXPECT_TRUE(shows("RUNNING"));
  mend("lan-h1");
  until([&] { return pool_is(pool, "attached"); });
  expect_undisturbed();
  EXPECT_THAT(job_log(), Not(HasSubstr("attempt")));
  EXPECT_THAT(log(pool), HasSubstr("the daemon is there again"));
}

TEST_F(Links, ARunWhosePoolCannotReachTheDaemonForLongerGoesToAnotherAndEndsOnce) {
  const std::string first = start_pool_on("h[1-2]");
  const std::string second = start_pool_on("h[3-4]");
  submit_and_wait_until_it_runs(20'000);
  ASSERT_TRUE(shows("slurm-" + first + ", ranks"));
  cut("lan-h1");
  until([&] { return shows("slurm-" + second + ", ranks"); });
  mend("lan-h1");
  until([&] { return pool_is(first, "attached"); });  // and says what it has done meanwhile
  expect_undisturbed();
  EXPECT_TRUE(shows("slurm-" + second + ", ranks"));
  EXPECT_THAT(job_log(), HasSubstr("its pool did not come back within 3000 ms"));
  EXPECT_THAT(job_log(), Not(HasSubstr("attempt 3")));
}

TEST_F(Links, RanksThatCannotReachEachOtherAreNamedAndAnotherPoolTakesTheirRun) {
  const std::string first = start_pool_on("h[1-2]");
  const std::string second = start_pool_on("h[3-4]");
  submit_and_wait_until_it_runs(15'000);
  ASSERT_TRUE(shows("slurm-" + first + ", ranks"));
  cut("cluster-h2");
  until([&] { return shows("slurm-" + second + ", ranks"); });
  expect_undisturbed();
  EXPECT_THAT(job_log(), testing::ContainsRegex(
                             "attempt 1 was lost: rank 1 \\(host h2, process [0-9]+\\) has said "
                             "nothing for [0-9.]+ s"));
}

/// A daemon that waits for long.
struct LinksAndALongLease : Links {
  void SetUp() override { set_up("600"); }

  /// All that Slurm runs on that host for its jobs, and nobody hears of it.
  static void kill_jobs_of(const std::string& host) {
    const std::string lab = std::getenv("SLURM_LAB");
    const std::string slurmd = read_file(lab + "/run/slurmd-" + host + ".pid");
    const fs::path place =
        fs::read_symlink("/proc/" + slurmd.substr(0, slurmd.find('\n')) + "/ns/net");
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto pid = parse_integer(entry.path().filename().string());
      std::error_code gone;
      if (!pid || fs::read_symlink(entry.path() / "ns/net", gone) != place) continue;
      const std::string name = read_file(entry.path() / "comm");
      if (name != "slurmd\n" && name != "sleep\n") ::kill(static_cast<pid_t>(*pid), SIGKILL);
    }
  }
};

TEST_F(LinksAndALongLease, TheRunOfAHostWithoutPowerGoesToAnotherPoolWhenItsPoolIsDropped) {
  const std::string first = start_pool_on("h[1-2]");
  const std::string second = start_pool_on("h[3-4]");
  submit_and_wait_until_it_runs(15'000);
  cut("lan-h1");
  cut("cluster-h1");
  kill_jobs_of("h1");
  until([&] { return pool_is(first, "away"); });
  EXPECT_THAT(cli({"pools"}).out,
              testing::ContainsRegex("slurm-" + first + " +away, (600|5[0-9]+) s left +2 +2 +1 "));
  EXPECT_EQ(cli({"pool", "drop", "slurm-" + second}).status, 1) << "it is there";
  EXPECT_EQ(cli({"pool", "drop", "slurm-" + first}).out,
            "pool 'slurm-" + first + "' is dropped: what it ran is queued again\n");
  expect_undisturbed();
  EXPECT_TRUE(shows("slurm-" + second + ", ranks"));
  EXPECT_THAT(job_log(), HasSubstr("it was given up by admin"));
}

class LinksOfLaunchers : public Links, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, LinksOfLaunchers, testing::Values(false, true),
                         [](const auto& srun) {
                           return std::string(srun.param ? "Srun" : "Mpirun");
                         });

TEST_P(LinksOfLaunchers, APoolWhoseRanksCouldNotReachEachOtherComesBackWithTheLink) {
  const std::string pool = start_pool_on("h[1-2]", GetParam() ? Words{"--srun"} : Words{});
  submit_and_wait_until_it_runs(15'000);
  cut("cluster-h2");
  until([&] { return shows("QUEUED"); });
  EXPECT_THAT(job_log(), HasSubstr("attempt 1 was lost: rank 1 (host h2, process "));
  // What has started its ranks does not hang.
  until([&] { return log(pool).find("the pool is started again") != std::string::npos; });
  mend("cluster-h2");
  until([&] { return pool_is(pool, "attached"); });
  expect_undisturbed();
  EXPECT_TRUE(shows("attempt    2")) << cli({"show", "1"}).out;
}

}  // namespace
}  // namespace pipewright::e2e
