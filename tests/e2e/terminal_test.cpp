// watch and top in a real terminal, completions in real shells, manual pages by groff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"
#include "tests/e2e/terminal.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";
constexpr int interrupted = 130;
constexpr const char* other_screen = "\x1b[?1049h";
constexpr const char* own_screen = "\x1b[?1049l";
constexpr const char* cursor_shown = "\x1b[?25h";

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (fs::temp_directory_path() / "pipewright-term-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() override { fs::remove_all(path); }

  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    return words;
  }
  Outcome cli(std::vector<std::string> words) const { return run(command(std::move(words))); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }

  fs::path path;
};

class Terminal : public Folder {
 protected:
  void SetUp() override {
    if (!fs::exists(binaries / "pipewright-worker")) {
      GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
    }
    const Outcome outcome = with({"up", "--ranks", "4", "--port", "0"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string record = read_file(path / "data" / "daemon.json");
    daemon_ =
        static_cast<pid_t>(JobFile::parse(record, "daemon.json").tree().at("pid").as_integer());
  }
  void TearDown() override {
    if (daemon_ == 0) return;
    const auto workers = descendants(daemon_);
    with({"down"});
    EXPECT_TRUE(wait_gone(daemon_));
    for (const pid_t pid : workers) EXPECT_TRUE(wait_gone(pid));
  }

  std::vector<std::string> words(std::vector<std::string> words) const {
    words = command(std::move(words));
    words.insert(words.end(), {"--data-dir", (path / "data").string()});
    return words;
  }
  Outcome with(std::vector<std::string> given) const { return run(words(std::move(given))); }

  /// A job that takes longer than any test, or ends at once.
  std::string submit(const std::string& name, int microbatches) const {
    const Outcome outcome = with(
        {"submit",
         file("job.yaml", "name: " + name +
                              "\n"
                              "objective: {quadratic: {generate: {kind: tridiagonal, examples: 600,"
                              " parameters: 512, seed: 0}, batch_size: 5}}\n"
                              "schedule: {pipedream: {stages: 2, microbatches: " +
                              std::to_string(microbatches) +
                              "}}\n"
                              "optimizer: {sgd: {learning_rate: 0.001}}\n")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out.substr(0, outcome.out.find('\n'));
  }
  std::string list() const { return with({"list"}).out; }

  void expect_own_screen_again(const InTerminal& terminal, const termios& before) const {
    const std::string& all = terminal.written();
    ASSERT_NE(all.rfind(other_screen), std::string::npos);
    EXPECT_GT(all.rfind(own_screen), all.rfind(other_screen));
    EXPECT_GT(all.rfind(cursor_shown), all.rfind(other_screen));
    const termios after = terminal.mode();
    EXPECT_EQ(after.c_lflag, before.c_lflag);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    EXPECT_EQ(after.c_oflag, before.c_oflag);
  }

  pid_t daemon_ = 0;
};

constexpr int endless = 3000000;

TEST_F(Terminal, WatchDrawsTakesKeysAndQuitsWithoutCancelling) {
  const std::string one = submit("first of two", endless), two = submit("second of two", endless);
  InTerminal watch(words({"watch", one, two}), 100, 30);
  const termios before = watch.mode();
  ASSERT_TRUE(watch.read_until(other_screen)) << watch.written();
  ASSERT_TRUE(watch.read_until("first of two")) << watch.written();
  ASSERT_TRUE(watch.read_until("q quit"));
  EXPECT_EQ(watch.mode().c_lflag & (ICANON | ECHO), 0U);
  EXPECT_NE(watch.mode().c_lflag & ISIG, 0U);
  watch.type("x");
  ASSERT_TRUE(watch.read_until("over updates")) << watch.written();
  watch.type("L");
  ASSERT_TRUE(watch.read_until("over updates (log)")) << watch.written();
  watch.type("\x1b[C");
  ASSERT_TRUE(watch.read_until("smoothing 10")) << watch.written();
  watch.type("\x1b[B");
  ASSERT_TRUE(watch.read_until("▸")) << watch.written();
  watch.resize(60, 20);
  ASSERT_TRUE(watch.read_until("\x1b[2J")) << "it is not drawn anew";
  ASSERT_TRUE(watch.read_until("q quit")) << watch.written();
  watch.type("q");
  EXPECT_EQ(watch.wait(), interrupted);
  expect_own_screen_again(watch, before);
  EXPECT_THAT(watch.written(), HasSubstr("the jobs go on"));
  EXPECT_THAT(list(), Not(HasSubstr("CANCELLED")));
  EXPECT_EQ(with({"cancel", one}).status, 0) << "it had ended";
}

TEST_F(Terminal, IsGivenBackOnSignals) {
  const std::string id = submit("endless", endless);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV}) {
    InTerminal watch(words({"watch", id}), 80, 24);
    const termios before = watch.mode();
    ASSERT_TRUE(watch.read_until("q quit")) << watch.written();
    ::kill(watch.pid(), number);
    const int status = watch.wait();
    EXPECT_EQ(status, number == SIGABRT || number == SIGSEGV ? 128 + number : interrupted);
    expect_own_screen_again(watch, before);
  }
}

TEST_F(Terminal, CtrlZGivesTheTerminalBackUntilItGoesOn) {
  const std::string id = submit("endless", endless);
  InTerminal watch(words({"watch", id}), 80, 24);
  const termios before = watch.mode();
  ASSERT_TRUE(watch.read_until("q quit"));
  ::kill(watch.pid(), SIGTSTP);  // a session without a shell ignores the key's own
  ASSERT_TRUE(watch.read_until(own_screen)) << watch.written();
  int status = 0;
  ASSERT_EQ(::waitpid(watch.pid(), &status, WUNTRACED), watch.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(watch.mode().c_lflag, before.c_lflag);
  ::kill(watch.pid(), SIGCONT);
  ASSERT_TRUE(watch.read_until(other_screen)) << watch.written();
  ASSERT_TRUE(watch.read_until("q quit"));
  watch.type("q");
  EXPECT_EQ(watch.wait(), interrupted);
  expect_own_screen_again(watch, before);
}

TEST_F(Terminal, WatchLeavesThePictureAndTheSummaryBehind) {
  const std::string id = submit("short", 200);
  InTerminal watch(words({"watch", id, "--color", "never"}), 80, 24);
  EXPECT_EQ(watch.wait(), 0) << watch.written();
  const std::string after = watch.written().substr(watch.written().rfind(own_screen));
  EXPECT_THAT(after, HasSubstr("short"));
  EXPECT_THAT(after, HasSubstr("┤"));
  EXPECT_THAT(after, HasSubstr("makespan"));
  EXPECT_THAT(after, Not(HasSubstr("\x1b[38;5;")));
}

TEST_F(Terminal, WatchStaysUntilQWhereItIsToldTo) {
  const std::string id = submit("short", 200);
  ASSERT_EQ(with({"wait", id}).status, 0);
  InTerminal watch(words({"watch", id, "--stay"}), 80, 24, {"LC_ALL=C"});
  ASSERT_TRUE(watch.read_until("SUCCEEDED")) << watch.written();
  watch.type("l");
  ASSERT_TRUE(watch.read_until("objective over ticks")) << watch.written();
  watch.type("q");
  EXPECT_EQ(watch.wait(), 0) << "the outcome of the job";
  EXPECT_THAT(watch.written(), Not(HasSubstr("┤"))) << "the locale has no UTF-8";
}

TEST_F(Terminal, ADumbTerminalGetsLines) {
  const std::string id = submit("short", 200);
  InTerminal watch(words({"watch", id}), 80, 24, {"TERM=dumb"});
  EXPECT_EQ(watch.wait(), 0);
  EXPECT_THAT(watch.written(), HasSubstr("job " + id + ": SUCCEEDED"));
  EXPECT_THAT(watch.written(), Not(HasSubstr("\x1b")));
}

TEST_F(Terminal, WatchTakesRunsOfASweep) {
  const std::string text =
      "objective: {quadratic: {generate: {kind: tridiagonal, examples: 40,"
      " parameters: 16, seed: 0}, batch_size: 5}}\n"
      "schedule: {pipedream: {stages: 2, microbatches: 8}}\n"
      "optimizer: {sgd: {learning_rate: 0.001}}\n"
      "repeats: 3\n";
  ASSERT_EQ(with({"submit", file("sweep.yaml", text)}).status, 0);
  const Outcome watched = with({"watch", "1.2", "1.0"});
  EXPECT_EQ(watched.status, 0) << watched.err;
  EXPECT_THAT(watched.out, HasSubstr("run 1.0: SUCCEEDED\n"));
  EXPECT_THAT(watched.out, HasSubstr("run 1.2: SUCCEEDED\n"));
  EXPECT_THAT(watched.out, Not(HasSubstr("run 1.1")));
  const Outcome wrong = with({"watch", "1.3"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("job 1 has 3 runs, from 1.0 on; there is no 1.3"));
}

TEST_F(Terminal, TopShowsJobsAndPoolsAndSorts) {
  const std::string id = submit("a long one", endless);
  InTerminal top(words({"top"}), 100, 30);
  const termios before = top.mode();
  ASSERT_TRUE(top.read_until(other_screen)) << top.written();
  ASSERT_TRUE(top.read_until("2 of 4 ranks busy")) << top.written();  // at some look
  top.resize(60, 12);
  ASSERT_TRUE(top.read_until("\x1b[2J"));
  ASSERT_TRUE(top.read_until("a long one")) << top.written();
  top.type("i");
  top.type("q");
  EXPECT_EQ(top.wait(), 0);
  expect_own_screen_again(top, before);
  EXPECT_THAT(list(), Not(HasSubstr("CANCELLED")));
}

TEST_F(Terminal, TopSaysThatItIsNotLive) {
  InTerminal top(words({"top"}), 100, 30);
  ASSERT_TRUE(top.read_until("no jobs")) << top.written();
  with({"down"});
  ASSERT_TRUE(top.read_until("not live:")) << top.written();
  top.type("q");
  EXPECT_EQ(top.wait(), 0);
}

TEST_F(Terminal, TopStreamsLinesOfJson) {
  const std::string id = submit("short", 200);
  ASSERT_EQ(with({"wait", id}).status, 0);
  const Outcome once = with({"top", "--once", "--json"});
  EXPECT_EQ(once.status, 0);
  const Value frame = JobFile::parse(once.out, "top").tree();
  EXPECT_EQ(frame.at("jobs").as_list().front().at("state").as_text(), "JOB_STATE_SUCCEEDED");
  EXPECT_EQ(frame.at("pools").as_list().size(), 1U);
  EXPECT_THAT(with({"top"}).out, HasSubstr("SUCCEEDED"));  // a pipe: once
  Running stream(words({"top", "--json"}));
  ASSERT_TRUE(stream.read_until("}\n{\"time_unix_ms\""));
  stream.signal(SIGINT);
  EXPECT_EQ(stream.wait().status, 0);
}

/// What bash completes of a command line whose last word is being typed.
std::string completed_by_bash(const std::string& script, const std::vector<std::string>& words) {
  std::string line = "source " + script + "; COMP_WORDS=(";
  for (const std::string& word : words) line += "'" + word + "' ";
  line +=
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pipewright; printf '%s\\n' "
      "\"${COMPREPLY[@]}\"";
  const Outcome outcome = run({"/bin/bash", "--norc", "-c", line});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return "\n" + outcome.out;
}

TEST_F(Folder, BashCompletesCommandsOptionsChoicesAndFiles) {
  const Outcome made = cli({"completion", "bash"});
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string script = file("completion.bash", made.out);
  const auto completed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), (binaries / "pipewright").string());
    return completed_by_bash(script, words);
  };
  EXPECT_EQ(completed({"wat"}), "\nwatch\n");
  EXPECT_THAT(completed({""}), HasSubstr("\nsubmit\n"));
  EXPECT_EQ(completed({"watch", "--smo"}), "\n--smooth\n");
  EXPECT_EQ(completed({"watch", "--series", "gradient_norm_sq_"}), "\ngradient_norm_sq_mean\n");
  EXPECT_EQ(completed({"plan", "--format", "s"}), "\nsummary\nsvg\n");
  EXPECT_EQ(completed({"plan", "--format", "=", "s"}), "\nsummary\nsvg\n");
  EXPECT_EQ(completed({"token", "cre"}), "\ncreate\n");
  EXPECT_EQ(completed({"token", "create", "--role", "adm"}), "\nadmin\n");
  EXPECT_EQ(completed({"run", (path / "comp").string()}), "\n" + script + "\n");
  EXPECT_EQ(completed({"help", "val"}), "\nvalidate\n");
  EXPECT_EQ(completed({"completion", "z"}), "\nzsh\n");
}

TEST_F(Terminal, BashCompletesTheIdsOfJobs) {
  ASSERT_EQ(submit("short", 8), "1");
  const std::string script = file("completion.bash", cli({"completion", "bash"}).out);
  EXPECT_EQ(
      completed_by_bash(script, command({"watch", "--data-dir", (path / "data").string(), ""})),
      "\n1\n");
}

TEST_F(Folder, ZshCompletesCommandsAndOptions) {
  if (!on_path("zsh")) GTEST_SKIP() << "zsh is not installed";
  const Outcome made = cli({"completion", "zsh", "--out", (path / "zsh" / "_pipewright").string()});
  ASSERT_EQ(made.status, 0) << made.err;
  InTerminal zsh({"zsh", "-f", "-i"}, 100, 40, {"PS1=ready> ", "HOME=" + path.string()});
  ASSERT_TRUE(zsh.read_until("ready> ")) << zsh.written();
  // What zsh draws of a line depends on what is there already; ^X tells the line itself.
  zsh.type("path=(" + binaries.string() + " $path); fpath=(" + (path / "zsh").string() +
           " $fpath); autoload -Uz compinit; compinit -u -D; tell() { zle -I; print -r -- "
           "\"<$BUFFER>\"; }; zle -N tell; bindkey '^X' tell; PS1='ne''xt> '\n");
  ASSERT_TRUE(zsh.read_until("next> ")) << zsh.written();
  // While the line is told the terminal is not zsh's: what is typed then would not come to it
  // whole.
  const auto tells = [&](const std::string& typed, const std::string& line) {
    zsh.type(typed + "\x18");
    return zsh.read_until("<" + line) && zsh.read_until("next> ");
  };
  EXPECT_TRUE(tells("pipewright wat\t", "pipewright watch >")) << zsh.written();
  EXPECT_TRUE(tells("--smo\t", "pipewright watch --smooth")) << zsh.written();
  EXPECT_TRUE(tells("\x15pipewright token cre\t", "pipewright token create >")) << zsh.written();
  EXPECT_TRUE(tells("--role adm\t", "pipewright token create --role admin")) << zsh.written();
}

TEST_F(Folder, EveryCommandHasAManualPageWithoutWarnings) {
  ASSERT_EQ(cli({"man", "--out", path.string()}).status, 0);
  std::vector<std::string> pages;
  for (const auto& entry : fs::directory_iterator(path)) pages.push_back(entry.path().filename());
  for (const char* name :
       {"pipewright.1", "pipewrightd.1", "pipewright-watch.1", "pipewright-top.1",
        "pipewright-token-create.1", "pipewright-pool-start.1"}) {
    EXPECT_THAT(pages, testing::Contains(name));
  }
  EXPECT_THAT(read_file(path / "pipewright.1"), HasSubstr(".SH SUBCOMMANDS\n"));
  EXPECT_THAT(read_file(path / "pipewright-token-create.1"),
              HasSubstr("\\fBpipewright\\fR \\fItoken\\fR \\fIcreate\\fR"));
  // Whatever the program lists has one.
  std::istringstream help(cli({"--help"}).out);
  std::size_t commands = 0;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && line.starts_with("  ") && line[2] != ' ') {
      const std::string name = line.substr(2, line.find(' ', 2) - 2);
      EXPECT_THAT(pages, testing::Contains("pipewright-" + name + ".1"));
      ++commands;
    }
    listed = listed || line == "Subcommands:";
  }
  EXPECT_GT(commands, 20U);
  if (!on_path("groff")) GTEST_SKIP() << "groff is not installed";
  for (const std::string& page : pages) {
    const Outcome outcome =
        run({"/usr/bin/env", "groff", "-man", "-ww", "-k", "-Tutf8", path / page});
    EXPECT_EQ(outcome.status, 0) << page;
    EXPECT_EQ(outcome.err, "") << page;
    EXPECT_THAT(outcome.out, HasSubstr("User Commands")) << page;
  }
}

}  // namespace
}  // namespace pipewright::e2e
