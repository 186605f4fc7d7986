// A first-in, first-out queue of fixed capacity, which allocates only when constructed. The caller must not
// push into a full queue or pop from an empty one. Only one thread at a time may use it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace penstock {

template <class T>
class Fifo {
 public:
  explicit Fifo(size_t capacity) : items_(capacity) {}
  size_t size() const { return size_; }
  void push(T item) { items_[(first_ + size_++) % items_.size()] = std::move(item); }
  T pop() {
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock
