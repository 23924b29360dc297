#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/control.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {
namespace {

constexpr WireFormat both_formats[] = {WireFormat::protobuf, WireFormat::json};

Value a_spec() {
  Value logistic = Value::map();
  logistic.set("data", Value(Value::Map{{"libsvm", "/data/a9a.libsvm"}}));
  logistic.set("l2", 1e-4);
  logistic.set("shuffle", true);
  Value spec = Value::map();
  spec.set("name", "pipedream on a9a, \xe2\x86\x92");
  spec.set("objective", Value(Value::Map{{"logistic", logistic}}));
  spec.set("init", Value(Value::Map{{"npy", Value(Value::List{"a.npy", "b.npy"})}}));
  spec.set("schedule", Value(Value::Map{{"pipedream", Value(Value::Map{{"stages", 8}})}}));
  spec.set("optimizer", Value(Value::Map{{"sgd", Value(Value::Map{{"learning_rate", 0.1}})}}));
  spec.set("cost", Value(Value::Map{{"backward", "250us"}, {"forward", Value()}}));
  spec.set("link", Value::map());
  spec.set("clock", "virtual");
  spec.set("observe", Value::map());
  spec.set("seed", std::int64_t{9007199254740993});
  spec.set("ranks", 4);
  spec.set("sweep", Value(Value::Map{{"optimizer.sgd.learning_rate", Value(Value::List{1, 0.5})}}));
  return spec;
}

Job a_job() {
  Job job;
  job.id = 7;
  job.spec = a_spec();
  job.state = JobState::running;
  job.message = "m";
  job.attempt = 2;
  job.submitted_unix_ms = 1'700'000'000'000;
  job.progress = {1, 2, 3, 4, 5, 6, {8, 3, 2, 1, 1}};
  job.objective_last = std::numeric_limits<double>::quiet_NaN();
  job.last_sequence = 99;
  job.pool = "local";
  job.ranks = {0, 2, 3};
  job.summary_json = "{}";
  job.user = "alice";
  job.makers = {{"0.1.0", "abc", "b1", "Intel"}, {"0.1.0", "abc", "b1", "AMD"}};
  job.checkpoint = {20, 800, 1'700'000'000'005};
  return job;
}

template <class T>
T there_and_back(const T& message, WireFormat format) {
  return decode<T>(encode(message, format), format);
}

template <class Function>
std::string fault_of(Function&& function) {
  try {
    function();
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "";
}

TEST(JobSpecCodec, TreesComeBackInBothFormats) {
  for (const WireFormat format : both_formats) {
    EXPECT_EQ(there_and_back(JobSpecBody{a_spec()}, format).spec, a_spec());
  }
}

TEST(JobSpecCodec, TheSameTreeGivesTheSameBytesWhateverTheOrderOfItsKeys) {
  Value forward = a_spec();
  Value backward = Value::map();
  Value::Map reversed = forward.as_map();
  for (auto at = reversed.rbegin(); at != reversed.rend(); ++at)
    backward.set(at->first, at->second);
  for (const WireFormat format : both_formats) {
    EXPECT_EQ(encode(JobSpecBody{forward}, format), encode(JobSpecBody{backward}, format));
  }
}

TEST(JobSpecCodec, ValuesThatDoNotFitTheirFieldTravelToTheCheckUnchanged) {
  Value spec = Value::map();
  spec.set("name", 3);
  spec.set("objective", Value(Value::Map{{"logistic", 1}, {"quadratic", 2}}));
  spec.set("cost", Value(Value::List{1}));
  spec.set("seed", -1);
  spec.set("ranks", "many");
  for (const WireFormat format : both_formats) {
    const Value back = there_and_back(JobSpecBody{spec}, format).spec;
    EXPECT_EQ(back.as_map().size(), spec.as_map().size());
    for (const auto& [key, value] : spec.as_map()) EXPECT_EQ(back.at(key), value) << key;
  }
}

TEST(JobSpecCodec, ABareKindIsAKindWithoutParameters) {
  Value spec = Value::map();
  spec.set("optimizer", "sgd");
  const Value back = there_and_back(JobSpecBody{spec}, WireFormat::protobuf).spec;
  EXPECT_EQ(back.at("optimizer"), Value(Value::Map{{"sgd", Value::map()}}));
}

TEST(JobSpecCodec, WholeNumbersThatADoubleCannotHoldAreRefused) {
  Value spec = Value::map();
  spec.set("other", std::int64_t{9007199254740992});
  EXPECT_THROW(encode(JobSpecBody{spec}, WireFormat::json), ConfigError);
}

TEST(JobSpecCodec, AKeyInItsFieldAndInMoreIsRefused) {
  EXPECT_EQ(fault_of([] {
              decode<JobSpecBody>(R"({"clock": "real", "more": {"clock": "virtual"}})",
                                  WireFormat::json);
            }),
            "not a valid JobSpec: 'clock' is given twice, once in 'more'");
}

TEST(JobSpecCodec, TreesThatAreTooDeepAreRefusedInBothDirections) {
  Value deep = 1;
  for (int i = 0; i < 40; ++i) deep = Value(Value::Map{{"a", deep}});
  EXPECT_THROW(encode(JobSpecBody{deep}, WireFormat::protobuf), ConfigError);
  for (const int depth : {30, 90, 100'000}) {
    const auto n = static_cast<std::size_t>(depth);
    const std::string json =
        "{\"more\": {\"a\": " + std::string(n, '[') + std::string(n, ']') + "}}";
    EXPECT_NE(fault_of([&] { decode<JobSpecBody>(json, WireFormat::json); }), "") << depth;
  }
}

TEST(ApiCodec, UnknownJsonFieldsAreRefusedByName) {
  const std::string fault = fault_of(
      [] { decode<JobSpecBody>(R"({"objektive": {"kind": "logistic"}})", WireFormat::json); });
  EXPECT_NE(fault.find("not a valid JobSpec: "), std::string::npos) << fault;
  EXPECT_NE(fault.find("objektive"), std::string::npos) << fault;
}

TEST(ApiCodec, UnknownProtobufFieldsAreIgnored) {
  const std::string unknown_field_100 = "\xa2\x06\x03xyz";
  EXPECT_EQ(decode<SubmitReply>("\x08\x05" + unknown_field_100, WireFormat::protobuf).id, 5u);
}

TEST(ApiCodec, JobsComeBackInBothFormats) {
  for (const WireFormat format : both_formats) {
    const Job back = there_and_back(a_job(), format);
    EXPECT_EQ(back.spec, a_spec());
    EXPECT_EQ(back.state, JobState::running);
    EXPECT_EQ(back.progress, a_job().progress);
    EXPECT_TRUE(std::isnan(back.objective_last.value()));
    EXPECT_FALSE(back.objective_best.has_value());
    EXPECT_EQ(back.ranks, a_job().ranks);
    EXPECT_EQ(encode(back, WireFormat::protobuf), encode(a_job(), WireFormat::protobuf));
  }
}

TEST(ApiCodec, JsonShowsZerosButNotWhatIsAbsent) {
  Job job;
  const std::string json = encode(job, WireFormat::json);
  EXPECT_NE(json.find("\"attempt\":0"), std::string::npos) << json;
  EXPECT_NE(json.find("\"ticks_done\":\"0\""), std::string::npos) << json;
  EXPECT_EQ(json.find("objective_last"), std::string::npos) << json;
}

TEST(ApiCodec, AJobWithoutAStateIsRefused) {
  EXPECT_EQ(fault_of([] { decode<Job>("{\"id\": 1}", WireFormat::json); }),
            "not a valid Job: state is missing");
}

TEST(ApiCodec, EveryStreamFrameComesBackInBothFormats) {
  const double infinity = std::numeric_limits<double>::infinity();
  EventList events;
  events.events.push_back({1, 10, StateChange{JobState::queued, "", 0}});
  events.events.push_back({2, 11, Point{Series::objective, 5, 6, 0, infinity}});
  events.events.push_back({3, 12, Point{Series::last_stage_loss, 5, 0, 6, 0.1}});
  events.events.push_back({4, 13, LogLine{Severity::warning, "text"}});
  events.events.push_back({5, 14, RunStateChange{{JobState::failed, "why", 2}}, 7});
  events.events.push_back({6, 15, Point{Series::objective, 5, 6, 0, 0.5}, 8});
  events.next_sequence = 7;
  const StreamFrame frames[] = {
      events,      LiveFromHere{a_job()}, Progress{1, 2, 3, 4, 5, 6, {9, 2, 3, 1, 1}},
      Heartbeat{}, Closing{"slow"},       JobEnded{a_job()}};
  for (const WireFormat format : both_formats) {
    for (const StreamFrame& frame : frames) {
      const StreamFrame back = there_and_back(frame, format);
      EXPECT_EQ(back.index(), frame.index());
      EXPECT_EQ(encode(back, WireFormat::protobuf), encode(frame, WireFormat::protobuf));
    }
  }
  const Event point = decode_event(encode_event(events.events[1]));
  EXPECT_EQ(std::get<Point>(point.what).value, infinity);
  const Event run_state = decode_event(encode_event(events.events[4]));
  EXPECT_EQ(std::get<RunStateChange>(run_state.what).message, "why");
  EXPECT_EQ(run_state.run, 7u);
}

TEST(ApiCodec, RunsComeBackWithWhatTheySweepInItsOrder) {
  pipewright::Run run;
  run.job = 3;
  run.number = 12;
  run.state = JobState::succeeded;
  run.attempt = 2;
  run.objective_last = 0.25;
  run.ranks = {1, 3};
  run.summary_json = "{}";
  run.swept = {{"schedule.pipedream.stages", 4}, {"link.latency", "5ms"}, {"a.real", 0.5}};
  run.seed = 5;
  run.makers = a_job().makers;
  run.checkpoint = a_job().checkpoint;
  const RunList list{{run, pipewright::Run()}, 14};
  for (const WireFormat format : both_formats) {
    const RunList back = there_and_back(list, format);
    ASSERT_EQ(back.runs.size(), 2u);
    EXPECT_EQ(back.next_from, 14u);
    EXPECT_EQ(back.runs[0].swept, run.swept);
    EXPECT_EQ(back.runs[0].seed, 5u);
    EXPECT_EQ(back.runs[0].makers, run.makers);
    EXPECT_EQ(back.runs[0].checkpoint, run.checkpoint);
    EXPECT_FALSE(back.runs[1].checkpoint);
    EXPECT_EQ(encode(back, WireFormat::protobuf), encode(list, WireFormat::protobuf));
  }
}

TEST(ApiCodec, JsonTextIsATree) {
  const Value tree(Value::Map{{"a", Value::List{1, 0.5, "x", Value(), true}}, {"b", Value::map()}});
  EXPECT_EQ(value_from_json(to_json(tree)), tree);
  EXPECT_TRUE(value_from_json("").is_null());
  EXPECT_THROW(value_from_json("{\"a\": "), ProtocolError);
}

TEST(ApiCodec, ListsAndSmallRepliesComeBackInBothFormats) {
  const JobList jobs{{a_job(), Job{}}, 6};
  const FileList files{{{"weights.npy", 800}}};
  const PoolList pools{{{"local", {"a", "b"}, {0, 7}, 1, 2, "0.1.0", true, "attached", "4711"}}};
  for (const WireFormat format : both_formats) {
    EXPECT_EQ(there_and_back(jobs, format).jobs.size(), 2u);
    EXPECT_EQ(there_and_back(jobs, format).next_before, 6u);
    EXPECT_EQ(there_and_back(files, format).files.at(0).name, "weights.npy");
    EXPECT_EQ(there_and_back(files, format).files.at(0).bytes, 800u);
    EXPECT_EQ(there_and_back(pools, format).pools.at(0).rank_jobs, pools.pools[0].rank_jobs);
    EXPECT_TRUE(there_and_back(pools, format).pools.at(0).local);
    EXPECT_EQ(there_and_back(pools, format).pools.at(0).slurm_job, "4711");
    EXPECT_EQ(there_and_back(ErrorReply{"e", "a.b"}, format).path, "a.b");
    EXPECT_EQ(there_and_back(Health{"ok", "1"}, format).status, "ok");
    EXPECT_EQ(there_and_back(SubmitReply{12}, format).id, 12u);
  }
}

TEST(ApiCodec, TextThatIsNotUtf8IsMadeSo) {
  const ErrorReply back = there_and_back(ErrorReply{"caf\xe9.npy", ""}, WireFormat::protobuf);
  EXPECT_EQ(back.error, "caf\xef\xbf\xbd.npy");
}

TEST(PoolCodec, EveryFrameOfAPoolComesBack) {
  const RunId run{3, 7, 1};
  const PoolFrame frames[] = {PoolHello{.name = "p",
                                        .ranks = {{0, "host", 77}},
                                        .program_version = "0.1.0",
                                        .program_commit = "abc",
                                        .cpu_type = "cpu",
                                        .slurm_job = "4711",
                                        .instance = "17-4",
                                        .runs = {run, {4, 0, 2}}},
                              Heartbeat{},
                              RunStarted{run, {"0.1.0", "abc", "b1", "Intel"}},
                              RunPoints{run, 40, {{Series::objective, 1, 2, 0, 0.5}}},
                              RunProgress{run, {1, 2, 3, 4, 5, 6, {}}},
                              RunLog{run, {Severity::error, "no"}},
                              RunFileChunk{run, "weights.npy", 128, std::string("\0\xff", 2), true},
                              RunEnded{run, RunOutcome::lost, "gone", "{}"},
                              PoolGoodbye{"bye"},
                              CheckpointChunk{run, "row-1-20", 128, "state", true},
                              CheckpointSent{run, Tick(20)},
                              CheckpointWanted{run, "values-20", 1 << 20}};
  for (const PoolFrame& frame : frames) {
    const PoolFrame back = decode_pool_frame(encode_pool_frame(frame));
    EXPECT_EQ(back.index(), frame.index());
    EXPECT_EQ(encode_pool_frame(back), encode_pool_frame(frame));
  }
  const auto hello = std::get<PoolHello>(decode_pool_frame(encode_pool_frame(frames[0])));
  EXPECT_EQ(hello.instance, "17-4");
  EXPECT_EQ(hello.runs, (std::vector<RunId>{run, {4, 0, 2}}));
  const auto chunk = std::get<RunFileChunk>(decode_pool_frame(encode_pool_frame(frames[6])));
  EXPECT_EQ(chunk.data, std::string("\0\xff", 2));
  EXPECT_EQ(chunk.run, run);
}

TEST(PoolCodec, EveryFrameOfTheDaemonComesBack) {
  const RunId run{3, 7, 1};
  const DaemonFrame frames[] = {Welcome{1000, 60'000},
                                Refused{"why"},
                                StartRun{run, a_spec(), {1, 2}, {"/data", "/srv"}},
                                CancelRun{run},
                                PointsStored{run, 12},
                                RunEndStored{run},
                                CheckpointStored{run, Tick(20)},
                                CheckpointPiece{run, "values-20", 1 << 20, "state", false},
                                StartRun{.run = run,
                                         .spec = a_spec(),
                                         .ranks = {1},
                                         .checkpoint_files = {"row-0-20", "values-20"},
                                         .makers = a_job().makers},
                                ShutDown{"end"},
                                Heartbeat{}};
  for (const DaemonFrame& frame : frames) {
    const DaemonFrame back = decode_daemon_frame(encode_daemon_frame(frame));
    EXPECT_EQ(back.index(), frame.index());
    EXPECT_EQ(encode_daemon_frame(back), encode_daemon_frame(frame));
  }
  EXPECT_EQ(std::get<Welcome>(decode_daemon_frame(encode_daemon_frame(frames[0]))).lease_ms,
            60'000u);
  const auto start = std::get<StartRun>(decode_daemon_frame(encode_daemon_frame(frames[2])));
  EXPECT_EQ(start.spec, a_spec());
}

TEST(PoolCodec, NamesOfFilesCannotLeaveTheirFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", "."}) {
    const std::string bytes = encode_pool_frame(RunFileChunk{{1, 0, 1}, name, 0, "", true});
    EXPECT_THROW(decode_pool_frame(bytes), ProtocolError) << name;
    const RunId run{1, 0, 1};
    EXPECT_THROW(decode_pool_frame(encode_pool_frame(CheckpointChunk{run, name, 0, "", true})),
                 ProtocolError);
    EXPECT_THROW(decode_pool_frame(encode_pool_frame(CheckpointWanted{run, name, 0})),
                 ProtocolError);
    EXPECT_THROW(decode_daemon_frame(encode_daemon_frame(CheckpointPiece{run, name, 0, "", true})),
                 ProtocolError);
    EXPECT_THROW(decode_daemon_frame(encode_daemon_frame(StartRun{
                     .run = run, .spec = a_spec(), .ranks = {1}, .checkpoint_files = {name}})),
                 ProtocolError);
  }
}

ControlMessage a_report() {
  RowReport report{
      Row(2), {{Tick(1), Tick(2), WeightVersion(0)}}, {0.5}, {{4, 0.25}}, {{5, 2.5}}, {1.5}, 10, 20,
      {}};
  return ReportMessage{1, report};
}

/// Of a row on the real clock that decides about its order.
ControlMessage a_real_report() {
  RowReport report;
  report.records = {{Tick(1), Tick(2), WeightVersion(0), 4},
                    {Tick(2), Tick(5), WeightVersion(1), 3}};
  report.observed = {Tick(0), Tick(5)};
  return ReportMessage{1, report};
}

ControlMessage a_final() {
  FinalMessage final{1, {}};
  final.final.row = Row(1);
  final.final.weights.push_back(Tensor::zeros(DType::float32, {3}));
  final.final.weights.back().data<float>()[2] = 1.5f;
  return final;
}

ControlMessage a_window() {
  Instruction rpd{
      Instruction::Kind::forward, Microbatch(5), Replica(1), Batch(2), UpdateCount(7), Stage(2)};
  Instruction checkpoint;
  checkpoint.kind = Instruction::Kind::checkpoint;
  return WindowMessage{1,
                       {Row(3), {Instruction{}, rpd, checkpoint}, true, {{Tick(9), 2, 3, 4, 5}}}};
}

std::vector<ControlMessage> control_messages() {
  std::vector<ControlMessage> messages;
  messages.push_back(RankStart{1, a_spec(), {0, 1}, 9, {"/data"}});
  messages.push_back(RankReady{1, 2, {}, {}, 7, {"0.1.0", "abc", "b1", "Intel"}});
  RankReady with_theory{1, 2, {}, {}, 0};
  with_theory.shape.theory = {1.5, std::nullopt};
  messages.push_back(std::move(with_theory));
  messages.push_back(a_window());
  messages.push_back(a_report());
  messages.push_back(a_real_report());
  messages.push_back(a_final());
  messages.push_back(ClockQuestion{1, 2, 3});
  messages.push_back(ClockAnswer{1, 3, 4, 5, "name"});
  messages.push_back(ClockStart{1, -6});
  messages.push_back(RankFault{1, 2, "text"});
  messages.push_back(RankStop{1});
  messages.push_back(RankIdle{1, 2});
  messages.push_back(RankShutDown{});
  messages.push_back(LeaveAsked{3});
  messages.push_back(StateChunk{1, Row(2), Tick(9), "state", true});
  messages.push_back(StateTaken{1});
  messages.push_back(RestoreChunk{1, Row(2), "state", false});
  return messages;
}

TEST(ControlCodec, EveryMessageComesBack) {
  for (const ControlMessage& message : control_messages()) {
    const ControlMessage back = decode_control(encode_control(message));
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(encode_control(back), encode_control(message));
  }
  const auto window = std::get<WindowMessage>(decode_control(encode_control(a_window())));
  EXPECT_EQ(window.window.instructions, std::get<WindowMessage>(a_window()).window.instructions);
  EXPECT_EQ(window.window.cuts, std::get<WindowMessage>(a_window()).window.cuts);
  const auto final = std::get<FinalMessage>(decode_control(encode_control(a_final())));
  EXPECT_EQ(final.final.weights.at(0).data<float>()[2], 1.5f);
  const auto report = std::get<ReportMessage>(decode_control(encode_control(a_report())));
  EXPECT_EQ(report.report.records.at(0).end, Tick(2));
  EXPECT_EQ(report.report.values.at(0).value, 0.25);
  const auto real = std::get<ReportMessage>(decode_control(encode_control(a_real_report())));
  EXPECT_EQ(real.report.records.at(1).position, 3);
  EXPECT_EQ(real.report.observed, std::get<ReportMessage>(a_real_report()).report.observed);
  const auto answer =
      std::get<ClockAnswer>(decode_control(encode_control(ClockAnswer{1, 3, 4, 5, "name"})));
  EXPECT_EQ(answer.received_ns, 4);
  EXPECT_EQ(answer.clock, "name");
  EXPECT_EQ(report.report.gradients.at(0).observation, 5);
  EXPECT_EQ(report.report.gradients.at(0).value, 2.5);
  EXPECT_EQ(report.report.update_norms, std::vector<double>{1.5});
  const auto ready = std::get<RankReady>(decode_control(encode_control(control_messages().at(2))));
  EXPECT_EQ(ready.shape.theory.smoothness, 1.5);
  EXPECT_EQ(ready.shape.theory.optimum, std::nullopt);
}

/// Changes, cuts and doubles bytes; decoding gives a message or a ProtocolError and nothing else.
template <class Decode>
int refusals(const std::string& valid, std::uint32_t seed, Decode&& decode_bytes) {
  std::mt19937 random(seed);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string bytes = valid;
    for (std::uint32_t n = random() % 4 + 1; n > 0 && !bytes.empty(); --n) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.resize(at);
          break;
        case 2:
          bytes.insert(at, bytes.substr(0, random() % 40));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
      }
    }
    try {
      decode_bytes(bytes);
    } catch (const ProtocolError&) {
      ++refused;
    }
  }
  return refused;
}

TEST(CodecFuzz, MutatedBytesAreRefusedOrReadButNeverCrash) {
  std::uint32_t seed = 1;
  int refused = 0;
  for (const WireFormat format : both_formats) {
    refused += refusals(encode(a_job(), format), seed++, [&](auto& b) { decode<Job>(b, format); });
    refused += refusals(encode(JobSpecBody{a_spec()}, format), seed++,
                        [&](auto& b) { decode<JobSpecBody>(b, format); });
    refused += refusals(encode(StreamFrame{JobEnded{a_job()}}, format), seed++,
                        [&](auto& b) { decode<StreamFrame>(b, format); });
  }
  for (const ControlMessage& message : control_messages()) {
    refused += refusals(encode_control(message), seed++, [](auto& b) { decode_control(b); });
  }
  refused += refusals(encode_daemon_frame(StartRun{{1, 0, 1}, a_spec(), {1}}), seed++,
                      [](auto& b) { decode_daemon_frame(b); });
  refused += refusals(encode_pool_frame(RunPoints{{1, 0, 1}, 0, {Point{}, Point{}}}), seed++,
                      [](auto& b) { decode_pool_frame(b); });
  EXPECT_GT(refused, 1000);
}

TEST(CodecFuzz, RandomBytesAreRefusedOrReadButNeverCrash) {
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    try {
      if (i % 3 == 0) decode<JobSpecBody>(bytes, WireFormat::protobuf);
      if (i % 3 == 1) decode<JobSpecBody>(bytes, WireFormat::json);
      if (i % 3 == 2) decode_control(bytes);
    } catch (const ProtocolError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace pipewright
