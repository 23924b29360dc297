// What has arrived at a row and was not used yet, by microbatch.
#pragma once

#include <algorithm>

#include "core/base/fifo.hpp"
#include "core/base/ids.hpp"

namespace pipewright {

/// A queue that also finds from the middle: inputs are nearly always used in the order in which
/// they came.
class PendingInputs {
 public:
  bool empty() const { return items_.empty(); }
  Microbatch front() const { return items_.front(); }
  void add(Microbatch m) { items_.push_back(m); }
  void pop() { items_.pop_front(); }

  bool take(Microbatch m) {
    if (empty()) return false;
    if (front() == m) {
      pop();
      return true;
    }
    const Microbatch* at = std::find(items_.begin(), items_.end(), m);
    if (at == items_.end()) return false;
    items_.erase(at);
    return true;
  }

 private:
  Fifo<Microbatch> items_;
};

}  // namespace pipewright
