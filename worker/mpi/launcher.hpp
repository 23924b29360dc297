// The mpirun that has started this process.
#pragma once

#include <chrono>

namespace pipewright {

/// To be called before the world is ended. mpirun then waits until each host has answered, also for
/// one that cannot be reached, as long as TCP tries: a quarter of an hour. So it is killed when it
/// is still there after `patience`, which is when whoever waits for it can go on; the processes
/// that it has started elsewhere end when they find that it has gone. Does nothing under other
/// launchers.
void end_launcher_within(std::chrono::milliseconds patience);

}  // namespace pipewright
