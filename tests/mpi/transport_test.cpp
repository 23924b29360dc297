// The body of tests/transport on real MPI ranks.
#include "tests/mpi/mpi_main.hpp"
#include "tests/transport/transport_body.hpp"

namespace pipewright {
namespace {

class MpiTransport
    : public testing::TestWithParam<std::pair<std::string, transport_tests::RankBody>> {};

TEST_P(MpiTransport, Holds) {
  GetParam().second(*world());
}

INSTANTIATE_TEST_SUITE_P(Transports, MpiTransport, testing::ValuesIn(transport_tests::all()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::mpi_test_main(argc, argv);
}
