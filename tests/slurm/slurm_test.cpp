// Pools in jobs of a real Slurm of four nodes; tests/slurm/cluster.sh runs this program inside it.
#include "tests/slurm/slurm.hpp"

namespace pipewright::e2e {
namespace {

TEST_F(Slurm, FourNodesByMpirunGiveTheBytesOfOneProcessAndLeaveInOrder) {
  const std::string pool = start_pool({"--nodes", "4", "--ntasks-per-node", "1"});
  EXPECT_THAT(cli({"pools"}).out, HasSubstr("slurm-" + pool + "  attached      4     0"));
  cli({"submit", job_file(4, 2000)});
  expect_same_bytes();
  run({"/usr/bin/scancel", "--signal=USR1", "--batch", pool});
  until_ended(pool);
  EXPECT_EQ(state(pool), "COMPLETED");
  EXPECT_EQ(exit_code(pool), "0:0");
  EXPECT_EQ(cli({"pools"}).out, "");
}

TEST_F(Slurm, FourNodesBySrunGiveTheBytesOfOneProcessAndLeaveInOrder) {
  const std::string pool = start_pool({"--srun", "--nodes", "4", "--ntasks-per-node", "1"});
  cli({"submit", job_file(4, 2000)});
  expect_same_bytes();
  run({"/usr/bin/scancel", "--signal=USR1", "--batch", pool});
  until_ended(pool);
  EXPECT_EQ(state(pool), "COMPLETED");
  EXPECT_EQ(exit_code(pool), "0:0");
}

class SlurmLaunchers : public Slurm, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, SlurmLaunchers, testing::Values(false, true), [](const auto& srun) {
  return std::string(srun.param ? "Srun" : "Mpirun");
});

TEST_P(SlurmLaunchers, WhatACancelledPoolRunsEndsOnTheNextOne) {
  Words options{"--nodes", "2", "--ntasks-per-node", "1"};
  if (GetParam()) options.emplace_back("--srun");
  const std::string first = start_pool(options);
  start_pool(options);
  submit_and_wait_until_it_runs();  // on the older one
  run({"/usr/bin/scancel", first});
  expect_same_bytes();
  EXPECT_THAT(cli({"log", "1"}).out, HasSubstr("attempt 1 was given back"));
}

TEST_F(Slurm, APoolWhoseTimeIsOverGivesItsRunBackBeforehand) {
  // Slurm looks every 30 s, and then finds less than 60 s left.
  const std::string first = start_pool({"--nodes", "2", "--ntasks-per-node", "1", "--time", "1"});
  EXPECT_EQ(cli({"submit", job_file(2, 3000000)}).out, "1\n");
  until_ended(first);
  EXPECT_EQ(state(first), "COMPLETED") << "not TIMEOUT";
  EXPECT_THAT(cli({"log", "1"}).out, HasSubstr("attempt 1 was given back"));
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr("QUEUED"));
}

TEST_F(Slurm, ARequeuedPoolTakesItsRunUpAgain) {
  const std::string pool = start_pool({"--nodes", "2", "--ntasks-per-node", "1"});
  submit_and_wait_until_it_runs();
  EXPECT_EQ(run({"/usr/bin/scontrol", "requeue", pool}).status, 0);
  until([&] { return cli({"pools"}).out.find("slurm-" + pool + "-r1") != std::string::npos; });
  expect_same_bytes();
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr("slurm-" + pool + "-r1, ranks 0 1"));
}

TEST_F(Slurm, WorldsOfOneAreRefused) {
  // An MPI that does not see that srun has started it, as of a container or another vendor.
  fs::create_directory(path / "bin");
  const fs::path worker = path / "bin/pipewright-worker";
  std::ofstream(worker) << "#!/bin/sh\n"
                           "exec env $(env | sed -n 's/^\\(SLURM[^=]*\\)=.*/-u \\1/p') '"
                        << binaries.string() << "/pipewright-worker' \"$@\"\n";
  fs::permissions(worker, fs::perms::owner_all);
  const std::string pool =
      sbatch({"--nodes", "2", "--ntasks-per-node", "2", scripts + "pool-srun.sbatch", "--data-dir",
              data(), "--mpi", "none", "--bin", worker.parent_path().string()});
  until_ended(pool);
  EXPECT_EQ(exit_code(pool), "2:0");
  EXPECT_THAT(log(pool), HasSubstr("MPI's world has 1 rank, but --expect-ranks is 4"));
  EXPECT_EQ(cli({"pools"}).out, "");
}

TEST_F(Slurm, AnotherPluginOfSrunThanThatOfTheMpiIsRefused) {
  const std::string pool =
      sbatch({"--nodes", "2", "--ntasks-per-node", "2", scripts + "pool-srun.sbatch", "--data-dir",
              data(), "--mpi", "pmi2"});
  until_ended(pool);
  EXPECT_EQ(state(pool), "FAILED");
  EXPECT_THAT(log(pool), HasSubstr("is 'pmi2' what this MPI was built for?"));
  EXPECT_EQ(cli({"pools"}).out, "");
}

TEST_F(Slurm, AMissingPluginOfSrunIsRefused) {
  const std::string pool = sbatch(
      {"--ntasks", "2", scripts + "pool-srun.sbatch", "--data-dir", data(), "--mpi", "nonesuch"});
  until_ended(pool);
  EXPECT_EQ(exit_code(pool), "2:0");
  EXPECT_THAT(log(pool), HasSubstr("no MPI plugin 'nonesuch'"));
}

TEST_F(Slurm, PoolStartSaysWhyThePoolDoesNotCome) {
  Words words{"pool", "start", "--slurm", "--chdir", path.string(), "--ntasks", "2"};
  fs::create_directory(path / "bin");
  const Outcome typo = cli({"pool", "start", "--slurm", "--nodess", "2"});
  EXPECT_EQ(typo.status, 1);
  EXPECT_THAT(typo.err, HasSubstr("--nodess"));
  words.insert(words.end(), {"--export", "NONE,OMPI_MCA_btl=nonesuch,OMPI_MCA_plm=nonesuch"});
  const Outcome broken = cli(words);
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, HasSubstr("ended before its pool was attached (FAILED"));
  EXPECT_THAT(broken.err, HasSubstr("the pool has ended with status"));
}

TEST_F(Slurm, DryRunShowsCommandAndScriptAndSubmitsNothing) {
  const Outcome outcome =
      cli({"pool", "start", "--slurm", "--dry-run", "--nodes", "4", "--comment", "two words"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("$ sbatch --parsable --nodes 4 --comment 'two words' "));
  EXPECT_THAT(outcome.out, HasSubstr("\n#SBATCH --requeue\n"));
  EXPECT_EQ(outcome.out.find(read_file(data() + "/token")), std::string::npos);
  EXPECT_EQ(run({"/usr/bin/squeue", "--noheader"}).out, "");
}

TEST_P(SlurmLaunchers, OneAllocationRunsDaemonPoolAndJob) {
  const std::string job =
      sbatch({"--nodes", "4", "--ntasks-per-node", "1", scripts + "single.sbatch",
              job_file(4, 2000), "--out", "results", "--launcher", GetParam() ? "srun" : "mpirun"});
  until_ended(job);
  EXPECT_EQ(exit_code(job), "0:0");
  expect_same_files(path / "results");
}

TEST_F(Slurm, OneAllocationExitsWithTheStatusOfItsJob) {
  std::ofstream(path / "job.yaml")
      << "objective: {quadratic: {data: {npy: {x: x.npy, y: y.npy}}, batch_size: 5}}\n"
         "schedule: {pipedream: {stages: 2, microbatches: 4}}\n"
         "optimizer: {sgd: {learning_rate: 0.1}}\n";
  const std::string refused = sbatch({"--ntasks", "2", scripts + "single.sbatch", "job.yaml"});
  until_ended(refused);
  EXPECT_EQ(exit_code(refused), "2:0");
  EXPECT_THAT(log(refused), HasSubstr("x.npy"));
}

TEST_F(Slurm, OneAllocationThatIsQueuedAgainGoesOnWithItsJob) {
  const std::string job =
      sbatch({"--ntasks", "2", scripts + "single.sbatch", job_file(2, 40000), "--out", "results"});
  until([&] { return fs::exists(path / ("pipewright-" + job) / "daemon.json"); });
  const std::string own = (path / ("pipewright-" + job)).string();
  const Words show{(binaries / "pipewright").string(), "show", "1", "--data-dir", own};
  until([&] { return run(show).out.find("RUNNING") != std::string::npos; });
  EXPECT_EQ(run({"/usr/bin/scontrol", "requeue", job}).status, 0);
  until([&] { return state(job) == "PENDING"; });
  until_ended(job);
  EXPECT_EQ(exit_code(job), "0:0");
  expect_same_files(path / "results");
  EXPECT_THAT(log(job), HasSubstr("attempt 2"));
}

TEST_F(Slurm, ThePoolOfALostNodeComesBackOnOthers) {
  const std::string pool = start_pool({"--nodes", "2", "--ntasks-per-node", "1"});
  submit_and_wait_until_it_runs();
  const std::string nodes = slurm(pool, "%N");  // n[1-2]
  ASSERT_THAT(nodes, testing::MatchesRegex("n\\[[0-9]-[0-9]\\]"));
  const std::string lost = std::string("n") + nodes[nodes.size() - 2];
  const fs::path lab = std::getenv("SLURM_LAB");
  ::kill(std::stoi(read_file(lab / ("run/slurmd-" + lost + ".pid"))), SIGKILL);
  EXPECT_EQ(
      run({"/usr/bin/scontrol", "update", "NodeName=" + lost, "State=DOWN", "Reason=test"}).status,
      0);
  until([&] { return cli({"pools"}).out.find("slurm-" + pool + "-r1") != std::string::npos; });
  EXPECT_THAT(slurm(pool, "%N"), Not(HasSubstr(lost)));
  expect_same_bytes();
  // Back for the tests that follow, until this program ends.
  static std::unique_ptr<Running> node;
  node = std::make_unique<Running>(
      Words{"/bin/sh", "-c", "exec slurmd -D -N " + lost + " >/dev/null 2>&1"});
  run({"/usr/bin/scontrol", "update", "NodeName=" + lost, "State=RESUME"});
  until([&] {
    return trim(run({"/usr/bin/sinfo", "--noheader", "--nodes", lost, "--format=%T"}).out) ==
           "idle";
  });
}

}  // namespace
}  // namespace pipewright::e2e
