// Files that a schedule is read from.
#pragma once

#include <istream>
#include <memory>
#include <string>

namespace pipewright {

/// A regular file: whoever takes a job looks into it, and opening a pipe waits for its writer.
/// Throws DataError.
std::unique_ptr<std::istream> open_schedule_file(const std::string& path);

}  // namespace pipewright
