#include "client/cli/download.hpp"

#include <algorithm>
#include <vector>

#include "client/cli/offline/many_results.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/text.hpp"
#include "core/train/stored_job.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

/// Whether a name that the daemon gives stays inside the folder it is written to.
bool is_plain(const std::string& name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == std::string::npos &&
         printable(name) == name;
}

class Download {
 public:
  Download(const Api& api, const Job& job, const fs::path& folder, const DownloadHooks& hooks)
      : api_(api), job_(job), folder_(folder), hooks_(hooks), runs_(restored_job(job.spec)) {}

  std::size_t all() {
    fs::create_directories(folder_);
    if (!runs_.many()) {
      fetch_run(0, folder_);
      return files_;
    }
    results_.resize(runs_.size());
    std::uint32_t from = 0;
    do {
      const RunList page = api_.runs(job_.id, from);
      for (const Run& run : page.runs) take(run);
      from = page.next_from;
    } while (from != 0);
    if (files_ > 0) write_job();
    return files_;
  }

 private:
  void take(const Run& run) {
    if (run.state == JobState::failed) {
      failures_.push_back("run " + std::to_string(run.number) + ": " + run.message);
    }
    if (run.state != JobState::succeeded || run.number >= runs_.size()) return;
    const Value summary = parse_json(run.summary_json, "summary.json");
    results_[run.number] = table_part(summary);
    if (first_.is_null()) first_ = summary;
    if (const Value* data = summary.find("data"); data != nullptr && data->is_list()) {
      for (const Value& file : data->as_list()) {
        if (std::find(data_.begin(), data_.end(), file) == data_.end()) data_.push_back(file);
      }
    }
    fetch_run(run.number, folder_of_run(folder_.string(), run.number));
  }

  void fetch_run(std::uint32_t run, const fs::path& folder) {
    const FileList list = api_.files(job_.id, run);
    std::uint64_t bytes = 0, bytes_all = 1;
    for (const FileInfo& file : list.files) bytes_all += file.bytes;
    for (const FileInfo& file : list.files) {
      const double part = static_cast<double>(bytes) / static_cast<double>(bytes_all);
      hooks_.progress(runs_.many() ? (run + part) / runs_.size() : part,
                      (folder / file.name).string());
      bytes += file.bytes;
      if (!is_plain(file.name)) {
        throw ProtocolError("the daemon names a file '" + printable(file.name) + "'");
      }
      if (!hooks_.wants(file.name)) continue;
      fs::create_directories(folder);
      api_.download_file(job_.id, run, file.name, folder / file.name);
      ++files_;
      hooks_.written(folder / file.name, file.bytes);
    }
  }

  void write_job() {
    Value summary = many_summary(job_.spec, runs_, results_, failures_);
    summary.set("wall_seconds",
                static_cast<double>(job_.ended_unix_ms - job_.started_unix_ms) / 1000);
    for (const char* key : {"program", "cpu_type"}) {
      if (const Value* value = first_.find(key)) summary.set(key, *value);
    }
    summary.set("job_sha256", job_sha256(job_.spec));
    summary.set("data", data_);
    summary.set("job", job_.spec);
    write_tables(runs_, results_, summary, folder_.string());
    for (const char* name : {"runs.csv", "band.csv", "summary.json"}) {
      const fs::path path = folder_ / name;
      if (!fs::exists(path)) continue;
      ++files_;
      hooks_.written(path, fs::file_size(path));
    }
  }

  const Api& api_;
  const Job& job_;
  fs::path folder_;
  const DownloadHooks& hooks_;
  JobRuns runs_;
  std::vector<Value> results_;
  std::vector<std::string> failures_;
  Value first_;  // summary of the first run that succeeded
  Value::List data_;
  std::size_t files_ = 0;
};

}  // namespace

std::size_t download_job(const Api& api, const Job& job, const fs::path& folder,
                         const DownloadHooks& hooks) {
  return Download(api, job, folder, hooks).all();
}

}  // namespace pipewright::cli
