#include "proto/codec/pool.hpp"

#include "core/base/utf8.hpp"
#include "pipewright/v1/pool.pb.h"
#include "proto/codec/api_messages.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

namespace {

template <class Message>
Message& with_run(const RunId& run, Message* message) {
  message->set_job(run.job);
  message->set_run(run.run);
  message->set_attempt(run.attempt);
  return *message;
}

template <class Message>
RunId run_of(const Message& message) {
  return {message.job(), message.run(), message.attempt()};
}

template <class Plain, class Message>
void put_part(const Plain& plain, Message* message) {
  with_run(plain.run, message).set_name(clean_utf8(plain.name));
  message->set_offset_bytes(plain.offset_bytes);
  message->set_data(plain.data);
  message->set_last(plain.last);
}

/// Fills the one field of a PoolFrame that a plain frame goes to.
struct PutPoolFrame {
  v1::PoolFrame& frame;

  void operator()(const PoolHello& plain) const {
    v1::PoolHello& hello = *frame.mutable_hello();
    hello.set_name(clean_utf8(plain.name));
    for (const RankInfo& rank : plain.ranks) {
      v1::RankInfo& info = *hello.add_ranks();
      info.set_rank(rank.rank);
      info.set_host(clean_utf8(rank.host));
      info.set_pid(rank.pid);
    }
    hello.set_program_version(clean_utf8(plain.program_version));
    hello.set_program_commit(clean_utf8(plain.program_commit));
    hello.set_cpu_type(clean_utf8(plain.cpu_type));
    hello.set_protocol(plain.protocol);
    hello.set_slurm_job(clean_utf8(plain.slurm_job));
    hello.set_instance(clean_utf8(plain.instance));
    for (const RunId& run : plain.runs) with_run(run, hello.add_runs());
  }
  void operator()(const Heartbeat&) const { frame.mutable_heartbeat(); }
  void operator()(const RunStarted& plain) const {
    put(plain.maker, *with_run(plain.run, frame.mutable_started()).mutable_maker());
  }
  void operator()(const RunPoints& plain) const {
    v1::RunPoints& points = with_run(plain.run, frame.mutable_points());
    points.set_first_index(plain.first_index);
    points.mutable_points()->Reserve(static_cast<int>(plain.points.size()));
    for (const Point& point : plain.points) put(point, *points.add_points());
  }
  void operator()(const RunProgress& plain) const {
    put(plain.progress, *with_run(plain.run, frame.mutable_progress()).mutable_progress());
  }
  void operator()(const RunLog& plain) const {
    put(plain.line, *with_run(plain.run, frame.mutable_log()).mutable_line());
  }
  void operator()(const RunFileChunk& plain) const { put_part(plain, frame.mutable_file()); }
  void operator()(const CheckpointChunk& plain) const {
    put_part(plain, frame.mutable_checkpoint_chunk());
  }
  void operator()(const CheckpointSent& plain) const {
    with_run(plain.run, frame.mutable_checkpoint_sent())
        .set_tick(static_cast<std::uint64_t>(plain.tick.value));
  }
  void operator()(const CheckpointWanted& plain) const {
    v1::CheckpointWanted& wanted = with_run(plain.run, frame.mutable_checkpoint_wanted());
    wanted.set_name(clean_utf8(plain.name));
    wanted.set_offset_bytes(plain.offset_bytes);
  }
  void operator()(const RunEnded& plain) const {
    v1::RunEnded& ended = with_run(plain.run, frame.mutable_ended());
    ended.set_outcome(static_cast<v1::RunEnded::Outcome>(plain.outcome));
    ended.set_message(clean_utf8(plain.message));
    ended.set_summary_json(clean_utf8(plain.summary_json));
  }
  void operator()(const PoolGoodbye& plain) const {
    frame.mutable_goodbye()->set_reason(clean_utf8(plain.reason));
    for (const LostRun& lost : plain.lost) {
      with_run(lost.run, frame.mutable_goodbye()->add_lost()).set_message(clean_utf8(lost.message));
    }
  }
};

PoolGoodbye goodbye_from(const v1::PoolGoodbye& message) {
  PoolGoodbye plain{message.reason(), {}};
  for (const v1::LostRun& lost : message.lost()) {
    plain.lost.push_back({run_of(lost), lost.message()});
  }
  return plain;
}

PoolHello hello_from(const v1::PoolHello& message) {
  PoolHello plain;
  plain.name = message.name();
  for (const v1::RankInfo& rank : message.ranks()) {
    plain.ranks.push_back({rank.rank(), rank.host(), rank.pid()});
  }
  plain.program_version = message.program_version();
  plain.program_commit = message.program_commit();
  plain.cpu_type = message.cpu_type();
  plain.protocol = message.protocol();
  plain.slurm_job = message.slurm_job();
  plain.instance = message.instance();
  for (const v1::HeldRun& run : message.runs()) plain.runs.push_back(run_of(run));
  return plain;
}

RunPoints points_from(const v1::RunPoints& message) {
  RunPoints plain{run_of(message), message.first_index(), {}};
  plain.points.reserve(static_cast<std::size_t>(message.points_size()));
  for (const v1::Point& point : message.points()) plain.points.push_back(get(point));
  return plain;
}

/// A name that stays within the folder that it is put into.
const std::string& plain_name(const std::string& name, std::string_view message_name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    wire::refuse(message_name, "'" + name + "' is not the plain name of a file");
  }
  return name;
}

template <class Plain, class Message>
Plain part_from(const Message& message, std::string_view message_name) {
  plain_name(message.name(), message_name);
  if (message.data().size() > file_chunk_bytes_max) {
    wire::refuse(message_name, "it has " + std::to_string(message.data().size()) +
                                   " bytes; at most 1 MiB is allowed");
  }
  return {run_of(message), message.name(), message.offset_bytes(), message.data(), message.last()};
}

template <class Message>
Tick tick_of(const Message& message, std::string_view message_name) {
  return Tick(wire::count_from(message.tick(), message_name, "tick"));
}

RunEnded ended_from(const v1::RunEnded& message) {
  const int outcome = message.outcome();
  return {run_of(message),
          wire::enum_from<RunOutcome>(outcome, v1::RunEnded::Outcome_IsValid(outcome), "RunEnded",
                                      "outcome"),
          message.message(), message.summary_json()};
}

struct PutDaemonFrame {
  v1::DaemonFrame& frame;

  void operator()(const Welcome& plain) const {
    frame.mutable_welcome()->set_heartbeat_interval_ms(plain.heartbeat_interval_ms);
    frame.mutable_welcome()->set_lease_ms(plain.lease_ms);
  }
  void operator()(const Refused& plain) const {
    frame.mutable_refused()->set_reason(clean_utf8(plain.reason));
  }
  void operator()(const StartRun& plain) const {
    v1::StartRun& start = with_run(plain.run, frame.mutable_start());
    put(plain.spec, *start.mutable_spec());
    start.mutable_ranks()->Add(plain.ranks.begin(), plain.ranks.end());
    for (const std::string& root : plain.data_roots) start.add_data_roots(clean_utf8(root));
    for (const std::string& name : plain.checkpoint_files) start.add_checkpoint_files(name);
    for (const Maker& maker : plain.makers) put(maker, *start.add_makers());
  }
  void operator()(const CancelRun& plain) const { with_run(plain.run, frame.mutable_cancel()); }
  void operator()(const PointsStored& plain) const {
    with_run(plain.run, frame.mutable_points_stored()).set_next_index(plain.next_index);
  }
  void operator()(const CheckpointStored& plain) const {
    with_run(plain.run, frame.mutable_checkpoint_stored())
        .set_tick(static_cast<std::uint64_t>(plain.tick.value));
  }
  void operator()(const CheckpointPiece& plain) const {
    put_part(plain, frame.mutable_checkpoint_piece());
  }
  void operator()(const RunEndStored& plain) const {
    with_run(plain.run, frame.mutable_end_stored());
  }
  void operator()(const ShutDown& plain) const {
    frame.mutable_shut_down()->set_reason(clean_utf8(plain.reason));
  }
  void operator()(const Heartbeat&) const { frame.mutable_heartbeat(); }
};

StartRun start_from(const v1::StartRun& message) {
  if (!message.has_spec()) wire::refuse("StartRun", "spec is missing");
  StartRun plain{.run = run_of(message),
                 .spec = get(message.spec()),
                 .ranks = {message.ranks().begin(), message.ranks().end()},
                 .data_roots = {message.data_roots().begin(), message.data_roots().end()}};
  for (const std::string& name : message.checkpoint_files()) {
    plain.checkpoint_files.push_back(plain_name(name, "StartRun"));
  }
  for (const v1::Maker& maker : message.makers()) plain.makers.push_back(get(maker));
  return plain;
}

}  // namespace

std::string encode_pool_frame(const PoolFrame& frame) {
  v1::PoolFrame message;
  std::visit(PutPoolFrame{message}, frame);
  return wire::serialize(message, WireFormat::protobuf);
}

PoolFrame decode_pool_frame(std::string_view bytes) {
  v1::PoolFrame message;
  wire::parse(bytes, WireFormat::protobuf, message);
  switch (message.what_case()) {
    case v1::PoolFrame::kHello:
      return hello_from(message.hello());
    case v1::PoolFrame::kHeartbeat:
      return Heartbeat{};
    case v1::PoolFrame::kStarted:
      return RunStarted{run_of(message.started()), get(message.started().maker())};
    case v1::PoolFrame::kPoints:
      return points_from(message.points());
    case v1::PoolFrame::kProgress:
      return RunProgress{run_of(message.progress()), get(message.progress().progress())};
    case v1::PoolFrame::kLog:
      return RunLog{run_of(message.log()), get(message.log().line())};
    case v1::PoolFrame::kFile:
      return part_from<RunFileChunk>(message.file(), "RunFileChunk");
    case v1::PoolFrame::kCheckpointChunk:
      return part_from<CheckpointChunk>(message.checkpoint_chunk(), "CheckpointChunk");
    case v1::PoolFrame::kCheckpointSent:
      return CheckpointSent{run_of(message.checkpoint_sent()),
                            tick_of(message.checkpoint_sent(), "CheckpointSent")};
    case v1::PoolFrame::kCheckpointWanted:
      return CheckpointWanted{run_of(message.checkpoint_wanted()),
                              plain_name(message.checkpoint_wanted().name(), "CheckpointWanted"),
                              message.checkpoint_wanted().offset_bytes()};
    case v1::PoolFrame::kEnded:
      return ended_from(message.ended());
    case v1::PoolFrame::kGoodbye:
      return goodbye_from(message.goodbye());
    default:
      wire::refuse("PoolFrame", "it holds none of the frames that are known");
  }
}

std::string encode_daemon_frame(const DaemonFrame& frame) {
  v1::DaemonFrame message;
  std::visit(PutDaemonFrame{message}, frame);
  return wire::serialize(message, WireFormat::protobuf);
}

DaemonFrame decode_daemon_frame(std::string_view bytes) {
  v1::DaemonFrame message;
  wire::parse(bytes, WireFormat::protobuf, message);
  switch (message.what_case()) {
    case v1::DaemonFrame::kWelcome:
      return Welcome{message.welcome().heartbeat_interval_ms(), message.welcome().lease_ms()};
    case v1::DaemonFrame::kRefused:
      return Refused{message.refused().reason()};
    case v1::DaemonFrame::kStart:
      return start_from(message.start());
    case v1::DaemonFrame::kCancel:
      return CancelRun{run_of(message.cancel())};
    case v1::DaemonFrame::kPointsStored:
      return PointsStored{run_of(message.points_stored()), message.points_stored().next_index()};
    case v1::DaemonFrame::kCheckpointStored:
      return CheckpointStored{run_of(message.checkpoint_stored()),
                              tick_of(message.checkpoint_stored(), "CheckpointStored")};
    case v1::DaemonFrame::kCheckpointPiece:
      return part_from<CheckpointPiece>(message.checkpoint_piece(), "CheckpointPiece");
    case v1::DaemonFrame::kEndStored:
      return RunEndStored{run_of(message.end_stored())};
    case v1::DaemonFrame::kShutDown:
      return ShutDown{message.shut_down().reason()};
    case v1::DaemonFrame::kHeartbeat:
      return Heartbeat{};
    default:
      wire::refuse("DaemonFrame", "it holds none of the frames that are known");
  }
}

}  // namespace pipewright
