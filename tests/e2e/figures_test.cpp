// plot and plan --format svg, as real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

Outcome pipewright(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  return run(arguments);
}

#define PIPEWRIGHT_NEEDS_GNUPLOT() \
  if (!on_path("gnuplot"))         \
  GTEST_SKIP() << "gnuplot is not here (package gnuplot-nox): this test needs it"

class Figures : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pipewright-figures-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }
  std::string content(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  /// The folder of a small run of that name.
  std::string run_folder(const std::string& name, const std::vector<std::string>& more = {}) const {
    const std::string job = write(name + ".yaml", R"(
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 60, parameters: 24, seed: 0}, batch_size: 5}
schedule:
  pipedream: {stages: 4, microbatches: 60}
optimizer: {sgd: {learning_rate: 0.01}}
)");
    std::vector<std::string> command{"run", job, "--out", path(name), "--set", "name=" + name};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = pipewright(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return path(name);
  }

  fs::path folder_;
};

TEST_F(Figures, OverlayRunsWithTheirNames) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const std::string one = run_folder("one"), two = run_folder("two");
  const Outcome outcome =
      pipewright({"plot", one, two, "--out", path("f.svg"), "--title", "A <title> & more"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, path("f.svg") + "\n");
  EXPECT_EQ(outcome.err, "");
  const std::string svg = content("f.svg");
  EXPECT_THAT(svg, StartsWith("<?xml"));
  for (const char* part : {">one</text>", ">two</text>", ">A &lt;title> &amp; more</text>",
                           "time (ticks)", "objective f(w)", "</svg>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  // The same again is the same, byte for byte.
  pipewright({"plot", one, two, "--out", path("g.svg"), "--title", "A <title> & more"});
  EXPECT_EQ(content("g.svg"), svg);
}

TEST_F(Figures, PngIsByExtension) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const Outcome outcome = pipewright({"plot", run_folder("one"), "--out", path("f.png"), "--series",
                                      "loss", "--x", "microbatches", "--smooth", "5", "--log-x"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(content("f.png"), StartsWith("\x89PNG"));
}

TEST_F(Figures, NamesOfJobsDoNothingButAppear) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const std::string evil =
      "x'.system('touch " + path("pwned") + "').'`touch " + path("pwned") + "`";
  const std::string one = run_folder("one", {"--set", "name=\"" + evil + "\""});
  const Outcome outcome = pipewright({"plot", one, one, "--out", path("f.svg")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(content("f.svg"), HasSubstr("system("));
  EXPECT_FALSE(fs::exists(path("pwned")));
}

TEST_F(Figures, TablesAreDrawnByColumn) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const std::string table = write("t.csv", "stages,method,mean,max\n2,a,1,2\n4,b,3,\n8,c,5,6\n");
  EXPECT_EQ(pipewright({"plot", table, "--out", path("f.svg")}).status, 2) << "method is no number";
  const Outcome outcome =
      pipewright({"plot", table, "--series", "mean", "--series", "max", "--out", path("f.svg")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(content("f.svg"), AllOf(HasSubstr("mean"), HasSubstr("max"), HasSubstr("stages")));
}

TEST_F(Figures, DurationsHaveAUnitAndDoNotMixWithTicks) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const std::string ticks = run_folder("ticks");
  const std::string times = run_folder("times", {"--set", "cost={forward: 1ms, backward: 1ms}"});
  ASSERT_EQ(pipewright({"plot", times, "--out", path("f.svg")}).status, 0);
  EXPECT_THAT(content("f.svg"), HasSubstr("time (ms)"));
  const Outcome outcome = pipewright({"plot", ticks, times, "--out", path("f.svg")});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--x updates"));
  EXPECT_EQ(pipewright({"plot", ticks, times, "--out", path("f.svg"), "--x", "updates"}).status, 0);
}

TEST_F(Figures, JobsOfManyRunsAreDrawnWholeOrByTheirBestOrAsBands) {
  PIPEWRIGHT_NEEDS_GNUPLOT();
  const std::string many =
      run_folder("many", {"--set", "sweep={optimizer.sgd.learning_rate: [0.001, 0.01]}", "--set",
                          "repeats=2", "--set", "cost.jitter={uniform: {low: 0, high: 2}}"});
  const auto labels = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plot", many, "--out", path("f.svg")});
    const Outcome outcome = pipewright(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::string svg = content("f.svg");
    int curves = 0;
    while (svg.find("gnuplot_plot_" + std::to_string(curves + 1) + "\"") != std::string::npos) {
      ++curves;
    }
    return std::pair{curves, svg.find(">learning_rate = 0.001") != std::string::npos};
  };
  const auto [all, all_labelled] = labels({});
  const auto [bands, bands_labelled] = labels({"--band"});
  const auto [best, best_labelled] = labels({"--best"});
  EXPECT_TRUE(all_labelled);
  EXPECT_TRUE(bands_labelled);
  EXPECT_FALSE(best_labelled) << "0.01 is better";
  EXPECT_EQ(all, 4);
  EXPECT_EQ(bands, 4) << "2 means and 2 bands";
  EXPECT_EQ(best, 2);
  EXPECT_EQ(pipewright({"plot", many, "--out", path("f.svg"), "--band", "--x", "updates"}).status,
            2);
}

TEST_F(Figures, WithoutGnuplotThePackageIsNamedAndNothingIsWritten) {
  const Outcome outcome = run({"/usr/bin/env", "PATH=/nonexistent", program, "plot",
                               run_folder("one"), "--out", path("f.svg")});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("gnuplot-nox"));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(StartsWith("f.svg")));
  }
}

TEST_F(Figures, MistakesEndWithStatus2AndSayWhatIsRight) {
  const std::string one = run_folder("one");
  const auto fault = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plot");
    const Outcome outcome = pipewright(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  const std::string out = path("f.svg");
  EXPECT_THAT(fault({one, "--out", path("f.pdf")}), HasSubstr(".svg or .png"));
  EXPECT_THAT(fault({path("none"), "--out", out}), HasSubstr("no folder of a run"));
  EXPECT_THAT(fault({folder_.string(), "--out", out}), HasSubstr("no run lies there"));
  EXPECT_THAT(fault({one, "--out", out, "--x", "updats"}), HasSubstr("did you mean 'updates'"));
  EXPECT_THAT(fault({one, "--out", out, "--series", "loss", "--x", "updates"}),
              HasSubstr("--x microbatches"));
  EXPECT_THAT(fault({one, "--out", out, "--gap"}), HasSubstr("--optimum"));
  EXPECT_THAT(fault({one, "--out", out, "--series", "bound"}), HasSubstr("observe.theory=true"));
  EXPECT_THAT(fault({one, "--out", out, "--size", "10x10"}), HasSubstr("WIDTHxHEIGHT"));
  EXPECT_THAT(fault({one, "--out", out, "--label", "a", "--label", "b"}),
              HasSubstr("2 labels for 1 curves"));
  EXPECT_THAT(fault({one, "--out", path("no/such/f.svg")}), HasSubstr("cannot be written"));
}

TEST_F(Figures, APlanIsAChartOfTheTimeThatIsAskedFor) {
  const std::vector<std::string> plan{"plan",           "--schedule", "pipedream", "--stages", "4",
                                      "--microbatches", "50000",      "--format",  "svg"};
  const Outcome whole = pipewright(plan);
  EXPECT_EQ(whole.status, 2);
  EXPECT_THAT(whole.err, HasSubstr("--from TICK and --to TICK"));
  std::vector<std::string> part = plan;
  part.insert(part.end(), {"--from", "100", "--to", "110", "--out", path("plan.svg")});
  const Outcome outcome = pipewright(part);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string svg = content("plan.svg");
  // Steady 1F1B is never idle: 10 ticks of 4 stages, half of them forwards.
  std::size_t forwards = 0;
  for (int tick = 100; tick < 110; ++tick) {
    const std::string times = ": " + std::to_string(tick) + " to " + std::to_string(tick + 1);
    for (std::size_t at = svg.find(times); at != std::string::npos; at = svg.find(times, at + 1)) {
      const std::size_t begin = svg.rfind("<title>", at);
      forwards += svg[begin + 7] == 'F' ? 1 : 0;
    }
  }
  EXPECT_EQ(forwards, 20u);
  EXPECT_EQ(pipewright({"plan", "--schedule", "pipedream", "--stages", "2", "--microbatches", "3",
                        "--from", "3"})
                .status,
            2)
      << "--from without a chart";
}

}  // namespace
}  // namespace pipewright::e2e
