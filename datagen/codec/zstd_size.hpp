// Measures how well zstd compresses a stream of bytes; the compressed bytes are discarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// The usual level in storage systems and file systems that compress by themselves.
inline constexpr int kZstdLevel = 3;

// Success, or `unsupported` in a build without libzstd.
Result<void> zstd_available();

// Compresses streams to measure their compressed size. Uses a few MiB of memory, however long a stream is.
// Finds equal bytes of a stream that are up to 2 MiB apart, which is the window of kZstdLevel. One thread.
class ZstdSize {
 public:
  static Result<ZstdSize> start();  // errors: as zstd_available(), or `exhausted`
  ZstdSize(ZstdSize&&) noexcept;
  ZstdSize& operator=(ZstdSize&&) noexcept;
  ~ZstdSize();

  Result<void> add(std::span<const std::byte> bytes);
  // Ends the stream. The next add() begins a new stream, which does not profit from bytes of earlier streams.
  Result<void> end_stream();
  // Bytes of all ended streams divided by their compressed bytes; 1 if no bytes were added.
  double ratio() const;

 private:
  struct State;
  explicit ZstdSize(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
