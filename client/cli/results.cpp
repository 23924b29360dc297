// log, export: what a job leaves.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/download.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/net/stream.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {

namespace {

struct Options {
  EndpointFlags endpoint;
  bool json = false;
  bool follow = false;
  std::uint32_t id = 0;
  std::string out;
};

std::string_view name_of_severity(Severity severity) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : "info";
}

/// Log lines and changes of state; "" for points, and for runs of many that go as they should.
std::string log_text(const Event& event, bool json) {
  std::string level, text;
  if (const auto* line = std::get_if<LogLine>(&event.what)) {
    level = name_of_severity(line->severity);
    text = line->text;
  } else if (const auto* change = std::get_if<StateChange>(&event.what)) {
    level = "state";
    text = name_of(change->state);
    if (change->attempt > 1) text += " (attempt " + std::to_string(change->attempt) + ")";
    if (!change->message.empty()) text += ": " + change->message;
  } else if (const auto* run = std::get_if<RunStateChange>(&event.what)) {
    const bool news = run->state == JobState::failed || run->state == JobState::cancelled ||
                      !run->message.empty();
    if (!news) return {};
    level = "state";
    text = "run " + std::to_string(event.run) + ' ' + std::string(name_of(run->state));
    if (run->attempt > 1) text += " (attempt " + std::to_string(run->attempt) + ")";
    if (!run->message.empty()) text += ": " + run->message;
  } else {
    return {};
  }
  if (!json) {
    return format_local_time(event.time_unix_ms) + "  " + pad_right(level, 7) + "  " +
           printable(text) + "\n";
  }
  Value value = Value::map();
  value.set("sequence", static_cast<std::int64_t>(event.sequence));
  value.set("time_unix_ms", event.time_unix_ms);
  value.set("level", level);
  value.set("text", text);
  return to_json(value, -1) + "\n";
}

/// All events of a kind, page by page.
void each_event(const Api& api, std::uint32_t id, const std::string& kind, const auto& visit) {
  for (std::uint64_t from = 1;;) {
    const EventList page = api.events(id, from, kind);
    if (page.events.empty()) return;
    for (const Event& event : page.events) visit(event);
    from = std::max(page.next_sequence, page.events.back().sequence + 1);
  }
}

class LogListener : public StreamListener {
 public:
  explicit LogListener(bool json) : json_(json) {}
  void on_frame(std::size_t, const StreamFrame& frame) override {
    const auto* list = std::get_if<EventList>(&frame);
    if (list == nullptr) return;
    for (const Event& event : list->events) std::cout << log_text(event, json_);
    std::cout << std::flush;
  }
  void on_lost(std::size_t, const std::string& why, std::chrono::seconds patience) override {
    std::cerr << "connection lost: " << why << "; trying again for " << patience.count() << " s"
              << std::endl;
  }
  void on_resumed(std::size_t) override { std::cerr << "connected again" << std::endl; }

 private:
  bool json_;
};

int show_log(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  if (options.follow) {
    api.job(options.id);  // it is there, and so is the daemon
    LogListener listener(options.json);
    const FollowedJob job{.id = options.id};
    const auto find = [&] { return find_daemon(options.endpoint); };
    const FollowEnd end = follow(find, std::span(&job, 1), listener, {});
    return end == FollowEnd::interrupted ? exit_interrupted : exit_ok;
  }
  // The changes of state are few; the lines of the log are written as they come, between them.
  std::vector<Event> states;
  for (const char* kind : {"state", "run_state"}) {
    each_event(api, options.id, kind, [&](const Event& event) {
      if (!log_text(event, options.json).empty()) states.push_back(event);
    });
  }
  std::sort(states.begin(), states.end(),
            [](const Event& a, const Event& b) { return a.sequence < b.sequence; });
  auto state = states.begin();
  const auto states_before = [&](std::uint64_t sequence) {
    for (; state != states.end() && state->sequence < sequence; ++state) {
      std::cout << log_text(*state, options.json);
    }
  };
  each_event(api, options.id, "log", [&](const Event& event) {
    states_before(event.sequence);
    std::cout << log_text(event, options.json);
  });
  states_before(UINT64_MAX);
  return exit_ok;
}

int export_job(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  const Job job = api.job(options.id);
  if (!is_final(job.state)) {
    throw Error("job " + std::to_string(job.id) + " has not ended: it is " +
                std::string(name_of(job.state)));
  }
  Value files = Value::list();
  DownloadHooks hooks;
  ProgressLine line;
  hooks.progress = [&](double fraction, const std::string& file) {
    line.update(fraction, [&] { return "fetching " + printable(file); });
  };
  hooks.written = [&](const std::filesystem::path& path, std::uint64_t bytes) {
    if (is_terminal(STDOUT_FILENO)) line.clear();
    if (!options.json) std::cout << path.string() << std::endl;
    Value entry = Value::map();
    entry.set("path", path.string());
    entry.set("bytes", static_cast<std::int64_t>(bytes));
    files.as_list().push_back(std::move(entry));
  };
  const std::size_t count = download_job(api, job, options.out, hooks);
  if (options.json) {
    Value answer = Value::map();
    answer.set("files", std::move(files));
    std::cout << to_json(answer, -1) << '\n';
  } else if (count == 0) {
    std::cerr << "job " << options.id << " left no files\n";
  }
  return exit_ok;
}

}  // namespace

void add_log(Program& program) {
  CLI::App* command = program.add_command("log", "Show a job's changes of state and its log",
                                          "pipewright log 7 --follow");
  auto options = std::make_shared<Options>();
  command->add_option("ID", options->id, "The job")->required();
  command->add_flag("--follow", options->follow, "Go on until the job ends");
  command->add_flag("--json", options->json, "One JSON object per line");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return show_log(*options); });
}

void add_export(Program& program) {
  CLI::App* command = program.add_command(
      "export", "Write the files of a job that has ended (as `pipewright run` writes them)",
      "pipewright export 7 --out results");
  auto options = std::make_shared<Options>();
  command->add_option("ID", options->id, "The job")->required();
  command->add_option("--out", options->out, "The folder; made if it is not there")
      ->type_name("DIR")
      ->required();
  command->add_flag("--json", options->json, "{\"files\": [{\"path\", \"bytes\"}]}");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return export_job(*options); });
}

}  // namespace pipewright::cli
