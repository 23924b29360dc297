// Plain forms of control.proto: what the coordinator and the ranks of a pool say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/value.hpp"
#include "core/objectives/objective.hpp"
#include "core/train/program.hpp"
#include "proto/codec/pool.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

/// `run` is the number under which the pool knows a run.
struct RankStart {
  std::uint32_t run = 0;
  Value spec;
  std::vector<std::uint32_t> ranks;
  std::uint32_t communicator_tag = 0;
  std::vector<std::string> data_roots = {};
};
struct RankReady {
  std::uint32_t run = 0;
  std::uint32_t rank = 0;
  ObjectiveShape shape;
  std::vector<HashedFile> data;
  std::int64_t clock_error_ns = 0;
  Maker maker = {};
};
struct WindowMessage {
  std::uint32_t run = 0;
  Window window;
};
struct ReportMessage {
  std::uint32_t run = 0;
  RowReport report;
};
struct FinalMessage {
  std::uint32_t run = 0;
  RowFinal final;
};
/// Times are nanoseconds of the steady clock of whoever says them.
struct ClockQuestion {
  std::uint32_t run = 0;
  std::uint32_t rank = 0;
  std::int64_t asked_ns = 0;
};
struct ClockAnswer {
  std::uint32_t run = 0;
  std::int64_t asked_ns = 0;
  std::int64_t received_ns = 0;
  std::int64_t answered_ns = 0;
  std::string clock;
};
struct ClockStart {
  std::uint32_t run = 0;
  std::int64_t start_ns = 0;
};
/// Parts of a row's state (core/train/row_runner.hpp), file_chunk_bytes_max long at most.
struct StateChunk {
  std::uint32_t run = 0;
  Row row;
  Tick tick;
  std::string data;
  bool last = false;
};
struct StateTaken {
  std::uint32_t run = 0;
};
struct RestoreChunk {
  std::uint32_t run = 0;
  Row row;
  std::string data;
  bool last = false;
};
struct RankFault {
  std::uint32_t run = 0;
  std::uint32_t rank = 0;
  std::string message;
};
struct RankStop {
  std::uint32_t run = 0;
};
struct RankIdle {
  std::uint32_t run = 0;
  std::uint32_t rank = 0;
};
struct RankShutDown {};
struct LeaveAsked {
  std::uint32_t rank = 0;
};
struct RankAlive {
  std::uint32_t rank = 0;
};
struct RankHello {
  RankInfo info;
};
using ControlMessage =
    std::variant<RankStart, RankReady, WindowMessage, ReportMessage, FinalMessage, RankFault,
                 RankStop, RankIdle, RankShutDown, RankHello, ClockQuestion, ClockAnswer,
                 ClockStart, LeaveAsked, RankAlive, StateChunk, StateTaken, RestoreChunk>;

std::string encode_control(const ControlMessage& message);
/// Throws ProtocolError.
ControlMessage decode_control(std::string_view bytes);

}  // namespace pipewright
