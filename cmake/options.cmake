# Flags that every target of this project takes: link pipewright_options.
add_library(pipewright_options INTERFACE)
target_include_directories(pipewright_options INTERFACE ${CMAKE_SOURCE_DIR})
# g++ 12 gives false warnings inside its own headers: maybe-uninitialized for AVX-512 (GCC bug 105593),
# restrict for std::string's operator+ (GCC bug 105651).
target_compile_options(pipewright_options INTERFACE
  -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict>)
if(PIPEWRIGHT_WERROR)
  target_compile_options(pipewright_options INTERFACE -Werror)
endif()
if(PIPEWRIGHT_ARCH)
  # One -march for all: Eigen's alignment is part of the ABI, and so of the numbers.
  target_compile_options(pipewright_options INTERFACE -march=${PIPEWRIGHT_ARCH})
endif()
# Results say which binary made them.
target_link_options(pipewright_options INTERFACE -Wl,--build-id=sha1)
if(PIPEWRIGHT_SANITIZE)
  # Under the sanitizers g++ 12 gives the false warning for AVX-512 by another name.
  target_compile_options(pipewright_options INTERFACE -fsanitize=${PIPEWRIGHT_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
  target_link_options(pipewright_options INTERFACE -fsanitize=${PIPEWRIGHT_SANITIZE})
endif()

# pipewright_library(NAME SOURCES ... LINK ...): a static library of this project.
function(pipewright_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC pipewright_options ${arg_LINK})
endfunction()

# pipewright_plugins(NAME FOLDER LINK ...): every .cpp of FOLDER, as an OBJECT library, because a
# static library would drop files that nothing refers to. A new plug-in is one new file there.
function(pipewright_plugins name folder)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC pipewright_options ${arg_LINK})
endfunction()
