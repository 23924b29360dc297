#include "proto/codec/job_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/limits.hpp"
#include "proto/codec/yaml_tree.hpp"

namespace pipewright {

namespace {

std::string read_all(std::istream& stream, const std::string& file) {
  std::string text(job_file_bytes_max + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw ConfigError(file + ": cannot be read: " + std::strerror(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

JobFile JobFile::parse(std::string_view text, const std::string& file) {
  if (text.size() > job_file_bytes_max) {
    throw ConfigError(file + ": is larger than a job file may be (8 MiB)");
  }
  YamlTree yaml = parse_yaml(text, file);
  if (!yaml.value.is_map()) {
    throw ConfigError(yaml.root_place + "a job file is a map of keys and values, this is " +
                      std::string(yaml.value.type_name()));
  }
  JobFile result;
  result.tree_ = std::move(yaml.value);
  result.places_ = std::move(yaml.places);
  result.file_ = file;
  return result;
}

JobFile JobFile::read(const std::string& path) {
  if (path == "-") return parse(read_all(std::cin, "standard input"), "standard input");
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) {
    throw ConfigError(path + ": cannot be opened: it is a folder, not a job file");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw ConfigError(path + ": cannot be opened: " + std::strerror(errno));
  JobFile file = parse(read_all(stream, path), path);
  file.folder_ = std::filesystem::absolute(path).parent_path().string();
  return file;
}

void JobFile::set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key(trim(assignment.substr(0, equals)));
  const auto parts = split(key, '.');
  const bool has_empty_part = std::find(parts.begin(), parts.end(), "") != parts.end();
  if (equals == std::string_view::npos || has_empty_part) {
    throw ConfigError("--set " + std::string(assignment) +
                      ": expected key=value, as in --set optimizer.sgd.learning_rate=0.1");
  }
  const std::string place = "--set " + key;
  YamlTree yaml = parse_yaml(assignment.substr(equals + 1), place, YamlPlaces::source_only);
  try {
    if (key.starts_with("sweep.")) {  // its keys are paths themselves
      Value* sweep = tree_.find("sweep");
      if (sweep == nullptr) sweep = &tree_.set("sweep", Value::map());
      if (sweep->is_list()) throw ParamError(key, "the job's sweep is a list of points, not a map");
      sweep->set(key.substr(6), std::move(yaml.value));
    } else {
      set_path(tree_, key, std::move(yaml.value));
    }
  } catch (const ParamError& error) {
    throw ConfigError(place + ": " + error.message());
  }
  // What stood below the key in the file is gone.
  for (auto at = places_.lower_bound(key); at != places_.end() && at->first.starts_with(key);) {
    const std::string_view rest = std::string_view(at->first).substr(key.size());
    const bool below = rest.empty() || rest.front() == '.' || rest.front() == '[';
    at = below ? places_.erase(at) : std::next(at);
  }
  places_[key] = place + ": ";
}

std::string JobFile::where(std::string_view path) const {
  while (true) {
    if (const auto at = places_.find(path); at != places_.end()) return at->second;
    const std::size_t cut = path.find_last_of(".[");
    if (cut == std::string_view::npos) return file_ + ": ";
    path = path.substr(0, cut);
  }
}

Value JobFile::checked() const {
  const std::filesystem::path folder =
      folder_.empty() ? std::filesystem::current_path() : std::filesystem::path(folder_);
  // Before the check, because a schedule may come from a file.
  Value tree = tree_;
  const auto make_absolute = [&](const ParamSpec&, Value& path) {
    if (path.is_text() && !path.as_text().empty()) {
      path = (folder / path.as_text()).lexically_normal().string();
    }
  };
  visit_params(job_schema(), tree, ParamType::path, make_absolute);
  visit_swept(tree, ParamType::path, make_absolute);
  try {
    return check_job(tree);
  } catch (const ParamError& error) {
    const std::string place = where(error.path());
    const bool says_path = place == "--set " + error.path() + ": ";
    throw ConfigError(place + (says_path ? error.message() : error.what()));
  }
}

}  // namespace pipewright
