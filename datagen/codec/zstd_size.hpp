// Measures how well zstd compresses a stream of bytes; the compressed bytes are discarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// The usual level of storage and file systems that compress by themselves.
inline constexpr int kZstdLevel = 3;

// Success, or `unsupported` in a build without libzstd.
Result<void> zstd_available();

// One thread. Uses a few MiB, for any number of bytes. It finds equal bytes of a stream up to 2 MiB apart,
// the window of this level.
class ZstdSize {
 public:
  static Result<ZstdSize> start();  // errors: as zstd_available(), or `exhausted`
  ZstdSize(ZstdSize&&) noexcept;
  ZstdSize& operator=(ZstdSize&&) noexcept;
  ~ZstdSize();

  Result<void> add(std::span<const std::byte> bytes);
  // Ends the stream. Bytes that are added later are not compared with earlier streams.
  Result<void> end();
  // Bytes of all ended streams / their compressed bytes; 1 if there were none.
  double ratio() const;

 private:
  struct State;
  explicit ZstdSize(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
