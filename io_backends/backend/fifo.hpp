// A bounded first-in, first-out queue that allocates only when it is made. One thread at a time. push() must
// not be called when it is full, pop() not when it is empty.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace penstock {

template <class T>
class Fifo {
 public:
  explicit Fifo(std::size_t capacity) : items_(capacity) {}
  std::size_t size() const { return size_; }
  void push(T item) { items_[(first_ + size_++) % items_.size()] = std::move(item); }
  T pop() {
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace penstock
