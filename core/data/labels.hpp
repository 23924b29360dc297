// Class labels of a two-class problem.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace pipewright {

/// Maps labels in place to 0 and 1. They must be exactly two classes: 0/1, -1/+1 or 1/2 (the larger
/// one becomes 1). Otherwise throws DataError, which names the labels found and where; `where(i)`
/// gives the place of label i ("a9a.libsvm:12").
void map_to_two_classes(std::span<double> labels,
                        const std::function<std::string(std::size_t)>& where);

}  // namespace pipewright
