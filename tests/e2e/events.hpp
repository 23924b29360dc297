// What a job has told, as `pipewright watch ID --json` shows it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "proto/codec/job_file.hpp"

namespace pipewright::e2e {

struct Told {
  int ends = 0;                         // how often it has said that it is over
  std::vector<std::int64_t> objective;  // the ticks of its points
};

inline std::int64_t integer(const Value& value) {  // protobuf's JSON writes 64 bits as text
  return value.is_text() ? std::stoll(value.as_text()) : value.as_integer();
}

/// Of a job of one run. Its events are numbered without a gap, or the test fails.
inline Told read_events(const std::string& frames_json) {
  Told told;
  std::int64_t expected = 0;
  std::istringstream frames(frames_json);
  for (std::string line; std::getline(frames, line);) {
    const Value frame = JobFile::parse(line, "frame").tree();
    const Value* events = find_path(frame, "events.events");
    if (events == nullptr) continue;
    for (const Value& event : events->as_list()) {
      EXPECT_EQ(integer(event.at("sequence")), ++expected);
      if (const Value* state = find_path(event, "state.state")) {
        told.ends += state->as_text() == "JOB_STATE_SUCCEEDED" ||
                     state->as_text() == "JOB_STATE_CANCELLED" ||
                     state->as_text() == "JOB_STATE_FAILED";
      }
      const Value* point = event.find("point");
      if (point != nullptr && point->at("series").as_text() == "SERIES_OBJECTIVE") {
        const Value* tick = point->find("tick");
        told.objective.push_back(tick == nullptr ? 0 : integer(*tick));
      }
    }
  }
  EXPECT_GT(expected, 0);
  return told;
}

}  // namespace pipewright::e2e
