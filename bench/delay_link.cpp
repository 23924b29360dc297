// A network link with a true delay, between two network namespaces: makes a TAP device in each and
// passes every frame on to the other a fixed time after it came. For bench/real_link.sh; needs
// root.
//   bench_delay_link NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B DELAY_MICROSECONDS
// Prints "up" when both devices are there; ends with its process.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_delay_link: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// A TAP device in a namespace of `ip netns`. It stays in there while this process goes on.
int open_tap(const std::string& space, const std::string& device) {
  const int at = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (at < 0 || setns(at, CLONE_NEWNET) != 0) fail("namespace " + space);
  close(at);
  const int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (tap < 0) fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) fail("device " + device);
  return tap;
}

/// One way: a thread that reads frames, and one that writes each when its time has come.
class OneWay {
 public:
  OneWay(int from, int to, std::chrono::microseconds delay) : from_(from), to_(to), delay_(delay) {
    std::thread([this] { read_frames(); }).detach();
    std::thread([this] { write_frames(); }).detach();
  }

 private:
  static constexpr std::size_t frames_max = 16384;  // beyond it frames are lost, as on any link
  struct Frame {
    Clock::time_point due;
    std::size_t size = 0;
    std::array<char, 2048> bytes;
  };

  void read_frames() {
    while (true) {
      Frame frame;
      const ssize_t size = read(from_, frame.bytes.data(), frame.bytes.size());
      if (size <= 0) {
        if (errno == EINTR) continue;
        fail("reading");
      }
      frame.due = Clock::now() + delay_;
      frame.size = static_cast<std::size_t>(size);
      const std::lock_guard lock(mutex_);
      if (frames_.size() == frames_max) continue;
      frames_.push_back(frame);
      came_.notify_one();
    }
  }

  void write_frames() {
    prctl(PR_SET_TIMERSLACK, 1);
    std::unique_lock lock(mutex_);
    while (true) {
      came_.wait(lock, [&] { return !frames_.empty(); });
      const Frame frame = frames_.front();
      frames_.pop_front();
      lock.unlock();
      // A sleep ends late; the last of it is waited for awake.
      std::this_thread::sleep_until(frame.due - awake_before);
      while (Clock::now() < frame.due) {
      }
      // A device that is not up yet takes nothing: that frame is lost.
      [[maybe_unused]] const ssize_t written = write(to_, frame.bytes.data(), frame.size);
      lock.lock();
    }
  }

  static constexpr std::chrono::microseconds awake_before{80};

  int from_, to_;
  std::chrono::microseconds delay_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Frame> frames_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B DELAY_US\n", argv[0]);
    return 2;
  }
  // A link does not wait for a core. Without the right to it, the delay is longer than asked.
  const sched_param priority{.sched_priority = 20};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) std::perror("real-time priority");
  const std::chrono::microseconds delay(std::atol(argv[5]));
  const int a = open_tap(argv[1], argv[2]);
  const int b = open_tap(argv[3], argv[4]);
  const OneWay there(a, b, delay), back(b, a, delay);
  std::puts("up");
  std::fflush(stdout);
  while (true) pause();
}
