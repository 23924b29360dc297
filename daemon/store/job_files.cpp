#include "daemon/store/job_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/text.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

// Files that are written and not synced keep a descriptor open, up to so many.
constexpr std::size_t descriptors_max = 64;
// From so many on the file system is synced as a whole: each fsync alone takes milliseconds.
constexpr std::size_t single_syncs_max = 12;

[[noreturn]] void fail(const fs::path& path, const char* doing) {
  const int fault = errno;
  const std::string what = path.string() + ": cannot be " + doing + ": " + std::strerror(fault);
  if (fault == ENOSPC || fault == EDQUOT || fault == EROFS) throw CannotWriteNow(what);
  throw StoreError(what);
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path,
               std::uint64_t offset = 0) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "opened");
  ::fsync(descriptor);
  ::close(descriptor);
}

void sync_and_rename(int descriptor, const fs::path& from, const fs::path& to) {
  const bool synced = ::fsync(descriptor) == 0;
  if (::close(descriptor) != 0 || !synced) fail(from, "synced");
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "made");
  sync_folder(to.parent_path());
}

/// A plain name that does not begin with a dot: those are ours.
bool good_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), good);
}

}  // namespace

JobFiles::~JobFiles() {
  for (const auto& [run, part] : parts_) ::close(part.descriptor);
  close_written();
  if (root_descriptor_ >= 0) ::close(root_descriptor_);
}

fs::path JobFiles::folder(RunKey run) const {
  return root_ / std::to_string(run.first) / std::to_string(run.second);
}

void JobFiles::put(const RunFileChunk& chunk) {
  if (!good_name(chunk.name)) {
    throw ProtocolError("'" + chunk.name +
                        "' is not a name for a file of a run: letters, digits, "
                        "'_', '-' and '.' make one, and it does not begin with '.'");
  }
  if (chunk.data.size() > file_chunk_bytes_max) {
    throw ProtocolError("a part of " + chunk.name + " has " + std::to_string(chunk.data.size()) +
                        " bytes; at most " + std::to_string(file_chunk_bytes_max) + " are allowed");
  }
  Part& part = begin(chunk);
  if (chunk.offset_bytes != part.bytes) {
    throw ProtocolError("a part of " + chunk.name + " begins at byte " +
                        std::to_string(chunk.offset_bytes) + "; the next is " +
                        std::to_string(part.bytes));
  }
  try {
    write_all(part.descriptor, chunk.data, part.path, part.bytes);
    const std::uint64_t bytes = part.bytes + chunk.data.size();
    if (chunk.last) {
      finish({chunk.run.job, chunk.run.run}, bytes);
    } else {
      part.bytes = bytes;
    }
  } catch (const CannotWriteNow&) {
    throw;
  } catch (...) {
    drop_part({chunk.run.job, chunk.run.run});
    throw;
  }
}

JobFiles::Part& JobFiles::begin(const RunFileChunk& chunk) {
  const RunKey run{chunk.run.job, chunk.run.run};
  const auto at = parts_.find(run);
  if (at != parts_.end() && at->second.name == chunk.name &&
      at->second.attempt == chunk.run.attempt && chunk.offset_bytes != 0) {
    return at->second;
  }
  drop_part(run);
  std::error_code fault;
  fs::create_directories(folder(run), fault);
  if (fault) {
    errno = fault.value();
    fail(folder(run), "made");
  }
  if (root_descriptor_ < 0) {
    root_descriptor_ = ::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  Part part{chunk.run.attempt, chunk.name, folder(run) / ("." + chunk.name + ".part"), -1, 0};
  part.descriptor = ::open(part.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (part.descriptor < 0) fail(part.path, "made");
  return parts_[run] = std::move(part);
}

/// It stays a part when it throws.
void JobFiles::finish(RunKey run, std::uint64_t bytes) {
  const Part& part = parts_.at(run);
  const fs::path path = folder(run) / part.name;
  std::error_code is_new;
  const std::uintmax_t before = fs::file_size(path, is_new);
  if (::rename(part.path.c_str(), path.c_str()) != 0) fail(path, "made");
  unsynced_[run].push_back({path, part.descriptor});
  parts_.erase(run);
  if (bytes_) {
    *bytes_ += static_cast<std::int64_t>(bytes) - (is_new ? 0 : static_cast<std::int64_t>(before));
  }
  if (++descriptors_ > descriptors_max) close_written();
}

void JobFiles::close_written() {
  for (auto& [run, files] : unsynced_) {
    for (Written& file : files) {
      if (file.descriptor < 0) continue;
      ::close(std::exchange(file.descriptor, -1));
      some_closed_ = true;
    }
  }
  descriptors_ = 0;
}

std::map<RunKey, std::string> JobFiles::sync(std::span<const RunKey> runs) {
  std::size_t files = 0;
  for (const RunKey& run : runs) {
    if (const auto at = unsynced_.find(run); at != unsynced_.end()) files += at->second.size();
  }
  std::map<RunKey, std::string> faults;
  const auto add_fault = [&](RunKey run, const std::string& fault) {
    if (!fault.empty()) faults[run] = fault;
  };
  if (files == 0) return faults;
  if (files > single_syncs_max || some_closed_) {
    const std::string fault = sync_all();
    for (const RunKey& run : runs) add_fault(run, fault);
    return faults;
  }
  for (const RunKey& run : runs) add_fault(run, sync_run(run));
  return faults;
}

/// Everything that has been written until now, by anybody on this file system.
std::string JobFiles::sync_all() {
  const bool synced = root_descriptor_ >= 0 && ::syncfs(root_descriptor_) == 0;
  const std::string fault =
      synced ? "" : root_.string() + ": cannot be synced: " + std::strerror(errno);
  if (synced) {
    close_written();
    unsynced_.clear();
    some_closed_ = false;
  }
  return fault;
}

std::string JobFiles::sync_run(RunKey run) {
  const auto written = unsynced_.extract(run);
  if (written.empty()) return {};
  std::string fault;
  for (const Written& file : written.mapped()) {
    if (::fsync(file.descriptor) != 0 && fault.empty()) {
      fault = file.path.string() + ": cannot be synced: " + std::strerror(errno);
    }
    ::close(file.descriptor);
    --descriptors_;
  }
  try {
    for (const fs::path& changed : {folder(run), folder(run).parent_path(), root_}) {
      sync_folder(changed);
    }
  } catch (const StoreError& error) {
    if (fault.empty()) fault = error.what();
  }
  return fault;
}

void JobFiles::abandon(RunKey run) {
  const auto written = unsynced_.extract(run);
  if (!written.empty()) {
    for (const Written& file : written.mapped()) {
      if (file.descriptor < 0) continue;
      ::close(file.descriptor);
      --descriptors_;
    }
  }
  drop_part(run);
}

void JobFiles::drop_part(RunKey run) {
  const auto gone = parts_.extract(run);
  if (gone.empty()) return;
  ::close(gone.mapped().descriptor);
  ::unlink(gone.mapped().path.c_str());
}

void JobFiles::remove(std::uint32_t job) {
  const fs::path path = root_ / std::to_string(job);
  const std::int64_t bytes = bytes_ ? bytes_in(path) : 0;
  std::error_code fault;
  fs::remove_all(path, fault);
  if (bytes_) *bytes_ += fault ? bytes_in(path) - bytes : -bytes;
  if (fault) throw StoreError(path.string() + ": cannot be deleted: " + fault.message());
}

void JobFiles::remove_all_but(std::span<const std::uint32_t> jobs) {
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_, missing)) {
    const std::optional<std::int64_t> job = parse_integer(entry.path().filename().string());
    if (job && *job > 0 && *job <= UINT32_MAX &&
        !std::binary_search(jobs.begin(), jobs.end(), static_cast<std::uint32_t>(*job))) {
      remove(static_cast<std::uint32_t>(*job));
    }
  }
}

std::int64_t JobFiles::bytes_used() {
  if (!bytes_) bytes_ = bytes_in(root_);
  return *bytes_;
}

/// Of whole files that runs have left.
std::int64_t JobFiles::bytes_in(const fs::path& path) {
  std::int64_t sum = 0;
  std::error_code gone;  // no such folder
  for (fs::recursive_directory_iterator at(path, gone), end; at != end; at.increment(gone)) {
    const std::string name = at->path().filename().string();
    // Others write these, and they go when their run has ended.
    if (name == "checkpoint" && at->is_directory(gone)) at.disable_recursion_pending();
    if (!good_name(name) || !at->is_regular_file(gone)) continue;
    const std::uintmax_t bytes = at->file_size(gone);
    if (!gone) sum += static_cast<std::int64_t>(bytes);
  }
  return sum;
}

FileList JobFiles::list(RunKey run) const {
  FileList list;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(run), missing)) {
    std::string name = entry.path().filename().string();
    if (!good_name(name) || !entry.is_regular_file()) continue;
    list.files.push_back({std::move(name), entry.file_size()});
  }
  std::sort(list.files.begin(), list.files.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return list;
}

std::optional<fs::path> JobFiles::find(RunKey run, const std::string& name) const {
  fs::path path = folder(run) / name;
  std::error_code missing;
  if (!good_name(name) || !fs::is_regular_file(path, missing)) return std::nullopt;
  return path;
}

void write_file_atomically(const fs::path& path, std::string_view text, unsigned mode) {
  const fs::path temporary = path.string() + ".part";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (descriptor < 0) fail(temporary, "made");
  try {
    write_all(descriptor, text, temporary);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  sync_and_rename(descriptor, temporary, path);
}

}  // namespace pipewright
