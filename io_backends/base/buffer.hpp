// Aligned memory that is used again and again: what reads land in.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace penstock {

inline constexpr std::size_t kBufferAlignment = 4096;  // satisfies O_DIRECT on every device we know of

// The next multiple of kBufferAlignment; of what is more than 64 bits hold, the last.
constexpr std::uint64_t whole_blocks(std::uint64_t bytes) {
  const std::uint64_t ragged = bytes % kBufferAlignment;
  if (ragged == 0 || bytes > UINT64_MAX - kBufferAlignment) return bytes - ragged;
  return bytes - ragged + kBufferAlignment;
}

// Owns `capacity()` bytes aligned to kBufferAlignment; growing throws the content away. Pages are not touched
// until used. Throws std::bad_alloc when the machine has no memory left. One thread at a time.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) { grow(bytes); }

  // At least `bytes` of capacity; keeps what is there if it suffices. The content is undefined afterwards
  // when it grew.
  void grow(std::size_t bytes);
  std::size_t capacity() const { return capacity_; }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::span<std::byte> first(std::size_t bytes) { return {memory_.get(), bytes}; }
  std::span<const std::byte> first(std::size_t bytes) const { return {memory_.get(), bytes}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;
};

// A fixed number of objects handed out and taken back, so that a pipeline's memory is bounded and nothing is
// allocated a sample. take() waits until one is free. Any thread. The pool must outlive what it lends.
template <class T>
class Pool {
 public:
  class Lease {
   public:
    Lease() = default;
    Lease(Pool& pool, std::unique_ptr<T> item) : pool_(&pool), item_(std::move(item)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      release();
      pool_ = other.pool_;
      item_ = std::move(other.item_);
      return *this;
    }
    ~Lease() { release(); }
    T* operator->() const { return item_.get(); }
    T& operator*() const { return *item_; }
    explicit operator bool() const { return item_ != nullptr; }
    void release() {
      if (item_) pool_->give(std::move(item_));
      item_ = nullptr;
    }

   private:
    Pool* pool_ = nullptr;
    std::unique_ptr<T> item_;
  };

  template <class Make>
  Pool(std::size_t count, Make make) {
    for (std::size_t i = 0; i < count; ++i) free_.push_back(std::make_unique<T>(make()));
  }

  Lease take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !free_.empty(); });
    return pop();
  }
  // An empty lease when all are out.
  Lease try_take() {
    std::lock_guard lock(mutex_);
    return free_.empty() ? Lease{} : pop();
  }

 private:
  Lease pop() {
    std::unique_ptr<T> item = std::move(free_.back());
    free_.pop_back();
    return Lease(*this, std::move(item));
  }
  void give(std::unique_ptr<T> item) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(std::move(item));
    }
    returned_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace penstock
