// Makes gzip members, and inflates streams of deflate, with zlib. A member is a compressed stream with a
// header and a checksum (RFC 1952). In a build without zlib every start() fails with `unsupported` and says
// why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr int kGzipLevel = 6;  // the default level of the program gzip
// The most bytes that gzip can make from one compressed byte: deflate can code 258 bytes in two bits, so 1032
// bytes in one byte.
inline constexpr uint64_t kMostGzipInflation = 1032;

// Whether gzip can be used: success, or `unsupported` in a build without zlib.
Result<void> gzip_available();

bool begins_as_gzip(std::span<const std::byte> bytes);
// Two bytes of other data look the same in one of 1,000 cases.
bool begins_as_zlib(std::span<const std::byte> bytes);

// Makes gzip members, one after another, and reuses its 400 KiB of memory for each. Only one thread at a time
// may use it. The same bytes make the same member (with one version of zlib), in whatever pieces the caller
// passes them. A member does not contain a time, a file name or an operating system.
class GzipMaker {
 public:
  static Result<GzipMaker> start();  // errors: as gzip_available(), or `exhausted`
  GzipMaker(GzipMaker&&) noexcept;
  GzipMaker& operator=(GzipMaker&&) noexcept;
  ~GzipMaker();

  // A function that receives a member in pieces of at most 64 KiB. A piece is valid only during the call.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  // Makes one member from the bytes of all `pieces` together and passes it to `sink`. Returns the error of
  // `sink`, if it has one; the next call then begins a new member.
  Result<void> make(std::span<const std::span<const std::byte>> pieces, const Sink& sink);

  // The most bytes that a member made from `bytes` bytes can have. A sink must not call it: it would reset
  // the member that make() is writing.
  uint64_t max_member_bytes(uint64_t bytes) const;

 private:
  struct State;
  explicit GzipMaker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How a stream of deflate is wrapped: not at all (in ZIP archives), by zlib (RFC 1950) or by gzip (RFC 1952).
enum class DeflateFormat : uint8_t { raw, zlib, gzip };

// The most bytes of a window: deflate refers back no farther.
inline constexpr size_t kDeflateWindowBytes = size_t{32} << 10U;

// A place in a compressed stream where inflating can begin.
struct AccessPoint {
  uint64_t stored_offset = 0;  // of the next compressed byte, from the beginning of the stream
  uint64_t offset = 0;         // of the next inflated byte
  unsigned bits = 0;  // how many bits of the compressed byte before are still to be inflated; less than 8
  std::span<const std::byte> window{};  // the last inflated bytes before `offset`
};

// Inflates streams of deflate, one after another, and reuses its 50 KiB of memory for each. A stream of gzip
// is one member. Only one thread at a time may use it.
class StreamInflater {
 public:
  static Result<StreamInflater> start(DeflateFormat format);  // errors: as gzip_available(), or `exhausted`
  StreamInflater(StreamInflater&&) noexcept;
  StreamInflater& operator=(StreamInflater&&) noexcept;
  ~StreamInflater();

  void begin();  // resets the inflater; call it before each stream
  // Resets the inflater to a point within a stream. `byte_before` is the compressed byte before the point; it
  // is used only if point.bits is not 0. The checksum of the stream is not verified then. `corrupt` if the
  // point makes no sense.
  Result<void> begin_at(const AccessPoint& point, std::byte byte_before);

  struct Step {
    size_t in_bytes = 0;   // bytes read from `in`
    size_t out_bytes = 0;  // bytes written to `out`
    // True only if checksum and length were correct, if the format has them. The stream's checksum has been
    // read, too.
    bool ended = false;
    bool at_point = false;  // only if `stop_at_block_end`: whether inflating can begin after this step
  };
  // Inflates until `in` is used up, `out` is full or the stream ends. If a call neither reads nor writes a
  // byte, the caller must pass a longer `in` or `out` next. The error `corrupt` says what is damaged, but not
  // at which offset. If `stop_at_block_end`, it also stops at the end of each block, where inflating can
  // begin.
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out, bool stop_at_block_end = false);

  // After a step that was `at_point`: how many bits of the last compressed byte are still to be inflated.
  unsigned bits_left() const;

 private:
  struct State;
  explicit StreamInflater(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
