// A pool that leaves: every rank can be told so, and all of them are sent home without a run.
#include "proto/codec/job_file.hpp"
#include "tests/mpi/pool_runs.hpp"
#include "worker/runtime/coordinator.hpp"

namespace pipewright {
namespace {

RankInfo me() {
  return {static_cast<std::uint32_t>(world()->rank()), "here", getpid()};
}

TEST(Leaving, ASignalToTheLastRankAloneReachesTheCoordinator) {
  const bool is_last = world()->rank() + 1 == world()->size();
  std::atomic<bool> stop{is_last};
  if (world()->rank() != 0) {
    serve_rank(*world(), me(), stop);
    return;
  }
  gather_ranks(*world(), me(), stop);
  while (!stop) {
    const auto arrival = world()->poll_control();
    if (!arrival) continue;
    ASSERT_TRUE(std::holds_alternative<LeaveAsked>(decode_control(arrival->bytes)));
    EXPECT_EQ(arrival->from, world()->size() - 1);
    stop = true;
  }
  shut_down_ranks(*world());
}

/// What is given back has not ended.
class Ended : public RunListener {
 public:
  void started(RunId, const Maker&) override {}
  void points(RunId, std::uint64_t, std::vector<Point>) override {}
  void progress(RunId, const Progress&) override {}
  void log(RunId, LogLine) override {}
  bool keeps_up() const override { return true; }
  void ended(RunId run, RunOutcome, const std::string& message, const std::string&,
             const Value&) override {
    ADD_FAILURE() << "job " << run.job << " ended: " << message;
  }
};

TEST(Leaving, EndsRunsThatAreUnderWayAndThoseThatWaitForTheirRanks) {
  std::atomic<bool> stop{false};
  if (world()->rank() != 0) {
    serve_rank(*world(), me(), stop);
    return;
  }
  gather_ranks(*world(), me(), stop);
  const Value job = JobFile::parse(
                        "objective: {quadratic: {generate: {kind: tridiagonal, examples: 600, "
                        "parameters: 512}, batch_size: 5}}\n"
                        "schedule: {pipedream: {stages: 2, microbatches: 3000000}}\n"
                        "optimizer: {sgd: {learning_rate: 0.001}}\n",
                        "job")
                        .checked();
  const TemporaryFolder folder;
  Ended ended;
  Coordinator coordinator(*world(), ended, folder / "spool");
  if (world()->size() > 1) {  // rank 0 only coordinates here
    for (std::uint32_t id = 1; id <= 3; ++id) {
      coordinator.start({{id, 0, 1}, job, {1}});
    }
  }
  coordinator.give_back_all();
  while (coordinator.has_runs()) {
    if (auto arrival = world()->poll_control()) {
      coordinator.on_control(decode_control(arrival->bytes));
    }
    coordinator.poll();
  }
  shut_down_ranks(*world());
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::mpi_test_main(argc, argv);
}
