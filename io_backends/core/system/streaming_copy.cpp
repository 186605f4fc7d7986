#include "io_backends/core/system/streaming_copy.hpp"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock {

#ifdef __SSE2__

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kPrefetchBytes = 16 * kLineBytes;  // how far ahead of the copy the loop prefetches

void stream_line(std::byte* to, const std::byte* from) {
  __m128i parts[kLineBytes / sizeof(__m128i)];
  std::memcpy(parts, from, kLineBytes);
  auto* const line = reinterpret_cast<__m128i*>(to);
  for (size_t i = 0; i < kLineBytes / sizeof(__m128i); ++i) _mm_stream_si128(line + i, parts[i]);
}

}  // namespace

void copy_streamed(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (from.size() < kLeastStreamedBytes) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  const size_t bytes_to_line =
      (kLineBytes - reinterpret_cast<uintptr_t>(to.data()) % kLineBytes) % kLineBytes;
  std::memcpy(to.data(), from.data(), bytes_to_line);
  size_t at = bytes_to_line;
  for (; from.size() - at >= kLineBytes + kPrefetchBytes; at += kLineBytes) {
    __builtin_prefetch(from.data() + at + kPrefetchBytes, 0, 0);
    stream_line(to.data() + at, from.data() + at);
  }
  // Streaming stores are weakly ordered. The fence makes them visible before any later store.
  _mm_sfence();
  std::memcpy(to.data() + at, from.data() + at, from.size() - at);
}

#else

void copy_streamed(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

#endif

}  // namespace penstock
