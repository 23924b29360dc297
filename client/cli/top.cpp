// top: jobs and pools, live.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <utility>

#include "client/cli/command.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/net/stream.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/top_view.hpp"
#include "client/cli/watchers.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {

namespace {

/// Of each state in which a job is not over, and of all.
constexpr std::uint32_t active_jobs_max = 500, newest_jobs_max = 100;
constexpr std::chrono::seconds refresh_interval{1};
/// Keys are not read while the daemon is asked.
constexpr std::chrono::seconds answer_deadline{3};

struct Options {
  EndpointFlags endpoint;
  bool once = false;
  bool json = false;
  std::string color = "auto";
};

std::int64_t now_unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TopData ask(const EndpointFlags& flags) {
  const Api api(find_daemon(flags), answer_deadline);
  TopData data{.daemon = api.endpoint().url(), .now_unix_ms = now_unix_ms()};
  std::set<std::uint32_t> ids;
  const auto take = [&](JobList list) {
    for (Job& job : list.jobs) {
      if (ids.insert(job.id).second) data.jobs.push_back(std::move(job));
    }
  };
  for (const JobState state : {JobState::running, JobState::starting, JobState::queued}) {
    take(api.list(active_jobs_max, 0, std::string(name_of(state))));
  }
  take(api.list(newest_jobs_max, 0, ""));
  data.pools = api.pools();
  return data;
}

void print_json(const TopData& data) {
  std::string jobs;
  for (const Job& job : data.jobs) {
    jobs += (jobs.empty() ? "" : ",") + encode(job, WireFormat::json);
  }
  const Value pools = parse_json(encode(data.pools, WireFormat::json), "pools");
  const Value* list = pools.find("pools");
  std::cout << R"({"time_unix_ms":)" << data.now_unix_ms << R"(,"jobs":[)" << jobs
            << R"(],"pools":)" << (list == nullptr ? "[]" : to_json(*list, -1)) << '}' << std::endl;
}

/// Asks once per interval, however often it is told to draw.
class Top : public StreamListener {
 public:
  Top(const Options& options, TopData first) : options_(options), data_(std::move(first)) {}

  void on_tick() override {
    if (Clock::now() - asked_ >= refresh_interval) refresh();
    show();
  }
  bool done() const override { return gone_; }
  // It follows no job.
  void on_frame(std::size_t, const StreamFrame&) override {}
  void on_lost(std::size_t, const std::string&, std::chrono::seconds) override {}
  void on_resumed(std::size_t) override {}

 protected:
  virtual void show() {}
  using Clock = std::chrono::steady_clock;

  const Options& options_;
  TopData data_;
  bool fresh_ = true;
  bool gone_ = false;

 private:
  void refresh() {
    asked_ = Clock::now();
    try {
      data_ = ask(options_.endpoint);
      fresh_ = true;
    } catch (const ApiError& error) {
      if (error.status() < 500) throw;
      data_.fault = error.what();
    } catch (const ConfigError&) {
      throw;
    } catch (const Error& error) {  // the daemon is away; it may come back
      data_.fault = error.what();
    }
  }
  Clock::time_point asked_ = Clock::now();
};

class ScreenTop : public Top {
 public:
  ScreenTop(const Options& options, TopData first, std::unique_ptr<FullScreen> screen)
      : Top(options, std::move(first)), screen_(std::move(screen)) {
    show();
  }
  void on_keys(std::string_view bytes) override {
    for (const Key key : keys_.read(bytes)) press(settings_, key, data_.jobs.size());
    gone_ = settings_.quit;
  }
  void on_suspend() override { screen_->suspend(); }
  int keys_fd() const { return screen_->keys_fd(); }

 private:
  void show() override {
    screen_->show(draw_top(data_, terminal_size(STDOUT_FILENO), settings_,
                           terminal_look(STDOUT_FILENO), true));
  }

  std::unique_ptr<FullScreen> screen_;
  TopSettings settings_;
  KeyReader keys_;
};

class JsonTop : public Top {
 public:
  using Top::Top;

 private:
  void show() override {
    if (std::exchange(fresh_, false)) print_json(data_);
    gone_ = !std::cout;
  }
};

void print_once(const TopData& data) {
  const TerminalSize size{.columns = table_columns(STDOUT_FILENO), .rows = 0};
  for (const std::string& line : draw_top(data, size, {}, terminal_look(STDOUT_FILENO), false)) {
    std::cout << line << '\n';
  }
}

int top(const Options& options) {
  set_color_choice(options.color);
  TopData first = ask(options.endpoint);
  const auto find = [&] { return find_daemon(options.endpoint); };
  if (options.json) {
    JsonTop listener(options, std::move(first));
    listener.on_tick();
    if (options.once) return exit_ok;
    follow(find, {}, listener, {.tick_interval = refresh_interval, .stays = true});
    return exit_ok;
  }
  std::unique_ptr<FullScreen> screen;
  if (!options.once && is_terminal(STDOUT_FILENO)) screen = FullScreen::open(STDOUT_FILENO);
  if (screen == nullptr) {
    print_once(first);
    return exit_ok;
  }
  ScreenTop listener(options, std::move(first), std::move(screen));
  follow(find, {}, listener,
         {.tick_interval = refresh_interval, .keys_fd = listener.keys_fd(), .stays = true});
  return exit_ok;
}

}  // namespace

void add_top(Program& program) {
  CLI::App* command = program.add_command(
      "top",
      "Show jobs and pools, live: what runs where, how far it is, and what waits. q quits; other "
      "keys, named in its last line, sort. Without a terminal it shows them once",
      "pipewright top --once");
  auto options = std::make_shared<Options>();
  command->add_flag("--once", options->once, "Show them once and end");
  command->add_flag("--json", options->json,
                    "One JSON object per second and line: {time_unix_ms, jobs, pools}");
  add_color_flag(command, options->color);
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return top(*options); });
}

}  // namespace pipewright::cli
