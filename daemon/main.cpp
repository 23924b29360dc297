// pipewrightd: options, logging, exit status.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "core/base/error.hpp"
#include "daemon/daemon.hpp"
#include "proto/codec/provenance.hpp"

namespace {

constexpr int exit_usage = 2;

void start_logging(const std::string& level) {
  const auto logger = spdlog::stderr_logger_st("pipewrightd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(logger);
}

}  // namespace

int main(int argc, char** argv) {
  pipewright::DaemonOptions options;
  std::string data_dir;
  std::string level = "info";
  CLI::App app{
      "Takes Pipewright jobs, runs them on pools of MPI ranks and shows their curves live."};
  app.name("pipewrightd");
  app.add_option("--data-dir", data_dir,
                 "Folder for jobs, their files, the token and daemon.json; made if need be")
      ->required();
  app.add_option("--port", options.port, "Port to listen on; 0: any that is free (see daemon.json)")
      ->capture_default_str();
  app.add_option("--listen", options.listen, "IP address to listen on")->capture_default_str();
  app.add_option("--ranks", options.local_ranks,
                 "Ranks of the pool that is started on this machine; 0: none, pools attach by "
                 "themselves")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--silence-max", options.local_silence_max_s,
                 "Seconds without a word of one of these ranks after which it is taken for lost; "
                 "longer than any action takes")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str()
      ->type_name("SECONDS");
  std::int64_t keep_days = 0;
  app.add_option("--keep-days", keep_days,
                 "Delete jobs that ended so many days ago; 0: none for their age")
      ->check(CLI::Range(0, 36'500))
      ->capture_default_str();
  std::int64_t keep_megabytes = 0;
  app.add_option("--keep-megabytes", keep_megabytes,
                 "While the data folder holds more, delete the jobs that ended first; 0: no limit")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--log-level", level, "What is written to standard error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.set_version_flag("--version", std::string(pipewright::program_version()));
  app.footer(
      "Example:\n  pipewrightd --data-dir ~/pipewright --port 7070 --ranks 4\n"
      "SIGTERM ends it in order; jobs that run are started again by the next one.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  start_logging(level);
  options.data_dir = data_dir;
  auto& retention = options.service.retention;
  if (keep_days > 0) retention.age_max = std::chrono::hours(24 * keep_days);
  if (keep_megabytes > 0) retention.bytes_max = keep_megabytes * 1'000'000;
  try {
    pipewright::Daemon daemon(options);
    daemon.run();
    return 0;
  } catch (const pipewright::Error& error) {
    std::cerr << "pipewrightd: " << error.what() << "\n";
    return exit_usage;
  } catch (const std::exception& error) {
    std::cerr << "pipewrightd: failed: " << error.what() << "\n";
    return 1;
  }
}
