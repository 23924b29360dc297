#include "core/schedule/csv.hpp"

#include <map>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/lines.hpp"

namespace pipewright {

namespace {

constexpr std::string_view magic = "# pipewright schedule ";
constexpr std::string_view columns = "stage,kind,microbatch,replica,batch,read_update";

class CsvReader {
 public:
  CsvReader(std::istream& in, const std::string& name) : in_(in), name_(name) {}

  ScheduleHeader read_first_line() {
    if (!next_line())
      fail("the file is empty; a schedule begins with '" + std::string(magic) + "version=1 ...'");
    return read_header();
  }

  Schedule read() {
    Schedule schedule;
    schedule.header = read_first_line();
    schedule.rows.resize(static_cast<std::size_t>(schedule.header.rows()));
    while (next_line()) {
      if (line_.empty() || line_ == columns) continue;
      const Action action = read_action(schedule.header);
      schedule.rows[static_cast<std::size_t>(schedule.header.row_of(action).value)].push_back(
          action);
    }
    imply_backward_to(schedule);
    return schedule;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(name_ + ":" + std::to_string(number_) + ": " + message);
  }

  bool next_line() {
    if (!pipewright::next_line(in_, line_, name_, number_ + 1)) return false;
    ++number_;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    return true;
  }

  ScheduleHeader read_header() {
    if (!std::string_view(line_).starts_with(magic)) {
      fail("expected '" + std::string(magic) + "version=1 ...', found '" + line_.substr(0, 60) +
           "'");
    }
    std::map<std::string, std::string, std::less<>> fields;
    for (const std::string_view word : split(std::string_view(line_).substr(magic.size()), ' ')) {
      const std::size_t equals = word.find('=');
      if (word.empty()) continue;
      if (equals == std::string_view::npos) fail("'" + std::string(word) + "' is not key=value");
      fields[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
    }
    if (fields["version"] != "1")
      fail("version '" + fields["version"] + "' is not known; this reads version 1");
    ScheduleHeader header;
    header.name = fields["name"];
    header.stages = static_cast<int>(whole(fields, "stages", 1, 65536));
    header.microbatches = whole(fields, "microbatches", 0, INT64_MAX);
    header.updates = whole(fields, "updates", 0, INT64_MAX);
    header.replicas = static_cast<int>(whole(fields, "replicas", 1, 65536));
    header.local_steps = whole(fields, "local_steps", 0, INT64_MAX);
    header.delay_max = whole(fields, "delay_max", 0, INT64_MAX);
    if (fields.contains("in_flight_max")) {
      header.in_flight_max = whole(fields, "in_flight_max", 0, INT64_MAX);
    }
    header.seed = static_cast<std::uint64_t>(whole(fields, "seed", 0, INT64_MAX));
    const std::string& placement = fields["placement"];
    if (placement != "colocated" && placement != "spread") {
      fail("placement '" + placement + "' is neither colocated nor spread");
    }
    header.placement = placement == "spread" ? Placement::spread : Placement::colocated;
    const std::string& blocks = fields["blocks"];
    if (blocks != "all" && blocks != "one") fail("blocks '" + blocks + "' is neither all nor one");
    header.one_block = blocks == "one";
    if (static_cast<std::int64_t>(header.stages) * header.replicas > 1'000'000) {
      fail("stages times replicas is above 1000000");
    }
    return header;
  }

  std::int64_t whole(const std::map<std::string, std::string, std::less<>>& fields,
                     std::string_view key, std::int64_t least, std::int64_t most) const {
    const auto at = fields.find(key);
    if (at == fields.end()) fail("the first line has no '" + std::string(key) + "=...'");
    const auto value = parse_integer(at->second);
    if (!value || *value < least || *value > most) {
      fail(std::string(key) + "=" + at->second + " is not a whole number from " +
           std::to_string(least) + " to " + std::to_string(most));
    }
    return *value;
  }

  std::int64_t field(std::string_view text, const char* column, std::int64_t below) const {
    const auto value = parse_integer(text);
    if (!value || *value < 0 || *value >= below) {
      fail("column " + std::string(column) + ": '" + std::string(text) +
           "' is not a whole number from 0 to " + std::to_string(below - 1));
    }
    return *value;
  }

  Action read_action(const ScheduleHeader& header) const {
    const auto cells = split(line_, ',');
    if (cells.size() != 6) {
      fail("expected the 6 columns " + std::string(columns) + ", found " +
           std::to_string(cells.size()));
    }
    Action action;
    action.stage = Stage(static_cast<std::int32_t>(field(cells[0], "stage", header.stages)));
    const auto kind = action_kind_from(cells[1]);
    if (!kind) fail("column kind: '" + std::string(cells[1]) + "' is none of F, B, U, SYNC");
    action.kind = *kind;
    action.microbatch = Microbatch(field(cells[2], "microbatch", INT64_MAX));
    action.replica =
        Replica(static_cast<std::int32_t>(field(cells[3], "replica", header.replicas)));
    action.batch = Batch(field(cells[4], "batch", INT64_MAX));
    if (!cells[5].empty())
      action.read_update = UpdateCount(field(cells[5], "read_update", INT64_MAX));
    return action;
  }

  /// Which is the lowest stage with a B, per microbatch.
  static void imply_backward_to(Schedule& schedule) {
    if (!schedule.header.one_block) return;
    std::map<Microbatch, Stage> lowest;
    for (const auto& row : schedule.rows) {
      for (const Action& action : row) {
        if (action.kind != ActionKind::backward) continue;
        const auto [at, is_new] = lowest.emplace(action.microbatch, action.stage);
        if (!is_new) at->second = std::min(at->second, action.stage);
      }
    }
    for (auto& row : schedule.rows) {
      for (Action& action : row) {
        const auto at = lowest.find(action.microbatch);
        if (at != lowest.end() && action.kind != ActionKind::sync) action.backward_to = at->second;
      }
    }
  }

  std::istream& in_;
  std::string name_;
  std::string line_;
  std::int64_t number_ = 0;
};

}  // namespace

std::string csv_header(const ScheduleHeader& header) {
  const auto number = [](auto v) { return std::to_string(v); };
  return std::string(magic) + "version=1 name=" + header.name + " stages=" + number(header.stages) +
         " microbatches=" + number(header.microbatches) + " updates=" + number(header.updates) +
         " replicas=" + number(header.replicas) +
         " placement=" + std::string(name_of(header.placement)) +
         " local_steps=" + number(header.local_steps) +
         " blocks=" + (header.one_block ? "one" : "all") +
         " delay_max=" + number(header.delay_max) +
         (header.in_flight_max > 0 ? " in_flight_max=" + number(header.in_flight_max) : "") +
         " seed=" + number(header.seed);
}

void append_csv(std::string& out, const Action& action) {
  append_number(out, static_cast<std::int64_t>(action.stage.value));
  out += ',';
  out += name_of(action.kind);
  out += ',';
  append_number(out, action.microbatch.value);
  out += ',';
  append_number(out, static_cast<std::int64_t>(action.replica.value));
  out += ',';
  append_number(out, action.batch.value);
  out += ',';
  if (action.read_update != Action::reads_newest) append_number(out, action.read_update.value);
  out += '\n';
}

void write_csv(std::ostream& out, const Schedule& schedule) {
  out << csv_header(schedule.header) << '\n';
  std::string line;
  for (const auto& row : schedule.rows) {
    for (const Action& action : row) {
      line.clear();
      append_csv(line, action);
      out << line;
    }
  }
}

Schedule read_csv(std::istream& in, const std::string& name) {
  return CsvReader(in, name).read();
}

ScheduleHeader read_csv_header(std::istream& in, const std::string& name) {
  return CsvReader(in, name).read_first_line();
}

}  // namespace pipewright
