// How small zstd makes a stream of bytes; nothing is kept of what it writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// What storage and file systems compress with where they do so by themselves.
inline constexpr int kZstdLevel = 3;

// Nothing, or `unsupported` where the build lacks libzstd.
Result<void> zstd_available();

// One thread. A few MiB, however much is added: equal bytes of a stream are found up to 2 MiB apart, the
// window of that level.
class ZstdSize {
 public:
  static Result<ZstdSize> start();  // zstd_available(), or `exhausted`
  ZstdSize(ZstdSize&&) noexcept;
  ZstdSize& operator=(ZstdSize&&) noexcept;
  ~ZstdSize();

  Result<void> add(std::span<const std::byte> bytes);
  // Ends the stream; what is added next is found in no stream before.
  Result<void> end();
  // Bytes of all ended streams, divided by what zstd makes of them. 1 where there were none.
  double ratio() const;

 private:
  struct State;
  explicit ZstdSize(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
