// pipewrightd: options, logging, exit status.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <map>

#include "core/base/error.hpp"
#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "proto/codec/provenance.hpp"

namespace {

constexpr int exit_usage = 2;

const std::map<std::string, pipewright::LogLevel> levels{{"debug", pipewright::LogLevel::debug},
                                                         {"info", pipewright::LogLevel::info},
                                                         {"warning", pipewright::LogLevel::warning},
                                                         {"error", pipewright::LogLevel::error}};

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
  auto* certificate =
      app.add_option("--tls-certificate", options.tls.certificate,
                     "Speak HTTPS with this certificate (PEM, with those between it and its CA "
                     "behind it); read again at SIGHUP")
          ->type_name("FILE");
  auto* key = app.add_option("--tls-key", options.tls.key, "Its key (PEM)")->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--tls-ca", options.tls_ca,
                 "What the local pool, and clients that use --data-dir, trust (PEM); default: the "
                 "system's CAs")
      ->type_name("FILE")
      ->needs(certificate);
  app.add_option(
         "--announce", options.announce,
         "Host in the URL of daemon.json, by which local clients and the local pool come: a "
         "name that the certificate is for; default: the address, or loopback for all")
      ->type_name("HOST");
  app.add_flag("--allow-plain-http-beyond-loopback", options.plain_beyond_loopback,
               "Without TLS listen on other addresses than loopback too, though others in that "
               "network can then read tokens and jobs on their way");
  app.add_option(
         "--data-root", options.data_roots,
         "Folder that jobs may read files from; may be given several times. Without it a "
         "daemon on loopback whose only token is its owner's reads whatever he can, any other "
         "no files at all")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
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
  double lease_s = std::chrono::duration<double>(options.service.queue.lease).count();
  app.add_option("--lease", lease_s,
                 "Seconds that a pool and the daemon wait for each other when their connection is "
                 "lost, or the daemon was killed, before runs are started again; 0: not at all")
      ->check(CLI::Range(0.0, 86'400.0))
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
  std::string format = "text";
  app.add_option(
         "--log-format", format,
         "Lines for people, or one JSON object per line with time, level, message and fields")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_flag("--log-access", options.net.log_access,
               "Write every request, with user, peer and status, at level info rather than debug");
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
  ::umask(077);  // the store, jobs' files and logs are for readers with a token alone
  pipewright::start_logging(levels.at(level), format == "json" ? pipewright::LogFormat::json
                                                               : pipewright::LogFormat::text);
  options.data_dir = data_dir;
  options.service.queue.lease =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * lease_s));
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
