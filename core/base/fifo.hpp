// A queue in one piece of memory that is used again, for the hot paths: std::deque allocates every
// few elements.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace pipewright {

/// First in, first out. T can be default-constructed; what was popped is reset at once.
template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }

  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  T& back() { return items_.back(); }
  T& operator[](std::size_t i) { return items_[head_ + i]; }
  const T& operator[](std::size_t i) const { return items_[head_ + i]; }
  // From the first in to the last.
  T* begin() { return items_.data() + head_; }
  T* end() { return items_.data() + items_.size(); }
  const T* begin() const { return items_.data() + head_; }
  const T* end() const { return items_.data() + items_.size(); }

  void push_back(T item) { items_.push_back(std::move(item)); }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    items_.insert(items_.end(), first, last);
  }

  /// Takes one out of the middle.
  void erase(const T* at) { items_.erase(items_.begin() + (at - items_.data())); }
  /// Drops the first `count`.
  void pop_front(std::size_t count = 1) {
    for (std::size_t i = 0; i < count; ++i, ++head_) {
      if constexpr (!std::is_trivially_destructible_v<T>) items_[head_] = T();
    }
    tidy();
  }

 private:
  void tidy() {
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= 64 && head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

  std::vector<T> items_;
  std::size_t head_ = 0;
};

}  // namespace pipewright
