// NPY files, read as each of the types.
#include <sstream>

#include "core/data/npy.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

namespace {

template <class T>
void read_as(std::string_view bytes) {
  fuzz::may_refuse([&] {
    std::istringstream in{std::string(bytes)};
    const NpyArray<T> array = read_npy<T>(in, "array.npy");
    fuzz::claim(array.shape.elements() == static_cast<std::int64_t>(array.values.size()),
                "the shape gives the number of values");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_as<double>(fuzz::text_of(data, size));
  read_as<float>(fuzz::text_of(data, size));
  read_as<std::int64_t>(fuzz::text_of(data, size));
  return 0;
}
