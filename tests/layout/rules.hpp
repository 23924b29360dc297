// The rules of DESIGN.md section 2 on single source files: who may know whom.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::layout {

/// What a source file does that its folder must not, as "FILE:LINE: message". `path` is from the
/// project's root and `text` the file's content.
std::vector<std::string> faults_of_source(std::string_view path, std::string_view text);

/// The same for sources that nothing builds: `listed` is the text of the CMakeLists.txt that is
/// nearest above, in `cmake_folder` ("core").
std::vector<std::string> faults_of_listing(std::string_view path, std::string_view cmake_folder,
                                           std::string_view listed);

}  // namespace pipewright::layout
