# Writes OUTPUT with version and git commit, only when they have changed. Run at every build, so that
# a new commit costs one small file's compilation.
cmake_minimum_required(VERSION 3.25)
find_program(GIT git)
set(commit unknown)
if(GIT)
  execute_process(
    COMMAND ${GIT} --no-optional-locks describe --always --dirty --abbrev=40 --exclude=*
    WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
[[#pragma once
#define PIPEWRIGHT_VERSION "@VERSION@"
#define PIPEWRIGHT_COMMIT "@commit@"
]])
