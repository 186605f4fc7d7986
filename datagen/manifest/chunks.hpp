// An array that grows without moving its elements. ManifestBuilder collects a manifest in such arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

// An array that stores its elements in chunks of a fixed size. So growing copies no elements and wastes at
// most one chunk. Only one thread at a time may change the size. Several threads may use existing elements at
// the same time, if no two threads use the same element.
template <class T, size_t kPerChunk>
class Chunks {
 public:
  uint64_t size() const { return size_; }
  T& at(uint64_t index) { return chunks_[index / kPerChunk][index % kPerChunk]; }
  const T& at(uint64_t index) const { return chunks_[index / kPerChunk][index % kPerChunk]; }

  void push_back(const T& value) {
    resize(size_ + 1);
    at(size_ - 1) = value;
  }
  void append(std::span<const T> values) {
    uint64_t index = size_;
    resize(size_ + values.size());
    while (!values.empty()) {
      const auto space = kPerChunk - size_t(index % kPerChunk);
      const auto part = values.first(std::min(space, values.size()));
      std::copy(part.begin(), part.end(), &at(index));
      values = values.subspan(part.size());
      index += part.size();
    }
  }
  // Sets the number of elements. New elements are T{}. Shrinking does not clear elements: if the array grows
  // again, they have their old values.
  void resize(uint64_t size) {
    while (chunks_.size() * kPerChunk < size) chunks_.push_back(std::make_unique<T[]>(kPerChunk));
    size_ = size;
  }

  // Calls `visit` with the used part of each chunk, in order. Stops when `visit` returns false.
  template <class Visit>
  bool for_each_chunk(Visit visit) const {
    uint64_t left = size_;
    for (const auto& chunk : chunks_) {
      const auto part = size_t(std::min<uint64_t>(left, kPerChunk));
      if (part > 0 && !visit(std::span<const T>(chunk.get(), part))) return false;
      left -= part;
    }
    return true;
  }
  // Like for_each_chunk(), but frees each chunk after its visit.
  template <class Visit>
  void visit_and_free(Visit visit) {
    uint64_t left = size_;
    for (auto& chunk : chunks_) {
      const auto part = size_t(std::min<uint64_t>(left, kPerChunk));
      visit(std::span<const T>(chunk.get(), part));
      chunk.reset();
      left -= part;
    }
    chunks_.clear();
    size_ = 0;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  uint64_t size_ = 0;
};

}  // namespace penstock
