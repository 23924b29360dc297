#include "client/cli/watchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::chrono::milliseconds redraw_interval{100};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string lost_text(const std::string& why, std::chrono::seconds patience) {
  return "connection lost: " + why + "; trying again for " + std::to_string(patience.count()) +
         " s";
}

/// Common to all: the final state of each job.
class Watcher : public StreamListener {
 public:
  explicit Watcher(std::vector<Job> jobs) : jobs(std::move(jobs)) {}
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    if (const auto* ended = std::get_if<JobEnded>(&frame)) jobs[index] = ended->job;
  }
  virtual void finish() {}
  std::vector<Job> jobs;
};

class LiveWatcher : public Watcher {
 public:
  LiveWatcher(std::vector<Job> jobs, int fd, LiveOptions options)
      : Watcher(std::move(jobs)), fd_(fd), screen_(fd), options_(options) {
    for (const Job& job : this->jobs) views_.emplace_back(job);
  }

  void on_frame(std::size_t index, const StreamFrame& frame) override {
    Watcher::on_frame(index, frame);
    views_[index].apply(frame, now_seconds());
  }
  void on_lost(std::size_t index, const std::string& why, std::chrono::seconds patience) override {
    views_[index].note = lost_text(why, patience);
  }
  void on_resumed(std::size_t index) override { views_[index].note.clear(); }
  void on_tick() override { screen_.show(draw_live(views_, terminal_size(fd_), options_)); }
  void finish() override { on_tick(); }

 private:
  int fd_;
  Screen screen_;
  LiveOptions options_;
  std::vector<JobView> views_;
};

class LineWatcher : public Watcher {
 public:
  LineWatcher(std::vector<Job> jobs, std::ostream& out) : Watcher(std::move(jobs)), out_(out) {
    for (const Job& job : this->jobs) {
      writers_.emplace_back(job.id, job.progress.ticks_total, job.progress.runs.total);
    }
  }
  void on_frame(std::size_t index, const StreamFrame& frame) override {
    Watcher::on_frame(index, frame);
    out_ << writers_[index].on_frame(frame) << std::flush;
  }
  void on_lost(std::size_t index, const std::string& why, std::chrono::seconds patience) override {
    std::cerr << "job " << jobs[index].id << ": " << lost_text(why, patience) << std::endl;
  }
  void on_resumed(std::size_t index) override {
    std::cerr << "job " << jobs[index].id << ": connected again" << std::endl;
  }

 private:
  std::ostream& out_;
  std::vector<LineWriter> writers_;
};

class JsonWatcher : public LineWatcher {
 public:
  explicit JsonWatcher(std::vector<Job> jobs) : LineWatcher(std::move(jobs), std::cout) {}
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

std::unique_ptr<Watcher> make_watcher(std::vector<Job> jobs, const WatchOptions& options) {
  if (options.json) return std::make_unique<JsonWatcher>(std::move(jobs));
  if (is_terminal(options.output_fd) && is_terminal(STDOUT_FILENO)) {
    const LiveOptions live{
        .log_y = !options.linear, .colors = wants_colors(options.output_fd), .loss = options.loss};
    return std::make_unique<LiveWatcher>(std::move(jobs), options.output_fd, live);
  }
  std::ostream& out = options.output_fd == STDERR_FILENO ? std::cerr : std::cout;
  return std::make_unique<LineWatcher>(std::move(jobs), out);
}

void say_interrupted(const std::vector<Job>& jobs) {
  std::string ids;
  for (const Job& job : jobs) ids += " " + std::to_string(job.id);
  if (is_terminal(STDERR_FILENO)) std::cerr << "\r\x1b[K";  // the terminal has echoed ^C
  std::cerr << "stopped watching; the job goes on: `pipewright watch" << ids
            << "` shows it again, `pipewright cancel" << ids << "` ends it" << std::endl;
}

}  // namespace

void add_watch_flags(CLI::App* command, WatchOptions& options) {
  command->add_flag("--linear", options.linear, "A linear y axis (default: logarithmic)");
  command->add_flag("--loss", options.loss,
                    "Draw the last stage's loss (default: the objective, if there is one)");
}

int exit_status_of(JobState state) {
  if (state == JobState::succeeded) return exit_ok;
  return state == JobState::cancelled ? exit_cancelled : exit_failure;
}

int outcome_of(const std::vector<Job>& jobs) {
  int status = exit_ok;
  for (const Job& job : jobs) {
    const int own = exit_status_of(job.state);
    if (own == exit_failure || status == exit_ok) status = own;
  }
  return status;
}

int watch_jobs(const EndpointFlags& flags, const std::vector<std::uint32_t>& ids,
               const WatchOptions& options) {
  const Api api(find_daemon(flags));
  std::vector<Job> jobs;
  std::vector<FollowedJob> followed;
  for (const std::uint32_t id : ids) {
    jobs.push_back(api.job(id));
    followed.push_back({.id = id});
  }
  const auto watcher = make_watcher(std::move(jobs), options);
  const FollowEnd end = follow([&] { return find_daemon(flags); }, followed, *watcher,
                               {.tick_interval = redraw_interval});
  watcher->finish();
  if (end == FollowEnd::interrupted) {
    say_interrupted(watcher->jobs);
    return exit_interrupted;
  }
  std::ostream& out = options.output_fd == STDERR_FILENO ? std::cerr : std::cout;
  for (const Job& job : watcher->jobs) {
    if (!options.json) out << '\n' << format_summary(job, table_columns(options.output_fd));
  }
  out << std::flush;
  return outcome_of(watcher->jobs);
}

std::string LineWriter::on_frame(const StreamFrame& frame) {
  std::string out;
  if (const auto* list = std::get_if<EventList>(&frame)) {
    for (const Event& event : list->events) out += on_event(event);
  } else if (const auto* live = std::get_if<LiveFromHere>(&frame)) {
    out = on_total(live->job.progress.ticks_total);
  } else if (const auto* progress = std::get_if<Progress>(&frame)) {
    out = on_total(progress->ticks_total);
  } else if (const auto* ended = std::get_if<JobEnded>(&frame)) {
    out = on_total(ended->job.progress.ticks_total) + flush();
  }
  return out;
}

std::string LineWriter::on_event(const Event& event) {
  const std::string job = "job " + std::to_string(job_) + ": ";
  if (const auto* point = std::get_if<Point>(&event.what)) {
    return runs_total_ > 1 ? std::string() : on_point(*point);
  }
  if (const auto* change = std::get_if<RunStateChange>(&event.what)) {
    return on_run_state(event.run, *change);
  }
  if (const auto* change = std::get_if<StateChange>(&event.what)) {
    std::string line;
    if (is_final(change->state)) line = flush();
    line += job + std::string(name_of(change->state));
    if (change->attempt > 1) line += " (attempt " + std::to_string(change->attempt) + ")";
    if (!change->message.empty()) line += ": " + printable(change->message);
    return line + "\n";
  }
  const auto& log = std::get<LogLine>(event.what);
  if (log.severity == Severity::info) return {};
  return job + (log.severity == Severity::error ? "error: " : "warning: ") + printable(log.text) +
         "\n";
}

std::string LineWriter::on_run_state(std::uint32_t run, const StateChange& change) {
  const std::string job = "job " + std::to_string(job_) + ": ";
  std::string out;
  if (change.state == JobState::failed ||
      (change.state == JobState::queued && !change.message.empty())) {
    out = job + "run " + std::to_string(run) + ' ' + std::string(name_of(change.state)) + ": " +
          printable(change.message) + '\n';
  }
  if (!is_final(change.state)) return out;
  const std::int64_t before = runs_ended_++ * steps / runs_total_;
  if (runs_ended_ * steps / runs_total_ == before) return out;
  return out + job + std::to_string(runs_ended_) + " of " + std::to_string(runs_total_) +
         " runs have ended\n";
}

std::string LineWriter::on_point(const Point& point) {
  if (point.series == Series::validation) return thin(validation_, point);
  if (point.series != Series::objective && point.series != Series::last_stage_loss) return {};
  // The loss is written only for jobs without an objective.
  if (point.series == Series::objective) {
    loss_ = {};
    return thin(objective_, point);
  }
  return objective_.newest ? std::string() : thin(loss_, point);
}

std::string LineWriter::thin(Thinned& series, const Point& point) {
  const bool first = !series.newest;
  series.newest = point;
  series.newest_written = first;
  if (first) {
    series.step_next = 1;
    return text(point);
  }
  if (ticks_total_ <= 0) {
    series.held.push_back(point);
    return {};
  }
  const std::int64_t step = point.tick * steps / ticks_total_;
  if (step < series.step_next) return {};
  series.step_next = step + 1;
  series.newest_written = true;
  return text(point);
}

std::string LineWriter::on_total(std::int64_t ticks_total) {
  if (ticks_total <= 0 || ticks_total_ > 0) return {};
  ticks_total_ = ticks_total;
  std::string out;
  for (Thinned* series : {&objective_, &validation_, &loss_}) {
    for (const Point& point : std::exchange(series->held, {})) out += thin(*series, point);
  }
  return out;
}

/// The run is over: the newest points, if they were passed over.
std::string LineWriter::flush() {
  std::string out;
  for (Thinned* series : {&objective_, &validation_, &loss_}) {
    if (!series->newest) continue;
    out += on_total(std::max<std::int64_t>(series->newest->tick, 1));
    if (!series->newest_written) out += text(*series->newest);
    series->newest_written = true;
  }
  return out;
}

std::string LineWriter::text(const Point& point) const {
  std::string out = "job " + std::to_string(job_) + ": tick " + std::to_string(point.tick);
  if (point.series == Series::last_stage_loss) {
    out += "  microbatch " + std::to_string(point.microbatch) + "  last-stage loss ";
  } else {
    out += "  updates " + std::to_string(point.updates) +
           (point.series == Series::validation ? "  validation " : "  objective ");
  }
  return out + format_short(point.value, 6) + "\n";
}

}  // namespace pipewright::cli
