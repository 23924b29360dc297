#include "proto/codec/api.hpp"

#include "core/base/check.hpp"
#include "proto/codec/api_messages.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::queued:
      return "QUEUED";
    case JobState::starting:
      return "STARTING";
    case JobState::running:
      return "RUNNING";
    case JobState::succeeded:
      return "SUCCEEDED";
    case JobState::failed:
      return "FAILED";
    case JobState::cancelled:
      return "CANCELLED";
  }
  PW_CHECK(false, "a job state " << static_cast<int>(state));
}

namespace {

template <class Plain, class Message>
std::string encode_as(const Plain& plain, WireFormat format) {
  Message message;
  put(plain, message);
  return wire::serialize(message, format);
}

template <class Message>
auto decode_as(std::string_view bytes, WireFormat format) {
  Message message;
  wire::parse(bytes, format, message);
  return get(message);
}

}  // namespace

#define PIPEWRIGHT_CODEC_FOR(Plain)                                \
  template <>                                                      \
  std::string encode(const Plain& message, WireFormat format) {    \
    return encode_as<Plain, v1::Plain>(message, format);           \
  }                                                                \
  template <>                                                      \
  Plain decode<Plain>(std::string_view bytes, WireFormat format) { \
    return decode_as<v1::Plain>(bytes, format);                    \
  }

PIPEWRIGHT_CODEC_FOR(Progress)
PIPEWRIGHT_CODEC_FOR(Job)
PIPEWRIGHT_CODEC_FOR(JobList)
PIPEWRIGHT_CODEC_FOR(Run)
PIPEWRIGHT_CODEC_FOR(RunList)
PIPEWRIGHT_CODEC_FOR(SubmitReply)
PIPEWRIGHT_CODEC_FOR(EventList)
PIPEWRIGHT_CODEC_FOR(StreamFrame)
PIPEWRIGHT_CODEC_FOR(FileList)
PIPEWRIGHT_CODEC_FOR(PoolInfo)
PIPEWRIGHT_CODEC_FOR(PoolList)
PIPEWRIGHT_CODEC_FOR(ErrorReply)
PIPEWRIGHT_CODEC_FOR(Health)

#undef PIPEWRIGHT_CODEC_FOR

template <>
std::string encode(const JobSpecBody& message, WireFormat format) {
  return encode_as<JobSpecBody, v1::JobSpec>(message, format);
}

template <>
JobSpecBody decode<JobSpecBody>(std::string_view bytes, WireFormat format) {
  return {decode_as<v1::JobSpec>(bytes, format)};
}

std::string encode_event(const Event& event) {
  return encode_as<Event, v1::Event>(event, WireFormat::protobuf);
}

Event decode_event(std::string_view bytes) {
  return decode_as<v1::Event>(bytes, WireFormat::protobuf);
}

}  // namespace pipewright
