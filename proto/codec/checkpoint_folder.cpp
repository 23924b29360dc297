#include "proto/codec/checkpoint_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/codec/json.hpp"

namespace pipewright {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t file_format = 2;
constexpr std::string_view magic = "pipewright checkpoint ";

[[noreturn]] void fail(const fs::path& path, const char* doing) {
  throw DataError(path.string() + ": cannot be " + doing + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) fail(path, "opened");
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, "written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) fail(path_, "synced");
  }

 private:
  const fs::path& path_;
  int descriptor_;
};

struct Name {
  std::int32_t row = CheckpointPart::values_row;
  std::int64_t tick = 0;
};

/// Nothing for a file that is no part.
std::optional<Name> parse_name(const std::string& name) {
  const std::size_t last = name.rfind('-');
  if (last == std::string::npos) return std::nullopt;
  const auto tick = parse_integer(name.substr(last + 1));
  const std::string what = name.substr(0, last);
  if (!tick || *tick < 0) return std::nullopt;
  if (what == "values") return Name{CheckpointPart::values_row, *tick};
  if (!what.starts_with("row-")) return std::nullopt;
  const auto row = parse_integer(what.substr(4));
  if (!row || *row < 0 || *row > INT32_MAX) return std::nullopt;
  return Name{static_cast<std::int32_t>(*row), *tick};
}

void check_origin(const CheckpointOrigin& found, const CheckpointOrigin& wanted) {
  const auto differ = [](const char* what, const std::string& is, const std::string& should) {
    if (is != should) {
      throw DataError(std::string("it is of another ") + what + " (" + is + ", not " + should +
                      ")");
    }
  };
  differ("job", found.job_sha256, wanted.job_sha256);
  differ("set of data files", found.data_sha256, wanted.data_sha256);
  differ("version of the program", found.program, wanted.program);
}

}  // namespace

CheckpointOrigin CheckpointOrigin::of(const Value& checked_job,
                                      const std::vector<HashedFile>& data) {
  Value job = Value::map();
  for (const auto& [key, value] : checked_job.as_map()) {
    if (key != "checkpoint" && key != "name" && key != "ranks") job.set(key, value);
  }
  Sha256 files;
  for (const HashedFile& file : data) files.update(file.sha256);
  const Maker& maker = this_maker();
  std::string program = maker.version + " " + maker.commit;
  // The commit alone does not say what was built.
  if (maker.commit == "unknown" || maker.commit.ends_with("-dirty")) program += " " + maker.build;
  return {std::move(program), pipewright::job_sha256(job), files.hex()};
}

std::string CheckpointPart::name_of(std::int32_t row, Tick tick) {
  const std::string end = "-" + std::to_string(tick.value);
  return row == values_row ? "values" + end : "row-" + std::to_string(row) + end;
}

std::string CheckpointPart::encode() const {
  Value header = Value::map();
  header.set("format", file_format);
  header.set("program", origin.program);
  header.set("job_sha256", origin.job_sha256);
  header.set("data_sha256", origin.data_sha256);
  header.set("tick", tick.value);
  header.set("previous", previous.value);
  header.set("rows", rows);
  header.set("row", row);
  Value::List ticks;
  for (const Tick from : continued) ticks.emplace_back(from.value);
  header.set("continued", std::move(ticks));
  header.set("makers", to_value(makers));
  header.set("sha256", sha256_hex(bytes));
  return std::string(magic) + to_json(header, -1) + "\n" + bytes;
}

CheckpointPart CheckpointPart::decode(std::string_view file) {
  const std::size_t end = file.find('\n');
  if (!file.starts_with(magic) || end == std::string_view::npos) {
    throw DataError("it is no part of a checkpoint");
  }
  CheckpointPart part;
  try {
    const Value header = value_from_json(file.substr(magic.size(), end - magic.size()));
    const std::int64_t format = header.at("format").as_integer();
    if (format != file_format) {
      throw DataError("it has format " + std::to_string(format) + ", not " +
                      std::to_string(file_format));
    }
    part.origin = {header.at("program").as_text(), header.at("job_sha256").as_text(),
                   header.at("data_sha256").as_text()};
    part.tick = Tick(header.at("tick").as_integer());
    part.previous = Tick(header.at("previous").as_integer());
    part.rows = static_cast<std::int32_t>(header.at("rows").as_integer());
    part.row = static_cast<std::int32_t>(header.at("row").as_integer());
    for (const Value& from : header.at("continued").as_list()) {
      part.continued.emplace_back(from.as_integer());
    }
    part.makers = makers_from(header.at("makers"));
    part.bytes = file.substr(end + 1);
    if (header.at("sha256").as_text() != sha256_hex(part.bytes)) {
      throw DataError("its bytes are not those that were written: the checksum differs");
    }
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    throw DataError(std::string("its first line does not say what it is: ") + error.what());
  }
  return part;
}

void CheckpointFolder::write(const std::string& name, std::string_view file) const {
  append(name, 0, file, true);
}

void CheckpointFolder::append(const std::string& name, std::uint64_t offset, std::string_view bytes,
                              bool last) const {
  if (!parse_name(name)) throw DataError("'" + name + "' is no name of a part of a checkpoint");
  std::error_code ignored;  // opening says why
  fs::create_directories(path_, ignored);
  const fs::path path = path_ / name;
  const fs::path temporary = path_ / (name + ".part");
  {
    const Descriptor out(temporary, O_WRONLY | (offset == 0 ? O_CREAT | O_TRUNC : O_APPEND));
    if (const auto size = fs::file_size(temporary); size != offset) {
      throw DataError(temporary.string() + ": has " + std::to_string(size) +
                      " bytes, and a part comes that begins at byte " + std::to_string(offset));
    }
    out.write(bytes);
    if (!last) return;
    out.sync();
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "made");
  Descriptor(path_, O_RDONLY | O_DIRECTORY).sync();
}

std::string CheckpointFolder::read(const std::string& name) const {
  std::ifstream in(path_ / name, std::ios::binary);
  std::ostringstream out;
  if (!in || !(out << in.rdbuf())) fail(path_ / name, "read");
  return std::move(out).str();
}

std::pair<std::string, bool> CheckpointFolder::read_part(const std::string& name,
                                                         std::uint64_t offset,
                                                         std::size_t bytes_max) const {
  std::string bytes;
  std::ifstream in(path_ / name, std::ios::binary);
  if (!parse_name(name) || !in) return {bytes, true};
  in.seekg(static_cast<std::streamoff>(offset));
  bytes.resize(bytes_max);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return {bytes, in.peek() == std::ifstream::traits_type::eof()};
}

CheckpointPart CheckpointFolder::part(const std::string& name) const {
  try {
    CheckpointPart part = CheckpointPart::decode(read(name));
    if (part.name() != name) throw DataError("it is " + part.name());
    return part;
  } catch (const DataError& error) {
    throw DataError((path_ / name).string() + ": " + error.what());
  }
}

std::optional<CheckpointFiles> CheckpointFolder::newest(const CheckpointOrigin* origin,
                                                        std::vector<std::string>& refused) const {
  std::set<std::int64_t, std::greater<>> ticks;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, missing)) {
    const auto name = parse_name(entry.path().filename().string());
    if (name && name->row == 0) ticks.insert(name->tick);
  }
  for (const std::int64_t tick : ticks) {
    try {
      return check(Tick(tick), origin);
    } catch (const DataError& error) {
      refused.push_back("the checkpoint of tick " + std::to_string(tick) +
                        " is not used: " + error.what());
    }
  }
  return std::nullopt;
}

namespace {

/// How many rows the checkpoint of this part has, as its first line says; 0 where it does not.
std::size_t rows_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  if (!in || !line.starts_with(magic)) return 0;
  try {
    const Value header = value_from_json(std::string_view(line).substr(magic.size()));
    return static_cast<std::size_t>(header.at("rows").as_integer());
  } catch (const Error&) {
    return 0;
  }
}

std::int64_t unix_ms_of(fs::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

std::optional<CheckpointInfo> CheckpointFolder::newest_info() const {
  struct Rows {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::int64_t stored_unix_ms = 0;
  };
  std::map<std::int64_t, Rows, std::greater<>> rows;  // by tick
  std::map<std::int64_t, std::uint64_t> values;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, missing)) {
    const auto name = parse_name(entry.path().filename().string());
    std::error_code error;
    const std::uint64_t bytes = name ? entry.file_size(error) : 0;
    const fs::file_time_type time = entry.last_write_time(error);
    if (!name || error) continue;
    if (name->row == CheckpointPart::values_row) {
      values[name->tick] = bytes;
      continue;
    }
    Rows& all = rows[name->tick];
    ++all.count;
    all.bytes += bytes;
    all.stored_unix_ms = std::max(all.stored_unix_ms, unix_ms_of(time));
  }
  for (const auto& [tick, all] : rows) {
    const auto last = values.find(tick);
    if (last == values.end()) continue;
    if (all.count != rows_of(path_ / CheckpointPart::name_of(0, Tick(tick)))) continue;
    CheckpointInfo info{tick, all.bytes, all.stored_unix_ms};
    for (auto at = values.begin(); at != std::next(last); ++at) info.bytes += at->second;
    return info;
  }
  return std::nullopt;
}

CheckpointFiles CheckpointFolder::check(Tick tick, const CheckpointOrigin* origin) const {
  CheckpointFiles files;
  files.tick = tick;
  std::optional<CheckpointOrigin> seen;
  if (origin != nullptr) seen = *origin;
  const auto take = [&](const std::string& name) {
    const CheckpointPart part = this->part(name);
    if (!seen) seen = part.origin;
    check_origin(part.origin, *seen);
    return part;
  };
  const CheckpointPart first = take(CheckpointPart::name_of(0, tick));
  const std::int32_t rows = first.rows;
  files.continued = first.continued;
  files.makers = first.makers;
  for (std::int32_t r = 0; r < rows; ++r) {
    files.rows.push_back(CheckpointPart::name_of(r, tick));
    if (r > 0) take(files.rows.back());
  }
  for (Tick at = tick; at > Tick(0);) {
    files.values.push_back(CheckpointPart::name_of(CheckpointPart::values_row, at));
    const Tick previous = take(files.values.back()).previous;
    if (previous >= at) throw DataError(files.values.back() + ": it names a later one before it");
    at = previous;
  }
  std::reverse(files.values.begin(), files.values.end());
  return files;
}

namespace {

/// Deletes the files of a folder that `is_unwanted(name, parsed)`.
template <class Unwanted>
void drop(const fs::path& folder, Unwanted&& is_unwanted) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    const bool is_unfinished = name.ends_with(".part");
    if (is_unfinished) name.resize(name.size() - 5);
    const auto parsed = parse_name(name);
    if (parsed && is_unwanted(*parsed, is_unfinished)) paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) fs::remove(path, ignored);
}

}  // namespace

void CheckpointFolder::keep_two(Tick newest) const {
  std::int64_t before = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
    const auto name = parse_name(entry.path().filename().string());
    if (name && name->row == 0 && name->tick < newest.value) before = std::max(before, name->tick);
  }
  drop(path_, [&](const Name& name, bool) {
    return name.row != CheckpointPart::values_row && name.tick < before;
  });
}

void CheckpointFolder::drop_after(Tick tick) const {
  drop(path_, [&](const Name& name, bool is_unfinished) {
    return is_unfinished || name.tick > tick.value;
  });
}

void CheckpointFolder::clear() const {
  drop(path_, [](const Name&, bool) { return true; });
  std::error_code not_empty;
  fs::remove(path_, not_empty);
}

StoredCheckpoints::StoredCheckpoints(fs::path folder, CheckpointOrigin origin, int rows,
                                     Maker maker)
    : folder_(std::move(folder)),
      origin_(std::move(origin)),
      rows_(rows),
      maker_(std::move(maker)) {}

std::vector<std::string> StoredCheckpoints::find() {
  std::vector<std::string> refused;
  from_ = folder_.newest(&origin_, refused);
  if (from_) {
    folder_.drop_after(from_->tick);
    last_values_ = from_->tick;
    continued_ = from_->continued;
    makers_ = from_->makers;
    if (continued_.empty() || continued_.back() != from_->tick) continued_.push_back(from_->tick);
  } else {
    folder_.clear();
  }
  return refused;
}

void StoredCheckpoints::put(Tick tick, std::int32_t row, std::string_view bytes) {
  CheckpointPart part;
  part.origin = origin_;
  part.tick = tick;
  part.rows = rows_;
  part.row = row;
  if (row == CheckpointPart::values_row) part.previous = std::exchange(last_values_, tick);
  part.continued = continued_;
  part.makers = makers_;
  add_maker(part.makers, maker_);
  part.bytes = bytes;
  folder_.write(part.name(), part.encode());
}

void StoredCheckpoints::put_row(Tick tick, Row row, std::string_view state) {
  put(tick, row.value, state);
}
void StoredCheckpoints::put_values(Tick tick, std::string_view values) {
  put(tick, CheckpointPart::values_row, values);
}

void StoredCheckpoints::complete(Tick tick) {
  folder_.keep_two(tick);
}

std::optional<Tick> StoredCheckpoints::resume_from() const {
  return from_ ? std::optional(from_->tick) : std::nullopt;
}

std::string StoredCheckpoints::row(Row row) const {
  return folder_.part(from_->rows.at(static_cast<std::size_t>(row.value))).bytes;
}

std::optional<std::string> StoredCheckpoints::next_values() {
  if (!from_ || next_values_ == from_->values.size()) return std::nullopt;
  return folder_.part(from_->values[next_values_++]).bytes;
}

}  // namespace pipewright
