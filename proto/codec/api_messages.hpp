// The plain forms of api.hpp as generated messages and back. Internal to proto/codec. put() fills
// an empty message; get() throws ProtocolError for contents that the plain form cannot have.
#pragma once

#include "pipewright/v1/job.pb.h"
#include "proto/codec/api.hpp"
#include "proto/codec/spec_message.hpp"

namespace pipewright {

void put(const JobSpecBody& plain, v1::JobSpec& message);
void put(const Progress& plain, v1::Progress& message);
void put(const Maker& plain, v1::Maker& message);
void put(const Job& plain, v1::Job& message);
void put(const JobList& plain, v1::JobList& message);
void put(const Run& plain, v1::Run& message);
void put(const RunList& plain, v1::RunList& message);
void put(const SubmitReply& plain, v1::SubmitReply& message);
void put(const Point& plain, v1::Point& message);
void put(const LogLine& plain, v1::LogLine& message);
void put(const Event& plain, v1::Event& message);
void put(const EventList& plain, v1::EventList& message);
void put(const StreamFrame& plain, v1::StreamFrame& message);
void put(const FileList& plain, v1::FileList& message);
void put(const PoolInfo& plain, v1::PoolInfo& message);
void put(const PoolList& plain, v1::PoolList& message);
void put(const ErrorReply& plain, v1::ErrorReply& message);
void put(const Health& plain, v1::Health& message);

Progress get(const v1::Progress& message);
Maker get(const v1::Maker& message);
Job get(const v1::Job& message);
JobList get(const v1::JobList& message);
Run get(const v1::Run& message);
RunList get(const v1::RunList& message);
SubmitReply get(const v1::SubmitReply& message);
Point get(const v1::Point& message);
LogLine get(const v1::LogLine& message);
Event get(const v1::Event& message);
EventList get(const v1::EventList& message);
StreamFrame get(const v1::StreamFrame& message);
FileList get(const v1::FileList& message);
PoolInfo get(const v1::PoolInfo& message);
PoolList get(const v1::PoolList& message);
ErrorReply get(const v1::ErrorReply& message);
Health get(const v1::Health& message);

}  // namespace pipewright
