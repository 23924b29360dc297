#include "proto/codec/local_pool.hpp"

#include <fstream>
#include <iterator>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/value.hpp"
#include "proto/codec/json.hpp"

namespace pipewright {

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string process_started(std::int64_t pid) {
  const std::string text = read("/proc/" + std::to_string(pid) + "/stat");
  // pid (name) state parent ...: the 22nd field is the time of start. The name may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  const std::string_view rest = std::string_view(text).substr(name_end + 1);
  const std::vector<std::string_view> fields = split(trim(rest), ' ');
  constexpr std::size_t start_time = 22 - 3;
  if (fields.size() <= start_time || fields[0] == "Z" || fields[0] == "X") return {};
  return std::string(fields[start_time]);
}

std::optional<LocalPoolRecord> read_local_pool(const std::filesystem::path& data_dir) {
  const std::string text = read(data_dir / local_pool_file);
  if (text.empty()) return std::nullopt;
  try {
    const Value value = value_from_json(text);
    return LocalPoolRecord{value.at("pid").as_integer(), value.at("started").as_text(),
                           value.at("ranks").as_integer()};
  } catch (const Error&) {
    return std::nullopt;  // cut off by a crash: it is as good as none
  }
}

std::string to_text(const LocalPoolRecord& record) {
  Value value = Value::map();
  value.set("pid", record.pid);
  value.set("started", record.started);
  value.set("ranks", record.ranks);
  return to_json(value) + "\n";
}

bool is_there(const LocalPoolRecord& record) {
  return !record.started.empty() && process_started(record.pid) == record.started;
}

}  // namespace pipewright
