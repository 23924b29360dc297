// list, show, cancel: one question, one answer.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/view/live.hpp"
#include "client/cli/view/runs_view.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::uint32_t page_jobs_max = 1000;

struct Options {
  EndpointFlags endpoint;
  bool json = false;
  std::uint32_t id = 0;
  std::vector<std::uint32_t> ids = {};
  std::uint32_t limit = 50;
  std::string state;
};

std::shared_ptr<Options> common_options(CLI::App* command) {
  auto options = std::make_shared<Options>();
  add_endpoint_flags(command, options->endpoint);
  command->add_flag("--json", options->json, "Protobuf's JSON form instead of text");
  return options;
}

std::string progress_text(const Job& job) {
  const Progress& progress = job.progress;
  if (const RunCounts& runs = job.progress.runs; runs.total > 1) {
    return std::to_string(runs.ended()) + '/' + std::to_string(runs.total) + " runs";
  }
  if (job.state == JobState::succeeded) return "100 %";
  if (progress.ticks_total <= 0) return "-";
  const double part =
      static_cast<double>(progress.ticks_done) / static_cast<double>(progress.ticks_total);
  return std::to_string(static_cast<int>(std::floor(part * 100))) + " %";
}

std::string took_text(const Job& job) {
  if (job.started_unix_ms == 0) return "-";
  const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  const std::int64_t end = job.ended_unix_ms == 0 ? now : job.ended_unix_ms;
  return format_seconds(static_cast<double>(std::max<std::int64_t>(0, end - job.started_unix_ms)) /
                        1000);
}

std::string value_text(const std::optional<double>& value) {
  return value ? format_short(*value, 6) : "-";
}

std::vector<Job> fetch_jobs(const Api& api, std::uint32_t limit, const std::string& state) {
  std::vector<Job> jobs;
  std::uint32_t before = 0;
  do {
    const auto missing = limit - static_cast<std::uint32_t>(jobs.size());
    JobList page = api.list(std::min(missing, page_jobs_max), before, state);
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    before = page.next_before;
  } while (before != 0 && jobs.size() < limit);
  return jobs;
}

int list_jobs(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  const std::vector<Job> jobs = fetch_jobs(api, options.limit, options.state);
  if (options.json) {
    for (const Job& job : jobs) std::cout << encode(job, WireFormat::json) << '\n';
    return exit_ok;
  }
  if (jobs.empty()) {
    std::cerr << "no jobs" << (options.state.empty() ? "" : " in state " + options.state) << '\n';
    return exit_ok;
  }
  const bool colors = wants_colors(STDOUT_FILENO);
  std::vector<std::vector<std::string>> rows;
  for (const Job& job : jobs) {
    // Of a job that does not observe its objective the last loss stands in for it.
    const auto& value = job.objective_last ? job.objective_last : job.last_stage_loss;
    const bool waits = job.state == JobState::queued && !job.waits.empty();
    rows.push_back({std::to_string(job.id), state_text(job.state, colors), progress_text(job),
                    value_text(value), value_text(job.objective_best), took_text(job),
                    format_local_time(job.submitted_unix_ms), printable(job.user),
                    job_name(job) + (waits ? " (" + printable(job.waits) + ")" : "")});
  }
  std::cout << format_table({{"ID", Align::right},
                             {"STATE"},
                             {"DONE", Align::right},
                             {"OBJECTIVE", Align::right},
                             {"BEST", Align::right},
                             {"TOOK", Align::right},
                             {"SUBMITTED"},
                             {"USER"},
                             {.title = "NAME", .shrinks = true}},
                            rows, table_columns(STDOUT_FILENO));
  return exit_ok;
}

int show_job(const Options& options) {
  const Job job = Api(find_daemon(options.endpoint)).job(options.id);
  if (options.json) {
    std::cout << encode(job, WireFormat::json) << '\n';
    return exit_ok;
  }
  const int columns = table_columns(STDOUT_FILENO);
  std::cout << format_summary(job, columns);
  std::vector<std::vector<std::string>> rows{
      {"user", printable(job.user)},
      {"submitted", format_local_time(job.submitted_unix_ms)},
      {"started", format_local_time(job.started_unix_ms)},
      {"ended", format_local_time(job.ended_unix_ms)},
      {"attempt", std::to_string(job.attempt)}};
  if (!job.waits.empty()) rows.push_back({"waits", printable(job.waits)});
  if (const RunCounts& runs = job.progress.runs; runs.total > 1) {
    rows.push_back({"runs", std::to_string(runs.total)});
    for (const auto& [state, count] : {std::pair{"under way", runs.under_way},
                                       {"succeeded", runs.succeeded},
                                       {"failed", runs.failed},
                                       {"cancelled", runs.cancelled}}) {
      if (count > 0) rows.push_back({std::string("  ") + state, std::to_string(count)});
    }
  }
  if (job.progress.ticks_total > 0) {
    const auto of = [](std::int64_t done, std::int64_t total) {
      return std::to_string(done) + " of " + std::to_string(total);
    };
    rows.push_back({"ticks", of(job.progress.ticks_done, job.progress.ticks_total)});
    rows.push_back({"updates", of(job.progress.updates_done, job.progress.updates_total)});
  }
  if (!job.pool.empty()) {
    std::string ranks;
    for (const std::uint32_t rank : job.ranks) ranks += " " + std::to_string(rank);
    rows.push_back({"pool", printable(job.pool) + ", ranks" + ranks});
  }
  if (job.checkpoint) {
    rows.push_back({"checkpoint", "tick " + std::to_string(job.checkpoint->tick) + ", " +
                                      format_bytes(static_cast<double>(job.checkpoint->bytes)) +
                                      ", " + format_local_time(job.checkpoint->stored_unix_ms)});
  }
  std::cout << '\n' << format_table({{"JOB"}, {""}}, rows, columns);
  const Value summary = parse_json(job.summary_json, "summary.json");
  if (job.progress.runs.total > 1) {
    if (summary.is_map()) std::cout << "\nRUNS\n" << format_run_table(summary, columns);
  } else if (summary.is_map()) {
    std::cout << "\nSUMMARY\n" << format_tree(summary, columns);
  }
  std::cout << "\nSPEC\n" << format_tree(job.spec, columns);
  return exit_ok;
}

int cancel_job(const Options& options) {
  const Job job = Api(find_daemon(options.endpoint)).cancel(options.id);
  if (options.json) {
    std::cout << encode(job, WireFormat::json) << '\n';
  } else {
    std::cout << "job " << job.id
              << (job.state == JobState::cancelled ? " is cancelled" : " is being cancelled")
              << '\n';
  }
  return exit_ok;
}

int delete_jobs(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  for (const std::uint32_t id : options.ids) {
    const Job job = api.remove(id);
    if (options.json) {
      std::cout << encode(job, WireFormat::json) << '\n';
    } else {
      std::cout << "job " << job.id << " is deleted\n";
    }
  }
  return exit_ok;
}

}  // namespace

void add_list(Program& program) {
  CLI::App* command = program.add_command("list", "Show the jobs, newest first",
                                          "pipewright list --state RUNNING --limit 10");
  const auto options = common_options(command);
  command->add_option("--limit", options->limit, "Show so many at most")
      ->check(CLI::Range(1U, 1000000U))
      ->capture_default_str();
  std::vector<std::string> states;
  for (int s = 1; s <= 6; ++s) states.emplace_back(name_of(static_cast<JobState>(s)));
  command->add_option("--state", options->state, "Only jobs in this state")
      ->transform(CLI::IsMember(states, CLI::ignore_case));
  program.on(command, [options] { return list_jobs(*options); });
}

void add_show(Program& program) {
  CLI::App* command =
      program.add_command("show", "Show all that is known of a job: state, progress, summary, spec",
                          "pipewright show 7 --json");
  const auto options = common_options(command);
  command->add_option("ID", options->id, "The job")->required();
  program.on(command, [options] { return show_job(*options); });
}

void add_cancel(Program& program) {
  CLI::App* command = program.add_command(
      "cancel", "End a job that waits or runs; exit status 1 when it has ended already",
      "pipewright cancel 7");
  const auto options = common_options(command);
  command->add_option("ID", options->id, "The job")->required();
  program.on(command, [options] { return cancel_job(*options); });
}

void add_delete(Program& program) {
  CLI::App* command = program.add_command(
      "delete",
      "Delete jobs that have ended, with their curves and files; exit status 1 when one has not",
      "pipewright delete 7 8");
  const auto options = common_options(command);
  command->add_option("ID", options->ids, "The jobs")->required();
  program.on(command, [options] { return delete_jobs(*options); });
}

}  // namespace pipewright::cli
