#include "proto/codec/yaml_tree.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <unordered_set>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "proto/codec/limits.hpp"
#include "proto/codec/yaml_scalar.hpp"

namespace pipewright {

namespace {

constexpr std::size_t places_max = 10'000;  // beyond them the nearest key above is named

class Source {
 public:
  Source(std::string name, YamlPlaces places) : name_(std::move(name)), places_(places) {}

  std::string column(const YAML::Mark& mark) const { return at(mark.line, mark.column); }
  std::string at(int line, int column) const {
    if (places_ == YamlPlaces::source_only || line < 0) return name_ + ": ";
    return name_ + ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": ";
  }
  std::string line(const YAML::Mark& mark) const {
    if (places_ == YamlPlaces::source_only) return name_ + ": ";
    return name_ + ":" + std::to_string(mark.line + 1) + ": ";
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) const {
    throw ConfigError(column(mark) + why);
  }

 private:
  std::string name_;
  YamlPlaces places_;
};

/// What a value costs when an alias repeats it.
struct Size {
  std::size_t values = 0;
  std::size_t text_bytes = 0;
  int depth = 0;
};

Size size_of_value(const Value& value) {
  Size size{1, 0, 0};
  const auto add = [&](const Value& child) {
    const Size inner = size_of_value(child);
    size.values += inner.values;
    size.text_bytes += inner.text_bytes;
    size.depth = std::max(size.depth, inner.depth + 1);
  };
  if (value.is_text()) size.text_bytes = value.as_text().size();
  if (value.is_list()) {
    for (const Value& child : value.as_list()) add(child);
  } else if (value.is_map()) {
    for (const auto& [key, child] : value.as_map()) {
      size.text_bytes += key.size();
      add(child);
    }
  }
  return size;
}

/// Builds the tree from the parser's events, so that no more is ever held than the bounds allow.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, YamlTree& tree) : source_(source), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) source_.refuse(mark, "a second document; a job file has one");
    tree_.root_place = source_.column(mark);
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) source_.refuse(mark, "a key must be text");
    add(mark, anchor, Value());
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) source_.refuse(mark, "a key must be text, not an alias");
    const auto named = anchors_.find(anchor);
    if (named == anchors_.end()) source_.refuse(mark, "an alias inside of what it names");
    const Size size = size_of_value(named->second);
    check_depth(mark, static_cast<int>(frames_.size()) + size.depth);
    charge(mark, size.values, size.text_bytes);
    place(named->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (expects_key()) return take_key(mark, tag, text);
    const YamlScalar scalar = yaml_scalar(tag, text);
    if (!scalar.fault.empty()) source_.refuse(mark, scalar.fault);
    charge(mark, 0, text.size());
    add(mark, anchor, scalar.value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, "tag:yaml.org,2002:seq", anchor, Value::list());
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, "tag:yaml.org,2002:map", anchor, Value::map());
  }
  void OnMapEnd() override { end(); }

 private:
  /// A list or map that has begun and not ended.
  struct Frame {
    Value value;
    YAML::anchor_t anchor = 0;
    std::string path;
    std::optional<std::string> key;  // whose value comes next
    std::unordered_set<std::string> keys;
  };

  bool expects_key() const {
    return !frames_.empty() && frames_.back().value.is_map() && !frames_.back().key;
  }

  void take_key(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (text == "<<" && tag == "?") source_.refuse(mark, "merge keys (<<) are not supported");
    if (text.empty()) source_.refuse(mark, "an empty key");
    if (text.size() > job_key_bytes_max) {
      source_.refuse(mark, "a key of " + std::to_string(text.size()) + " bytes; at most " +
                               std::to_string(job_key_bytes_max) + " are allowed");
    }
    Frame& frame = frames_.back();
    if (!frame.keys.insert(text).second) {
      source_.refuse(mark, "the key '" + text + "' is given a second time");
    }
    frame.key = text;
    remember_place(mark, next_path());
  }

  /// The dotted path of the value that comes next.
  std::string next_path() const {
    if (frames_.empty()) return "";
    const Frame& frame = frames_.back();
    if (frame.value.is_list()) {
      return frame.path + "[" + std::to_string(frame.value.as_list().size()) + "]";
    }
    return frame.path.empty() ? *frame.key : frame.path + "." + *frame.key;
  }

  void remember_place(const YAML::Mark& mark, const std::string& path) {
    if (tree_.places.size() < places_max) tree_.places.emplace(path, source_.line(mark));
  }

  void begin(const YAML::Mark& mark, const std::string& tag, std::string_view core_tag,
             YAML::anchor_t anchor, Value empty) {
    if (expects_key()) source_.refuse(mark, "a key must be text");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != core_tag) {
      source_.refuse(mark, "the tag " + tag + " is not supported");
    }
    check_depth(mark, static_cast<int>(frames_.size()) + 1);
    charge(mark, 1, 0);
    std::string path = next_path();
    if (!frames_.empty() && frames_.back().value.is_list()) remember_place(mark, path);
    frames_.push_back({std::move(empty), anchor, std::move(path), {}, {}});
  }

  void end() {
    Frame done = std::move(frames_.back());
    frames_.pop_back();
    if (done.anchor != 0) anchors_[done.anchor] = done.value;
    place(std::move(done.value));
  }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, Value value) {
    charge(mark, 1, 0);
    if (!frames_.empty() && frames_.back().value.is_list()) remember_place(mark, next_path());
    if (anchor != 0) anchors_[anchor] = value;
    place(std::move(value));
  }

  void place(Value value) {
    if (frames_.empty()) {
      tree_.value = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_list()) {
      frame.value.as_list().push_back(std::move(value));
    } else {
      frame.value.as_map().emplace_back(std::move(*frame.key), std::move(value));
      frame.key.reset();
    }
  }

  void check_depth(const YAML::Mark& mark, int depth) const {
    if (depth <= value_depth_max) return;
    source_.refuse(mark,
                   "maps and lists may be nested " + std::to_string(value_depth_max) + " deep");
  }

  void charge(const YAML::Mark& mark, std::size_t values, std::size_t text_bytes) {
    values_ += values;
    text_bytes_ += text_bytes;
    if (values_ > job_values_max || text_bytes_ > job_text_bytes_max) {
      source_.refuse(mark, "too much: a job may hold " + std::to_string(job_values_max) +
                               " values and 16 MiB of text, aliases expanded");
    }
  }

  const Source& source_;
  YamlTree& tree_;
  int documents_ = 0;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::size_t values_ = 0;
  std::size_t text_bytes_ = 0;
};

/// Refuses what yaml-cpp would read in its own way: other encodings, control characters (one of
/// which it takes for the end) and tabs as indentation, except in JSON, where they are usual.
void check_characters(std::string_view text, const Source& source) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  const std::size_t bad = find_invalid_utf8(text);
  int line = 0;
  int column = 0;
  bool indenting = true;
  for (std::size_t i = 0; i < text.size(); ++i, ++column) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == bad) throw ConfigError(source.at(line, column) + "the text is not UTF-8");
    if (byte == '\n') {
      ++line;
      column = -1;
      indenting = true;
      continue;
    }
    if (byte == '\t' && indenting && !json) {
      throw ConfigError(source.at(line, column) + "a tab; YAML is indented with spaces");
    }
    if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
      throw ConfigError(source.at(line, column) + "a control character (byte " +
                        std::to_string(byte) + ")");
    }
    indenting = indenting && (byte == ' ' || byte == '\t');
  }
}

}  // namespace

YamlTree parse_yaml(std::string_view text, const std::string& source_name, YamlPlaces places) {
  const Source source(source_name, places);
  check_characters(text, source);
  YamlTree tree;
  tree.root_place = source.at(0, 0);
  TreeBuilder builder(source, tree);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw ConfigError(source.column(error.mark) + "not YAML: " + error.msg);
  }
  return tree;
}

}  // namespace pipewright
