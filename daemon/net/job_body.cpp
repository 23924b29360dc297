#include "daemon/net/job_body.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/train/job.hpp"
#include "core/train/sweep.hpp"
#include "daemon/net/http_fault.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright {
namespace {

/// Which files it reads is looked at before any is read.
Value checked_tree(const Value& tree, const DataRoots& roots) {
  roots.check(tree);
  return check_job(tree);
}

Value checked_yaml(std::string_view body, const DataRoots& roots) {
  const JobFile file = JobFile::parse(body, "job file");
  try {
    return checked_tree(file.tree(), roots);
  } catch (const ParamError& error) {
    throw ParamError(error.path(),
                     error.message() + " (" + std::string(trim(file.where(error.path()))) + ")");
  }
}

/// The daemon does not know the folder of whoever wrote the job.
void refuse_relative_paths(Value& checked) {
  const auto refuse = [](const ParamSpec& spec, const Value& value) {
    if (!value.is_text() || value.as_text().starts_with('/')) return;
    throw ParamError("", spec.name + ": '" + value.as_text() +
                             "' is a relative path; give it from the root on ('/...'), as the "
                             "ranks will open it");
  };
  visit_params(job_schema(), checked, ParamType::path, refuse);
  visit_swept(checked, ParamType::path, refuse);
}

}  // namespace

std::string media_type(std::string_view content_type) {
  std::string type(trim(content_type.substr(0, content_type.find(';'))));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return type;
}

Value job_from_body(std::string_view content_type, std::string_view body, const DataRoots& roots) {
  const std::string type = media_type(content_type);
  Value checked;
  if (type == "application/x-protobuf") {
    checked = checked_tree(decode<JobSpecBody>(body, WireFormat::protobuf).spec, roots);
  } else if (type == "application/json") {
    checked = checked_tree(decode<JobSpecBody>(body, WireFormat::json).spec, roots);
  } else if (type == "application/yaml") {
    checked = checked_yaml(body, roots);
  } else {
    throw HttpFault(415, "Content-Type is '" + type +
                             "'; a job is application/x-protobuf, application/json or "
                             "application/yaml");
  }
  refuse_relative_paths(checked);
  return checked;
}

}  // namespace pipewright
