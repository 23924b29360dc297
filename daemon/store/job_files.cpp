#include "daemon/store/job_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t unsynced_max = 64;  // each keeps a descriptor open

[[noreturn]] void fail(const fs::path& path, const char* doing) {
  throw StoreError(path.string() + ": cannot be " + doing + ": " + std::strerror(errno));
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
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
  for (const auto& [job, part] : parts_) ::close(part.descriptor);
  for (const auto& [job, files] : unsynced_) {
    for (const auto& [path, descriptor] : files) ::close(descriptor);
  }
}

fs::path JobFiles::folder(std::uint32_t job) const {
  return root_ / std::to_string(job);
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
    write_all(part.descriptor, chunk.data, part.path);
  } catch (...) {
    drop_part(chunk.run.job);
    throw;
  }
  part.bytes += chunk.data.size();
  if (chunk.last) finish(chunk.run.job);
}

JobFiles::Part& JobFiles::begin(const RunFileChunk& chunk) {
  const auto at = parts_.find(chunk.run.job);
  if (at != parts_.end() && at->second.name == chunk.name &&
      at->second.attempt == chunk.run.attempt && chunk.offset_bytes != 0) {
    return at->second;
  }
  drop_part(chunk.run.job);
  std::error_code ignored;  // the open below says why
  fs::create_directories(folder(chunk.run.job), ignored);
  Part part{chunk.run.attempt, chunk.name, folder(chunk.run.job) / ("." + chunk.name + ".part"), -1,
            0};
  part.descriptor = ::open(part.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (part.descriptor < 0) fail(part.path, "made");
  return parts_[chunk.run.job] = std::move(part);
}

void JobFiles::finish(std::uint32_t job) {
  const Part part = std::move(parts_.extract(job).mapped());
  const fs::path path = folder(job) / part.name;
  unsynced_[job].emplace_back(path, part.descriptor);
  if (::rename(part.path.c_str(), path.c_str()) != 0) fail(path, "made");
  if (unsynced_[job].size() >= unsynced_max) sync(job);
}

void JobFiles::sync(std::uint32_t job) {
  const auto written = unsynced_.extract(job);
  if (written.empty()) return;
  std::string fault;
  for (const auto& [path, descriptor] : written.mapped()) {
    if (::fsync(descriptor) != 0 && fault.empty()) {
      fault = path.string() + ": cannot be synced: " + std::strerror(errno);
    }
    ::close(descriptor);
  }
  if (!fault.empty()) throw StoreError(fault);
  sync_folder(folder(job));
}

void JobFiles::abandon(std::uint32_t job) {
  const auto written = unsynced_.extract(job);
  if (!written.empty()) {
    for (const auto& [path, descriptor] : written.mapped()) ::close(descriptor);
  }
  drop_part(job);
}

void JobFiles::drop_part(std::uint32_t job) {
  const auto gone = parts_.extract(job);
  if (gone.empty()) return;
  ::close(gone.mapped().descriptor);
  ::unlink(gone.mapped().path.c_str());
}

FileList JobFiles::list(std::uint32_t job) const {
  FileList list;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(job), missing)) {
    std::string name = entry.path().filename().string();
    if (!good_name(name) || !entry.is_regular_file()) continue;
    list.files.push_back({std::move(name), entry.file_size()});
  }
  std::sort(list.files.begin(), list.files.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return list;
}

std::optional<fs::path> JobFiles::find(std::uint32_t job, const std::string& name) const {
  fs::path path = folder(job) / name;
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
