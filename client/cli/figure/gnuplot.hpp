// Runs gnuplot, the program that draws our figures.
#pragma once

#include <filesystem>
#include <string>

namespace pipewright::cli {

/// Writes to `out` what the script prints, all of it or nothing. gnuplot is started by itself,
/// never through a shell, with the script on its standard input and without the user's own
/// settings. Throws Error when it is not installed (with the package's name) or fails (with what it
/// said), and ConfigError when `out` cannot be written.
void run_gnuplot(const std::string& script, const std::filesystem::path& out);

}  // namespace pipewright::cli
