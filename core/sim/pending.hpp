// What has arrived at a row and was not used yet, by microbatch.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/ids.hpp"

namespace pipewright {

/// A queue that also finds from the middle: inputs are nearly always used in the order in which
/// they came.
class PendingInputs {
 public:
  bool empty() const { return head_ == items_.size(); }
  Microbatch front() const { return items_[head_]; }
  void add(Microbatch m) { items_.push_back(m); }

  void pop() {
    if (++head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= 64 && head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

  bool take(Microbatch m) {
    if (empty()) return false;
    if (front() == m) {
      pop();
      return true;
    }
    const auto at = std::find(items_.begin() + static_cast<std::ptrdiff_t>(head_), items_.end(), m);
    if (at == items_.end()) return false;
    items_.erase(at);
    return true;
  }

 private:
  std::vector<Microbatch> items_;
  std::size_t head_ = 0;
};

}  // namespace pipewright
