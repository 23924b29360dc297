// What the fuzz targets share. A target is a file with one LLVMFuzzerTestOneInput (libFuzzer); it
// shall end with one of the errors that users and peers get (Error), or do what it was asked for
// and then hold what the target claims. Anything else (a sanitizer's word, another exception, too
// much memory, a claim that fails) is a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "core/base/error.hpp"

namespace pipewright::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A claim about whatever the input was.
inline void claim(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "claim fails: " << what << '\n';
  std::abort();
}

/// `work` may refuse its input, and must say why.
template <class Work>
void may_refuse(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    claim(*error.what() != '\0', "an error says something");
  }
}

}  // namespace pipewright::fuzz
