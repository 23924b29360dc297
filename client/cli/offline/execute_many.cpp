#include "client/cli/offline/execute_many.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "client/cli/command.hpp"
#include "client/cli/offline/checkpoints.hpp"
#include "client/cli/offline/many_results.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "client/cli/offline/shared_objectives.hpp"
#include "client/cli/view/runs_view.hpp"
#include "core/base/error.hpp"
#include "core/train/run.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// The files that a run has read, by its summary.
std::vector<HashedFile> data_of(const Value& summary) {
  std::vector<HashedFile> files;
  for (const Value& file : summary.at("data").as_list()) {
    files.push_back({file.at("path").as_text(),
                     static_cast<std::uint64_t>(file.at("bytes").as_integer()),
                     file.at("sha256").as_text()});
  }
  return files;
}

/// All runs of a job, taken in their order by as many threads as there are to be at a time.
class ManyRuns {
 public:
  ManyRuns(const Value& job, std::string out, bool resume)
      : runs_(job),
        out_(std::move(out)),
        resume_(resume),
        results_(runs_.size()),
        data_(runs_.size()) {}

  /// Reads the data of the first run: what is wrong with all of them is found before the folder is
  /// touched.
  void prepare() { objectives_.get(JobConfig::from(runs_.run(0).job)); }

  /// Executes all, or as many as are begun before an interrupt.
  void execute(unsigned threads) {
    fractions_ = std::vector<std::atomic<double>>(threads);
    std::vector<std::jthread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      workers.emplace_back([this, t] { work(t); });
    }
    show_progress();
  }

  const JobRuns& runs() const { return runs_; }
  /// As run_table wants them.
  const std::vector<Value>& results() const { return results_; }
  /// "run 3: why it could not be executed", in the order of runs.
  std::vector<std::string> failures() const {
    auto sorted = failures_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> texts;
    for (const auto& [number, text] : sorted) {
      texts.push_back("run " + std::to_string(number) + ": " + text);
    }
    return texts;
  }
  std::uint32_t done() const { return done_; }
  /// Of all runs, each file once.
  std::vector<HashedFile> data() const {
    std::vector<HashedFile> all;
    for (const auto& files : data_) {
      for (const HashedFile& file : files) {
        if (std::find(all.begin(), all.end(), file) == all.end()) all.push_back(file);
      }
    }
    return all;
  }

 private:
  void work(unsigned thread) {
    while (!InterruptGuard::interrupted()) {
      const std::uint32_t number = next_++;
      if (number >= runs_.size()) break;
      try {
        execute_run(number, fractions_[thread]);
      } catch (const std::exception& error) {
        if (InterruptGuard::interrupted()) break;
        const std::lock_guard lock(mutex_);
        failures_.emplace_back(number, error.what());
      }
      fractions_[thread] = 0;
      ++done_;
      changed_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_one();
  }

  void execute_run(std::uint32_t number, std::atomic<double>& fraction) {
    const auto begin = Clock::now();
    const Value job = runs_.run(number).job;
    const std::string folder = folder_of_run(out_, number);
    if (const auto ended = resume_ ? ended_run(folder, job) : std::nullopt) {
      data_[number] = data_of(*ended);
      results_[number] = table_part(*ended);
      return;
    }
    const JobConfig config = JobConfig::from(job);
    const auto loaded = objectives_.get(config);
    DiskFiles disk;
    HashingFiles inputs(disk);
    std::vector<std::string> refused;
    const auto checkpoints = checkpoints_for(config, folder, loaded->files, resume_, refused);
    say(number, refused);
    FolderFiles files(folder, resume_);
    RunHooks hooks;
    hooks.checkpoints = checkpoints.get();
    hooks.cancelled = [] { return InterruptGuard::interrupted(); };
    hooks.progress = [&](const RunControl& control) {
      fraction = static_cast<double>(control.now().value) /
                 static_cast<double>(std::max<std::int64_t>(1, control.totals().makespan.value));
    };
    RunResult result = run_in_process(config, *loaded->objective, inputs, {&files}, hooks);
    const std::chrono::duration<double> wall = Clock::now() - begin;
    data_[number] = loaded->files;
    data_[number].insert(data_[number].end(), inputs.files().begin(), inputs.files().end());
    add_provenance(result.summary, job, data_[number], wall.count());
    add_continued(result.summary, checkpoints.get());
    files.finish(result.summary, result.weights);
    if (checkpoints) checkpoints->clear();
    results_[number] = table_part(result.summary);
  }

  void say(std::uint32_t number, const std::vector<std::string>& texts) {
    const std::lock_guard lock(mutex_);
    for (const std::string& text : texts) {
      std::cerr << "run " + std::to_string(number) + ": " + text + "\n";
    }
  }

  void show_progress() {
    ProgressLine line;
    std::unique_lock lock(mutex_);
    while (ended_ < fractions_.size()) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      double sum = done_;
      for (const auto& fraction : fractions_) sum += fraction;
      line.update(std::min(1.0, sum / runs_.size()), [&] {
        return std::to_string(done_) + " of " + std::to_string(runs_.size()) + " runs";
      });
    }
    line.clear();
  }

  JobRuns runs_;
  std::string out_;
  bool resume_;
  SharedObjectives objectives_;
  std::vector<Value> results_;
  std::vector<std::vector<HashedFile>> data_;
  std::atomic<std::uint32_t> next_ = 0;
  std::atomic<std::uint32_t> done_ = 0;
  std::vector<std::atomic<double>> fractions_;  // of the run that a thread is at
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;  // threads
  std::vector<std::pair<std::uint32_t, std::string>> failures_;
};

void print_result(const Value& summary, const ExecuteOptions& options) {
  if (!options.json) {
    std::cout << format_run_table(summary, table_columns(STDOUT_FILENO)) << "files in "
              << options.out << '\n';
    return;
  }
  std::cout << to_json(summary) << '\n';
  for (const Value& warning : summary.at("warnings").as_list()) {
    std::cerr << "warning: " << warning.as_text() << '\n';
  }
}

/// All of them are in summary.json.
void print_failures(const std::vector<std::string>& failures) {
  static constexpr std::size_t shown_max = 10;
  const std::size_t shown = std::min(shown_max, failures.size());
  for (std::size_t i = 0; i < shown; ++i) std::cerr << failures[i] << '\n';
  if (shown < failures.size()) {
    std::cerr << "and " << failures.size() - shown << " more runs that could not be executed\n";
  }
}

unsigned threads_for(const ExecuteOptions& options, std::uint32_t runs) {
  const unsigned wanted =
      options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  return std::min<unsigned>(wanted, runs);
}

}  // namespace

int execute_many(const Value& checked_job, const ExecuteOptions& options) {
  const auto begin = Clock::now();
  check_folder(options.out, options.force, options.resume);
  const InterruptGuard guard;
  ManyRuns many(checked_job, options.out, options.resume);
  many.prepare();
  begin_folder(options.out, options.resume);
  many.execute(threads_for(options, many.runs().size()));
  print_failures(many.failures());
  if (InterruptGuard::interrupted()) {
    std::cerr << "interrupted: " << many.done() << " of " << many.runs().size()
              << " runs are complete in " << options.out << '\n';
    return exit_interrupted;
  }
  const std::chrono::duration<double> wall = Clock::now() - begin;
  Value summary = many_summary(checked_job, many.runs(), many.results(), many.failures());
  add_provenance(summary, checked_job, many.data(), wall.count());
  write_tables(many.runs(), many.results(), summary, options.out);
  print_result(summary, options);
  return many.failures().empty() ? exit_ok : exit_failure;
}

}  // namespace pipewright::cli
