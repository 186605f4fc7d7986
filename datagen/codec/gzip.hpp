// Makes gzip members and inflates them, with zlib. A member is a compressed stream with a header and a
// checksum (RFC 1952). In a build without zlib every start() fails with `unsupported` and says why.
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

// Inflates gzip members, one after another, and reuses its 50 KiB of memory for each. Only one thread at a
// time may use it.
class GzipInflater {
 public:
  static Result<GzipInflater> start();  // errors: as gzip_available(), or `exhausted`
  GzipInflater(GzipInflater&&) noexcept;
  GzipInflater& operator=(GzipInflater&&) noexcept;
  ~GzipInflater();

  void begin();  // resets the inflater; call it before each member

  struct Step {
    size_t in_bytes = 0;        // bytes read from `in`
    size_t out_bytes = 0;       // bytes written to `out`
    bool member_ended = false;  // true only if checksum and length were correct
  };
  // Inflates until `in` is used up, `out` is full or the member ends. If a call neither reads nor writes a
  // byte, the caller must pass a longer `in` or `out` next. The error `corrupt` says what is damaged, but not
  // at which offset.
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct State;
  explicit GzipInflater(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
