// Plain forms of pool.proto: what a pool and the daemon say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/ids.hpp"
#include "proto/codec/api.hpp"

namespace pipewright {

inline constexpr std::uint32_t pool_protocol_version = 4;
inline constexpr std::size_t file_chunk_bytes_max = std::size_t{1} << 20;

struct RankInfo {
  std::uint32_t rank = 0;
  std::string host;
  std::int64_t pid = 0;
};

/// A run that is under way: a job, the run's number in it, and which attempt at it.
struct RunId {
  std::uint32_t job;
  std::uint32_t run;
  std::uint32_t attempt;
  friend auto operator<=>(const RunId&, const RunId&) = default;
};
struct PoolHello {
  std::string name;
  std::vector<RankInfo> ranks;
  std::string program_version, program_commit, cpu_type;
  std::uint32_t protocol = pool_protocol_version;
  std::string slurm_job = {};
  std::string instance = {};
  std::vector<RunId> runs = {};  // that it has kept
};
struct RunStarted {
  RunId run{};
  Maker maker = {};
};
struct RunPoints {
  RunId run{};
  std::uint64_t first_index = 0;
  std::vector<Point> points;
};
struct RunProgress {
  RunId run{};
  Progress progress;
};
struct RunLog {
  RunId run{};
  LogLine line;
};
struct RunFileChunk {
  RunId run{};
  std::string name;
  std::uint64_t offset_bytes = 0;
  std::string data;
  bool last = false;
};
struct CheckpointChunk {
  RunId run{};
  std::string name;
  std::uint64_t offset_bytes = 0;
  std::string data;
  bool last = false;
};
struct CheckpointSent {
  RunId run{};
  Tick tick;
};
struct CheckpointWanted {
  RunId run{};
  std::string name;
  std::uint64_t offset_bytes = 0;
};
enum class RunOutcome { succeeded = 1, failed = 2, cancelled = 3, lost = 4 };
struct RunEnded {
  RunId run{};
  RunOutcome outcome = RunOutcome::succeeded;
  std::string message;
  std::string summary_json;
};
struct LostRun {
  RunId run{};
  std::string message;
};
struct PoolGoodbye {
  std::string reason;
  std::vector<LostRun> lost = {};
};
using PoolFrame =
    std::variant<PoolHello, Heartbeat, RunStarted, RunPoints, RunProgress, RunLog, RunFileChunk,
                 RunEnded, PoolGoodbye, CheckpointChunk, CheckpointSent, CheckpointWanted>;

struct Welcome {
  std::uint32_t heartbeat_interval_ms = 0;
  std::uint32_t lease_ms = 0;
};
struct Refused {
  std::string reason;
};
struct StartRun {
  RunId run{};
  Value spec;
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> data_roots = {};  // what it reads lies in one of these; none: anywhere
  std::vector<std::string> checkpoint_files = {};  // of the one that it goes on from
  std::vector<Maker> makers = {};                  // of the attempts before
};
struct CancelRun {
  RunId run{};
};
struct PointsStored {
  RunId run{};
  std::uint64_t next_index = 0;
};
struct CheckpointStored {
  RunId run{};
  Tick tick;
};
struct CheckpointPiece {
  RunId run{};
  std::string name;
  std::uint64_t offset_bytes = 0;
  std::string data;
  bool last = false;
};
struct RunEndStored {
  RunId run{};
};
struct ShutDown {
  std::string reason;
};
using DaemonFrame = std::variant<Welcome, Refused, StartRun, CancelRun, PointsStored, RunEndStored,
                                 ShutDown, Heartbeat, CheckpointStored, CheckpointPiece>;

// Protobuf bytes; decoding throws ProtocolError for anything that is not a frame.
std::string encode_pool_frame(const PoolFrame& frame);
PoolFrame decode_pool_frame(std::string_view bytes);
std::string encode_daemon_frame(const DaemonFrame& frame);
DaemonFrame decode_daemon_frame(std::string_view bytes);

}  // namespace pipewright
