// What the service tests share: a daemon in this process, a pool made of test code, small jobs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/daemon.hpp"
#include "proto/codec/pool.hpp"
#include "tests/service/client.hpp"

namespace pipewright::test {

/// A folder that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
std::uint16_t port_of(const std::string& url);

/// Files in PEM, made once: a CA, and a certificate of it for 127.0.0.1 and localhost.
struct TestCertificates {
  std::filesystem::path ca, certificate, key;
};
const TestCertificates& test_certificates();
/// Makes a certificate of the CA for the names ("DNS:a,IP:1.2.3.4"), valid for so many days.
void make_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key,
                      const std::string& names, int days = 2);

/// A daemon on any port, in a thread of this process. With PIPEWRIGHT_TEST_TLS in the environment
/// it speaks TLS, as do the sockets of this test then.
class RunningDaemon {
 public:
  explicit RunningDaemon(DaemonOptions options);
  ~RunningDaemon();
  /// Ends it in order and waits for that.
  void stop();
  std::uint16_t port() const { return port_; }
  Client client() const { return {port_, token_}; }
  const std::string& token() const { return token_; }

 private:
  std::unique_ptr<Daemon> daemon_;
  std::uint16_t port_ = 0;
  std::string token_;
  std::thread thread_;
};

/// A job of `stages` stages (so as many ranks).
Value small_job(int stages = 1, const std::string& name = "small");
/// Its id.
std::uint32_t submit(const Client& client, const Value& job = small_job());
Job show(const Client& client, std::uint32_t id);
/// Asks until the job is in the state.
Job wait_for(const Client& client, std::uint32_t id, JobState state);
EventList events(const Client& client, std::uint32_t id, const std::string& parameters = "");
std::vector<Point> points_of(const EventList& list);

/// The points of a run from `first` on, always the same.
std::vector<Point> some_points(std::size_t first, std::size_t count);

/// A pool that runs nothing but says what a pool says.
class FakePool {
 public:
  FakePool(const Client& client, const std::string& name = "fake", std::uint32_t ranks = 4);
  /// One that keeps its runs when its connection is cut; it has these.
  FakePool(const Client& client, const std::string& name, const std::string& instance,
           std::vector<RunId> runs, std::uint32_t ranks = 1);

  /// The next frame that is not a heartbeat; nothing once the daemon has closed.
  std::optional<DaemonFrame> receive();
  /// The next frame, which must be a T.
  template <class T>
  T expect() {
    const std::optional<DaemonFrame> frame = receive();
    if (!frame || !std::holds_alternative<T>(*frame)) {
      throw std::runtime_error(std::string("expected ") + typeid(T).name() + ", got " +
                               (frame ? "variant " + std::to_string(frame->index()) : "an end"));
    }
    return std::get<T>(*frame);
  }
  void send(const PoolFrame& frame) { socket_.send(encode_pool_frame(frame)); }
  void send_raw(std::string_view bytes) { socket_.send(bytes); }
  void send_points(RunId run, std::size_t first, std::size_t count) {
    send(RunPoints{run, first, some_points(first, count)});
  }
  void send_file(RunId run, const std::string& name, const std::string& text);
  void end(RunId run, RunOutcome outcome = RunOutcome::succeeded, const std::string& message = {});
  /// All of a small run, with so many points.
  void run(const StartRun& start, std::size_t points);
  void close() { socket_.close(); }
  const std::optional<Refused>& refused() const { return refused_; }

 private:
  void hello(const PoolHello& hello);

  WebSocketClient socket_;
  std::optional<Refused> refused_;
};

/// The frames of a stream.
class Watcher {
 public:
  Watcher(const Client& client, std::uint32_t job, const std::string& parameters = "",
          int receive_buffer_bytes = 0);
  std::optional<StreamFrame> receive();
  /// The next T, collecting the events before it; nothing when the stream ends first.
  template <class T>
  std::optional<T> until() {
    while (std::optional<StreamFrame> frame = receive()) {
      if (auto* wanted = std::get_if<T>(&*frame)) return std::move(*wanted);
    }
    return std::nullopt;
  }
  /// Reads until so many events have come in all.
  bool until_events(std::size_t count);
  const std::vector<Event>& events() const { return events_; }
  void close() { socket_.close(); }

 private:
  WireFormat format_;
  WebSocketClient socket_;
  std::vector<Event> events_;
};

/// Their numbers are first, first + 1, ...
void expect_numbered(const std::vector<Event>& events, std::uint64_t first);

}  // namespace pipewright::test
