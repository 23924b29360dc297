// What every transport must do. Each test is a function of one rank; the harness runs it on all
// ranks of a world: threads (in_process_test.cpp) or MPI ranks (tests/mpi).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/transport/transport.hpp"

namespace pipewright::transport_tests {

using RankBody = std::function<void(Transport&)>;

/// Polls until `done`; the ctest timeout is the deadline.
inline void poll_until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

inline ControlArrival receive_control(Transport& transport) {
  std::optional<ControlArrival> arrival;
  poll_until([&] { return (arrival = transport.poll_control()).has_value(); });
  return *arrival;
}

inline Message receive(RunTransport& run) {
  std::optional<Message> message;
  poll_until([&] { return (message = run.poll()).has_value(); });
  return std::move(*message);
}

inline void close(RunTransport& run) {
  run.begin_close();
  poll_until([&] { return run.closed(); });
}

inline std::vector<int> all_ranks(const Transport& transport) {
  std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// A message whose every field differs from its default and depends on `n`.
inline Message numbered(std::int64_t n, std::int64_t elements, DType dtype = DType::float64) {
  Message message;
  message.kind = MessageKind::gradient;
  message.from_stage = Stage(static_cast<std::int32_t>(n % 7));
  message.to_row = Row(static_cast<std::int32_t>(n % 5));
  message.microbatch = Microbatch(n);
  message.replica = Replica(static_cast<std::int32_t>(n % 3));
  message.weight_version = WeightVersion(n + 1);
  message.sent = Tick(n * 1'000'000'007);
  message.arrival = Tick(n * 1'000'000'007 + 5);
  message.tensor = Tensor(dtype, {elements});
  for (std::int64_t i = 0; i < elements; ++i) {
    if (dtype == DType::float32) {
      message.tensor.data<float>()[i] = static_cast<float>(n + i);
    } else {
      message.tensor.data<double>()[i] = static_cast<double>(n) + 0.5 * static_cast<double>(i);
    }
  }
  return message;
}

inline void expect_numbered(const Message& message, std::int64_t n, std::int64_t elements,
                            DType dtype = DType::float64) {
  const Message expected = numbered(n, elements, dtype);
  EXPECT_EQ(message.kind, expected.kind);
  EXPECT_EQ(message.from_stage, expected.from_stage);
  EXPECT_EQ(message.to_row, expected.to_row);
  EXPECT_EQ(message.microbatch, expected.microbatch);
  EXPECT_EQ(message.replica, expected.replica);
  EXPECT_EQ(message.weight_version, expected.weight_version);
  EXPECT_EQ(message.sent, expected.sent);
  EXPECT_EQ(message.arrival, expected.arrival);
  ASSERT_EQ(message.tensor.shape(), expected.tensor.shape());
  ASSERT_EQ(message.tensor.dtype(), dtype);
  EXPECT_EQ(std::memcmp(message.tensor.buffer().data(), expected.tensor.buffer().data(),
                        expected.tensor.bytes()),
            0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message.tensor.buffer().data()) % Buffer::alignment,
            0u);
}

inline void control_keeps_its_order_from_every_rank(Transport& transport) {
  constexpr int each = 50;
  for (int to = 0; to < transport.size(); ++to) {
    for (int i = 0; i < each; ++i) {
      // Lengths from nothing to well above what MPI sends eagerly.
      transport.send_control(
          to, std::string(static_cast<std::size_t>(i * i * 20), 'a') + std::to_string(i));
    }
  }
  std::map<int, int> next;
  for (int left = each * transport.size(); left > 0; --left) {
    const ControlArrival arrival = receive_control(transport);
    const int expected = next[arrival.from]++;
    const std::string tail = std::to_string(expected);
    ASSERT_EQ(arrival.bytes.size(),
              static_cast<std::size_t>(expected * expected * 20) + tail.size());
    EXPECT_TRUE(arrival.bytes.ends_with(tail));
  }
  poll_until([&] { return transport.sends_done(); });
}

inline void tensors_arrive_whole_and_in_order(Transport& transport) {
  const auto run = transport.open_run(all_ranks(transport), 1);
  const std::vector<std::int64_t> sizes{0, 1, 5, 64, 1000, 100'000};
  for (int to = 0; to < run->size(); ++to) {
    if (to == run->rank()) continue;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const DType dtype = i % 2 == 0 ? DType::float64 : DType::float32;
      run->send(to, numbered(run->rank() * 100 + static_cast<std::int64_t>(i), sizes[i], dtype));
    }
  }
  std::map<std::int64_t, std::size_t> next;  // by sender
  for (std::size_t left = sizes.size() * static_cast<std::size_t>(run->size() - 1); left > 0;
       --left) {
    const Message message = receive(*run);
    const std::int64_t from = message.microbatch.value / 100;
    const std::size_t i = next[from]++;
    expect_numbered(message, from * 100 + static_cast<std::int64_t>(i), sizes[i],
                    i % 2 == 0 ? DType::float64 : DType::float32);
  }
  close(*run);
}

inline void runs_on_disjoint_ranks_do_not_mix(Transport& transport) {
  std::vector<int> even, odd;
  for (int r = 0; r < transport.size(); ++r) (r % 2 == 0 ? even : odd).push_back(r);
  const bool is_even = transport.rank() % 2 == 0;
  const auto run = transport.open_run(is_even ? even : odd, is_even ? 10 : 11);
  EXPECT_EQ(run->size(), static_cast<int>((is_even ? even : odd).size()));
  const int next = (run->rank() + 1) % run->size();
  if (run->size() > 1) {
    run->send(next, numbered(is_even ? 1000 : 2000, 10));
    expect_numbered(receive(*run), is_even ? 1000 : 2000, 10);
  }
  close(*run);
}

inline void closing_drops_what_nobody_has_taken(Transport& transport) {
  for (int round = 0; round < 20; ++round) {
    const auto run = transport.open_run(all_ranks(transport), 5);
    for (int to = 0; to < run->size(); ++to) {
      if (to == run->rank()) continue;
      for (int i = 0; i < 5; ++i) run->send(to, numbered(i, i == 4 ? 200'000 : 10));
    }
    // Half of the ranks look at one message, nobody at all.
    if (run->rank() % 2 == 0 && run->size() > 1) receive(*run);
    close(*run);
  }
}

inline void many_runs_follow_each_other(Transport& transport) {
  // Tags come again: what is left of a run must not be seen by a later one of the same tag.
  for (int round = 0; round < 500; ++round) {
    const auto run = transport.open_run(all_ranks(transport), round % 3);
    close(*run);
  }
}

/// Name and body of every test.
inline const std::vector<std::pair<std::string, RankBody>>& all() {
  static const std::vector<std::pair<std::string, RankBody>> tests{
      {"ControlKeepsItsOrderFromEveryRank", control_keeps_its_order_from_every_rank},
      {"TensorsArriveWholeAndInOrder", tensors_arrive_whole_and_in_order},
      {"RunsOnDisjointRanksDoNotMix", runs_on_disjoint_ranks_do_not_mix},
      {"ClosingDropsWhatNobodyHasTaken", closing_drops_what_nobody_has_taken},
      {"ManyRunsFollowEachOther", many_runs_follow_each_other}};
  return tests;
}

}  // namespace pipewright::transport_tests
