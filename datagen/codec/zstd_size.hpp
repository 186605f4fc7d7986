// Measures how well zstd compresses a stream of bytes; the compressed bytes are discarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// The compression level that storage systems and file systems usually use when they compress data themselves.
inline constexpr int kZstdLevel = 3;

// Whether zstd can be used: success, or `unsupported` in a build without libzstd.
Result<void> zstd_available();

// Compresses streams to measure their compressed size. Uses a few MiB of memory, however long a stream is.
// zstd saves repeated bytes only if they are up to 2 MiB apart, which is the window of kZstdLevel. Only one
// thread at a time may use it.
class ZstdSize {
 public:
  static Result<ZstdSize> start();  // errors: as zstd_available(), or `exhausted`
  ZstdSize(ZstdSize&&) noexcept;
  ZstdSize& operator=(ZstdSize&&) noexcept;
  ~ZstdSize();

  Result<void> add(std::span<const std::byte> bytes);
  // Ends the stream. The next add() begins a new one, which is compressed without knowledge of earlier
  // streams.
  Result<void> end_stream();
  // Bytes of all ended streams divided by their compressed bytes; 1 if no bytes were added.
  double ratio() const;

 private:
  struct State;
  explicit ZstdSize(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
