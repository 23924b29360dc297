// LIBSVM files.
#include <sstream>

#include "core/data/libsvm.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    const LibsvmData read = read_libsvm(in, "data.libsvm");
    const SparseRows& rows = read.rows;
    fuzz::claim(
        rows.row_count() > 0 && read.labels.size() == static_cast<std::size_t>(rows.row_count()),
        "every example has a label");
    fuzz::claim(rows.row_starts.back() == static_cast<std::int64_t>(rows.columns.size()) &&
                    rows.columns.size() == rows.values.size(),
                "rows end where their entries do");
    for (const std::int32_t column : rows.columns) {
      fuzz::claim(column >= 0 && column < rows.column_count, "columns are inside");
    }
  });
  return 0;
}
