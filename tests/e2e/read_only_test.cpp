// A store that turns read-only under a running daemon, and back (read_only_disk.cpp).
#include "tests/e2e/events.hpp"
#include "tests/e2e/faults.hpp"

namespace pipewright::e2e {
namespace {

class ReadOnly : public Faults {
 protected:
  void start_daemon(const std::string&) override {
    daemon = std::make_unique<Running>(std::vector<std::string>{
        "/usr/bin/env", "LD_PRELOAD=" PIPEWRIGHT_READ_ONLY_DISK, "READ_ONLY_FOLDER=" + data(),
        (binaries / "pipewrightd").string(), "--data-dir", data(), "--port", "0", "--ranks",
        std::to_string(ranks), "--log-level", "error"});
  }
  ~ReadOnly() override { make_writable(); }

  void make_read_only() const { std::ofstream{data() + ".read-only"}; }
  void make_writable() const { fs::remove(data() + ".read-only"); }

  /// What /readyz answers.
  std::string ready() const {
    const std::string url = json(read_file(data() + "/daemon.json")).at("url").as_text();
    const std::string port = url.substr(url.rfind(':') + 1);
    return run({"/bin/bash", "-c",
                "exec 3<>/dev/tcp/127.0.0.1/" + port +
                    " && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && cat <&3"})
        .out;
  }
};

TEST_F(ReadOnly, JobsAreRefusedWithTheReasonRunsWaitAndAllGoesOnWhenItCanBeWritten) {
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 20000}"));
  until([&] { return done(victim_id) > 0; });
  make_read_only();
  std::ofstream(path / "other.yaml") << job_text("pipedream: {stages: 2, microbatches: 20}");
  const std::string other = (path / "other.yaml").string();
  const Outcome refused = cli({"submit", other});
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("Read-only file system"));
  EXPECT_EQ(cli({"list"}).status, 0) << "reading goes on";
  until([&] { return ready().find("Read-only file system") != std::string::npos; });
  // So does the run, and at its end its files wait.
  until([&] { return done(victim_id) >= 1; });
  EXPECT_TRUE(is_state(victim_id, "RUNNING"));
  EXPECT_NE(cli({"submit", other}).status, 0);

  make_writable();
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 1);
  expect_one_end(victim_id);
  until([&] { return ready().find("Read-only") == std::string::npos; });
  const std::string id = submit("other", job_text("pipedream: {stages: 2, microbatches: 20}"));
  EXPECT_EQ(cli({"wait", id}).status, 0);
  EXPECT_EQ(id, "2") << "what was refused has left nothing";
}

}  // namespace
}  // namespace pipewright::e2e
