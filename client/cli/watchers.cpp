#include "client/cli/watchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <memory>

#include "client/cli/command.hpp"
#include "client/cli/line_writer.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::chrono::milliseconds redraw_interval{100};
constexpr int last_picture_rows_max = 28;

constexpr std::array<std::pair<const char*, Series>, 7> series_names{
    {{"objective", Series::objective},
     {"loss", Series::last_stage_loss},
     {"validation", Series::validation},
     {"gradient_norm_sq", Series::gradient_norm_sq},
     {"gradient_norm_sq_mean", Series::gradient_norm_sq_mean},
     {"bound", Series::bound},
     {"gap", Series::gap}}};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string lost_text(const std::string& why, std::chrono::seconds patience) {
  return "connection lost: " + why + "; trying again for " + std::to_string(patience.count()) +
         " s";
}

/// Common to all: what has become of each job, and of those of its runs that are watched.
class Watcher : public StreamListener {
 public:
  Watcher(std::vector<Job> jobs, const std::vector<WatchedJob>& watched)
      : jobs(std::move(jobs)), runs_(watched.size()) {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      for (const std::uint32_t run : watched[i].runs) runs_[i][run] = JobState::queued;
    }
  }
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    if (const auto* ended = std::get_if<JobEnded>(&frame)) jobs[index] = ended->job;
    const auto* list = std::get_if<EventList>(&frame);
    if (list == nullptr || runs_[index].empty()) return;
    for (const Event& event : list->events) {
      const auto* change = std::get_if<RunStateChange>(&event.what);
      const auto at = runs_[index].find(event.run);
      if (change != nullptr && at != runs_[index].end()) at->second = change->state;
    }
  }
  /// Jobs end their streams by themselves; of those that are watched for some runs nothing more is
  /// wanted when these have ended.
  bool done() const override {
    const auto any_runs = [](const auto& runs) { return !runs.empty(); };
    return std::any_of(runs_.begin(), runs_.end(), any_runs) && all_ended();
  }
  bool all_ended() const {
    const auto all = states();
    return std::all_of(all.begin(), all.end(), is_final);
  }
  std::vector<JobState> states() const {
    std::vector<JobState> all;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (runs_[i].empty()) all.push_back(jobs[i].state);
      for (const auto& [run, state] : runs_[i]) {
        all.push_back(is_final(jobs[i].state) && !is_final(state) ? jobs[i].state : state);
      }
    }
    return all;
  }
  virtual int keys_fd() const { return -1; }
  virtual void finish() {}
  std::vector<Job> jobs;

 private:
  std::vector<std::map<std::uint32_t, JobState>> runs_;
};

class LiveWatcher : public Watcher {
 public:
  LiveWatcher(std::vector<Job> jobs, const std::vector<WatchedJob>& watched,
              const WatchOptions& options, WatchSettings settings)
      : Watcher(std::move(jobs), watched),
        fd_(options.output_fd),
        stays_(options.stays),
        look_(terminal_look(fd_)),
        settings_(std::move(settings)),
        screen_(FullScreen::open(fd_)) {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      views_.emplace_back(this->jobs[i], watched[i].runs);
    }
  }

  void on_frame(std::size_t index, const StreamFrame& frame) override {
    Watcher::on_frame(index, frame);
    views_[index].apply(frame, now_seconds());
  }
  void on_lost(std::size_t index, const std::string& why, std::chrono::seconds patience) override {
    views_[index].note = lost_text(why, patience);
  }
  void on_resumed(std::size_t index) override { views_[index].note.clear(); }
  void on_tick() override {
    const TerminalSize size = terminal_size(fd_);
    if (screen_ != nullptr) {
      screen_->show(draw_live(views_, {size.columns + 1, size.rows + 1}, settings_, look_, true));
    } else {
      in_place_.show(draw_live(views_, size, settings_, look_, false));
    }
  }
  void on_keys(std::string_view bytes) override {
    for (const Key key : keys_.read(bytes)) press(settings_, key, content_of(views_));
  }
  void on_suspend() override { screen_->suspend(); }
  bool done() const override { return settings_.quit || (!stays_ && Watcher::done()); }
  int keys_fd() const override { return screen_ == nullptr ? -1 : screen_->keys_fd(); }

  /// The last picture stays where the command was typed.
  void finish() override {
    screen_.reset();
    TerminalSize size = terminal_size(fd_);
    size.rows = std::min(size.rows, last_picture_rows_max);
    in_place_.show(draw_live(views_, size, settings_, look_, false));
  }

 private:
  int fd_;
  bool stays_;
  TerminalLook look_;
  WatchSettings settings_;
  KeyReader keys_;
  std::vector<JobView> views_;
  Screen in_place_{fd_};
  std::unique_ptr<FullScreen> screen_;
};

class LineWatcher : public Watcher {
 public:
  LineWatcher(std::vector<Job> jobs, const std::vector<WatchedJob>& watched, std::ostream& out)
      : Watcher(std::move(jobs), watched), out_(out) {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      const Job& job = this->jobs[i];
      writers_.emplace_back();
      for (const std::uint32_t run : watched[i].runs) {
        writers_[i].push_back(LineWriter::of_run(job.id, run));
      }
      if (writers_[i].empty()) {
        writers_[i].emplace_back(job.id, job.progress.ticks_total, job.progress.runs.total);
      }
    }
  }
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    Watcher::on_frame(index, frame);
    for (LineWriter& writer : writers_[index]) out_ << writer.on_frame(frame);
    out_ << std::flush;
  }
  void on_lost(std::size_t index, const std::string& why, std::chrono::seconds patience) override {
    std::cerr << "job " << jobs[index].id << ": " << lost_text(why, patience) << std::endl;
  }
  void on_resumed(std::size_t index) override {
    std::cerr << "job " << jobs[index].id << ": connected again" << std::endl;
  }

 private:
  std::ostream& out_;
  std::vector<std::vector<LineWriter>> writers_;
};

class JsonWatcher : public LineWatcher {
 public:
  JsonWatcher(std::vector<Job> jobs, const std::vector<WatchedJob>& watched)
      : LineWatcher(std::move(jobs), watched, std::cout) {}
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    Watcher::on_frame(index, frame);
    if (jobs.size() == 1) {
      std::cout << encode(frame, WireFormat::json) << std::endl;
    } else {
      std::cout << R"({"job":)" << jobs[index].id << R"(,"frame":)"
                << encode(frame, WireFormat::json) << '}' << std::endl;
    }
  }
};

WatchSettings settings_from(const WatchOptions& options) {
  WatchSettings settings{
      .log_x = options.log_x, .log_y = !options.linear, .smoothing = options.smoothing};
  for (const XAxis axis : {XAxis::tick, XAxis::updates, XAxis::microbatches, XAxis::wall_time}) {
    if (options.x == unit_of(axis)) settings.x = axis;
  }
  for (const auto& [name, series] : series_names) {
    if (options.series == name) settings.series = series;
  }
  if (options.loss) settings.series = Series::last_stage_loss;
  return settings;
}

bool draws(const WatchOptions& options) {
  return !options.json && is_terminal(options.output_fd) && is_terminal(STDOUT_FILENO);
}

std::unique_ptr<Watcher> make_watcher(std::vector<Job> jobs, const std::vector<WatchedJob>& watched,
                                      const WatchOptions& options) {
  if (options.json) return std::make_unique<JsonWatcher>(std::move(jobs), watched);
  if (draws(options)) {
    return std::make_unique<LiveWatcher>(std::move(jobs), watched, options, settings_from(options));
  }
  std::ostream& out = options.output_fd == STDERR_FILENO ? std::cerr : std::cout;
  return std::make_unique<LineWatcher>(std::move(jobs), watched, out);
}

void say_interrupted(const std::vector<Job>& jobs) {
  std::string ids;
  std::size_t going_on = 0;
  for (const Job& job : jobs) {
    ids += " " + std::to_string(job.id);
    if (!is_final(job.state)) ++going_on;
  }
  if (is_terminal(STDERR_FILENO)) std::cerr << "\r\x1b[K";  // the terminal has echoed ^C
  const bool several = going_on > 1;
  const char* it = several ? "them" : "it";
  std::cerr << "stopped watching; the job" << (several ? "s go on" : " goes on")
            << ": `pipewright watch" << ids << "` shows " << it << " again, `pipewright cancel"
            << ids << "` ends " << it << std::endl;
}

/// The jobs as they are now. Throws ConfigError for a run that there is not.
std::vector<Job> find_jobs(const Api& api, std::vector<WatchedJob>& watched) {
  std::vector<Job> jobs;
  for (WatchedJob& one : watched) {
    jobs.push_back(api.job(one.id));
    const std::uint32_t runs = std::max(1U, jobs.back().progress.runs.total);
    if (!one.runs.empty() && *one.runs.rbegin() >= runs) {
      throw ConfigError("job " + std::to_string(one.id) + " has " + std::to_string(runs) +
                        (runs == 1 ? " run" : " runs") + ", from " + std::to_string(one.id) +
                        ".0 on; there is no " + std::to_string(one.id) + "." +
                        std::to_string(*one.runs.rbegin()));
    }
    if (runs == 1) one.runs.clear();
  }
  return jobs;
}

}  // namespace

std::vector<WatchedJob> parse_watched(const std::vector<std::string>& texts) {
  std::vector<WatchedJob> watched;
  std::set<std::uint32_t> wholes;
  for (const std::string& text : texts) {
    const auto parts = split(text, '.');
    const auto id = parse_integer(parts.front());
    const auto run = parts.size() == 2 ? parse_integer(parts[1]) : std::optional<std::int64_t>(0);
    const auto fits = [](const auto& number, std::int64_t least) {
      return number && *number >= least && *number <= UINT32_MAX;
    };
    if (parts.size() > 2 || !fits(id, 1) || !fits(run, 0)) {
      throw ConfigError("'" + text +
                        "' is neither a job's id, such as 7, nor a run of one, such as "
                        "7.2");
    }
    const auto number = static_cast<std::uint32_t>(*id);
    auto at = std::find_if(watched.begin(), watched.end(),
                           [&](const WatchedJob& one) { return one.id == number; });
    if (at == watched.end()) at = watched.insert(at, {.id = number});
    if (parts.size() == 1) wholes.insert(number);
    if (parts.size() == 2) at->runs.insert(static_cast<std::uint32_t>(*run));
  }
  for (WatchedJob& one : watched) {
    if (wholes.contains(one.id)) one.runs.clear();
  }
  return watched;
}

void add_color_flag(CLI::App* command, std::string& choice) {
  command->add_option("--color", choice, "Colours: on a terminal (unless NO_COLOR is set), or not")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

void add_watch_flags(CLI::App* command, WatchOptions& options) {
  command
      ->add_option("--x", options.x,
                   "Along the x axis: simulated time, block updates, microbatches or wall time")
      ->check(CLI::IsMember({"ticks", "updates", "microbatches", "seconds"}))
      ->capture_default_str();
  command->add_flag("--linear", options.linear, "A linear y axis (default: logarithmic)");
  command->add_flag("--log-x", options.log_x, "A logarithmic x axis (default: linear)");
  command
      ->add_option("--smooth", options.smoothing,
                   "Draw an exponential mean over x, from 0 (the curves as they are) to 100")
      ->type_name("N")
      ->check(CLI::Range(0, smoothing_max))
      ->capture_default_str();
  std::vector<std::string> names;
  for (const auto& [name, series] : series_names) names.emplace_back(name);
  CLI::Option* series =
      command
          ->add_option("--series", options.series,
                       "What is drawn (default: the objective, of jobs without one the loss)")
          ->check(CLI::IsMember(names));
  command->add_flag("--loss", options.loss, "Draw the last stage's loss: --series loss")
      ->excludes(series);
  add_color_flag(command, options.color);
}

int exit_status_of(JobState state) {
  if (state == JobState::succeeded) return exit_ok;
  return state == JobState::cancelled ? exit_cancelled : exit_failure;
}

int outcome_of(const std::vector<JobState>& states) {
  int status = exit_ok;
  for (const JobState state : states) {
    const int own = exit_status_of(state);
    if (own == exit_failure || status == exit_ok) status = own;
  }
  return status;
}

int watch_jobs(const EndpointFlags& flags, const std::vector<WatchedJob>& watched_jobs,
               const WatchOptions& options) {
  set_color_choice(options.color);
  std::vector<WatchedJob> watched = watched_jobs;
  std::vector<FollowedJob> followed;
  for (const WatchedJob& one : watched) followed.push_back({.id = one.id});
  const auto watcher = make_watcher(find_jobs(Api(find_daemon(flags)), watched), watched, options);
  const FollowEnd end = follow([&] { return find_daemon(flags); }, followed, *watcher,
                               {.tick_interval = redraw_interval,
                                .keys_fd = watcher->keys_fd(),
                                .stays = options.stays && watcher->keys_fd() >= 0});
  watcher->finish();
  if (end == FollowEnd::interrupted || !watcher->all_ended()) {
    say_interrupted(watcher->jobs);
    return exit_interrupted;
  }
  std::ostream& out = options.output_fd == STDERR_FILENO ? std::cerr : std::cout;
  for (const Job& job : watcher->jobs) {
    if (!options.json && is_final(job.state)) {
      out << '\n' << format_summary(job, table_columns(options.output_fd));
    }
  }
  out << std::flush;
  return outcome_of(watcher->states());
}

}  // namespace pipewright::cli
