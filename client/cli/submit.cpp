// submit, watch, wait.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "client/cli/command.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/text.hpp"
#include "client/cli/view/top_view.hpp"
#include "client/cli/watchers.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

struct Options {
  EndpointFlags endpoint;
  WatchOptions watch;
  bool json = false;
  bool watches = false;
  std::string file;
  std::string key;
  std::optional<int> priority;
  std::vector<std::string> sets;
  std::vector<std::uint32_t> ids;
  std::vector<std::string> watched;
};

std::string random_key() {
  std::random_device device;
  std::string key;
  for (int i = 0; i < 32; ++i) key += "0123456789abcdef"[device() % 16];
  return key;
}

/// Where the answer got lost, whether the daemon took the job is not known: it is asked again,
/// under the same key, until it says so.
std::uint32_t submit_for_sure(const EndpointFlags& endpoint, const Value& spec,
                              const std::string& key) {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds patience{30};
  std::optional<Clock::time_point> lost_since;
  while (true) {
    try {
      return Api(find_daemon(endpoint)).submit(spec, key);
    } catch (const ConnectionError& error) {
      if (!lost_since && dynamic_cast<const BrokenConnection*>(&error) == nullptr) throw;
      if (!lost_since) {
        std::cerr << "connection lost: " << error.what() << "; asking again for "
                  << patience.count() << " s" << std::endl;
        lost_since = Clock::now();
      } else if (Clock::now() - *lost_since > patience) {
        throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

int submit(const Options& options) {
  JobFile file = JobFile::read(options.file);
  for (const std::string& assignment : options.sets) file.set(assignment);
  if (options.priority) file.set("priority=" + std::to_string(*options.priority));
  const Value spec = file.checked();
  const std::uint32_t id =
      submit_for_sure(options.endpoint, spec, options.key.empty() ? random_key() : options.key);
  if (options.json) {
    std::cout << encode(SubmitReply{id}, WireFormat::json) << std::endl;
  } else {
    std::cout << id << std::endl;
  }
  if (!options.watches) return exit_ok;
  WatchOptions watch = options.watch;
  watch.json = options.json;
  watch.output_fd = STDERR_FILENO;  // standard output holds the id alone
  return watch_jobs(options.endpoint, {{.id = id}}, watch);
}

/// Waits for the ends only: the streams begin behind the newest events.
class EndListener : public StreamListener {
 public:
  explicit EndListener(std::vector<Job>& jobs) : jobs_(jobs) {}
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    if (const auto* ended = std::get_if<JobEnded>(&frame)) jobs_[index] = ended->job;
    if (const auto* progress = std::get_if<Progress>(&frame)) jobs_[index].progress = *progress;
    if (is_terminal(STDERR_FILENO)) show_progress();
  }
  void on_lost(std::size_t index, const std::string& why, std::chrono::seconds patience) override {
    line_.clear();
    std::cerr << "job " << jobs_[index].id << ": connection lost: " << why << "; trying again for "
              << patience.count() << " s" << std::endl;
  }
  void on_resumed(std::size_t index) override {
    line_.clear();
    std::cerr << "job " << jobs_[index].id << ": connected again" << std::endl;
  }
  void clear() { line_.clear(); }

 private:
  void show_progress() {
    double sum = 0;
    std::size_t ended = 0;
    for (const Job& job : jobs_) {
      sum += is_final(job.state) ? 1 : fraction_done(job);
      if (is_final(job.state)) ++ended;
    }
    line_.update(sum / static_cast<double>(jobs_.size()), [&] {
      return std::to_string(ended) + " of " + std::to_string(jobs_.size()) + " jobs ended";
    });
  }

  std::vector<Job>& jobs_;
  ProgressLine line_;
};

int wait_for(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  std::vector<Job> jobs;
  std::vector<FollowedJob> followed;
  for (const std::uint32_t id : options.ids) {
    jobs.push_back(api.job(id));
    followed.push_back({.id = id, .from_sequence = jobs.back().last_sequence + 1});
  }
  EndListener listener(jobs);
  const auto find = [&] { return find_daemon(options.endpoint); };
  const FollowEnd end = follow(find, followed, listener, {});
  listener.clear();
  if (end == FollowEnd::interrupted) {
    std::cerr << "stopped waiting; the job goes on\n";
    return exit_interrupted;
  }
  for (const Job& job : jobs) {
    if (options.json) {
      std::cout << encode(job, WireFormat::json) << '\n';
    } else {
      std::cerr << "job " << job.id << ' ' << name_of(job.state)
                << (job.message.empty() ? "" : ": " + printable(job.message)) << '\n';
    }
  }
  std::vector<JobState> states;
  for (const Job& job : jobs) states.push_back(job.state);
  return outcome_of(states);
}

const char* const outcome_help =
    "Exit status: 0 when every job succeeded, 1 when one failed (or the daemon could not be "
    "reached), 3 when one was cancelled, 2 for a mistake in the command, 130 after Ctrl-C (or q "
    "in `watch`), which does not end the jobs.";

}  // namespace

void add_submit(Program& program) {
  CLI::App* command = program.add_command(
      "submit", "Give a job to the daemon; prints its id and nothing else on standard output",
      "pipewright submit examples/pipedream.yaml --set optimizer.sgd.learning_rate=0.05 --watch");
  auto options = std::make_shared<Options>();
  command->add_option("JOB", options->file, "The job file (YAML or JSON; - for standard input)")
      ->required();
  command->add_option("--set", options->sets, "Sets a key of the job, e.g. seed=3; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--priority", options->priority,
                   "Of the jobs that wait, those with the most start first (sets the job's key)")
      ->type_name("N")
      ->check(CLI::Range(-100, 100));
  command
      ->add_option("--key", options->key,
                   "Idempotency key: a job that was submitted under it before is not submitted "
                   "again, and its id is printed")
      ->type_name("KEY");
  command->add_flag("--watch", options->watches,
                    "Follow it to its end on standard error; the exit status is its outcome as for "
                    "`pipewright wait`");
  add_watch_flags(command, options->watch);
  command->add_flag("--json", options->json,
                    "Print {\"id\": N}, and with --watch the frames of the stream, one per line");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return submit(*options); });
}

void add_watch(Program& program) {
  CLI::App* command = program.add_command(
      "watch",
      std::string(
          "Follow jobs, or runs of them, to their ends: live curves on a terminal, else lines of "
          "text. Its last line names the keys: other axes, smoothing, series; q ends the watching "
          "and not the jobs. ") +
          outcome_help,
      "pipewright watch 7 8.2 8.3 --x updates --smooth 40");
  auto options = std::make_shared<Options>();
  command
      ->add_option("ID", options->watched,
                   "Jobs, or runs of jobs that have many: 8.2 is run 2 of job 8")
      ->required();
  add_watch_flags(command, options->watch);
  command->add_flag("--stay", options->watch.stays,
                    "On a terminal stay when all have ended, until q");
  command->add_flag("--json", options->watch.json,
                    "The frames of the stream, one JSON object per line (docs/terminal.md)");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] {
    return watch_jobs(options->endpoint, parse_watched(options->watched), options->watch);
  });
}

void add_wait(Program& program) {
  CLI::App* command =
      program.add_command("wait", std::string("Wait for the ends of jobs. ") + outcome_help,
                          "pipewright wait 7 && pipewright export 7 --out results");
  auto options = std::make_shared<Options>();
  command->add_option("ID", options->ids, "The jobs")->required();
  command->add_flag("--json", options->json, "Print each job when all have ended, one per line");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return wait_for(*options); });
}

}  // namespace pipewright::cli
