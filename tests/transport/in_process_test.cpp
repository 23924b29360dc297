#include "worker/transport/in_process.hpp"
#include "tests/transport/transport_body.hpp"

namespace pipewright {
namespace {

using transport_tests::RankBody;

class InProcessTransport
    : public testing::TestWithParam<std::tuple<std::pair<std::string, RankBody>, int>> {};

TEST_P(InProcessTransport, Holds) {
  const auto& [test, ranks] = GetParam();
  InProcessWorld world(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto transport = world.rank(r);
      test.second(*transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, InProcessTransport,
                         testing::Combine(testing::ValuesIn(transport_tests::all()),
                                          testing::Values(1, 2, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param).first + "On" +
                                  std::to_string(std::get<1>(info.param)) + "Ranks";
                         });

}  // namespace
}  // namespace pipewright
