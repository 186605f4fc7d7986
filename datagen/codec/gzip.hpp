// Makes and inflates gzip members (RFC 1952) with zlib, one after another. In a build without zlib every
// start() fails with `unsupported` and says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr int kGzipLevel = 6;  // the default level of gzip(1)
// The most that deflate inflates: 258 bytes from two bits.
inline constexpr std::uint64_t kMostGzipInflation = 1032;

// Success, or `unsupported` in a build without zlib.
Result<void> gzip_available();

bool begins_as_gzip(std::span<const std::byte> bytes);

// Makes gzip members, one after another. One thread. It uses its 400 KiB of memory again for each member. The
// same bytes make the same member, however they are cut (with one version of zlib): a member contains no
// time, no name and no system.
class GzipMaker {
 public:
  static Result<GzipMaker> start();  // errors: as gzip_available(), or `exhausted`
  GzipMaker(GzipMaker&&) noexcept;
  GzipMaker& operator=(GzipMaker&&) noexcept;
  ~GzipMaker();

  // Receives a member in pieces of at most 64 KiB. A piece is valid only during the call.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  // Makes one member from all pieces. Errors are the sink's. After an error the next call begins a new
  // member.
  Result<void> make(std::span<const std::span<const std::byte>> pieces, const Sink& sink);

  // The largest size of a member for `bytes` bytes. Not allowed within a member.
  std::uint64_t most(std::uint64_t bytes) const;

 private:
  struct State;
  explicit GzipMaker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Inflates members, one after another. One thread. It uses its 50 KiB of memory again for each member.
class GzipInflater {
 public:
  static Result<GzipInflater> start();  // errors: as gzip_available(), or `exhausted`
  GzipInflater(GzipInflater&&) noexcept;
  GzipInflater& operator=(GzipInflater&&) noexcept;
  ~GzipInflater();

  void begin();  // starts another member

  struct Step {
    std::size_t taken = 0;  // bytes of `in`
    std::size_t made = 0;   // bytes of `out`
    bool end = false;       // the member has ended, with correct checksum and length
  };
  // Inflates until `in` is used up or `out` is full. If it takes and makes nothing, the caller must give a
  // longer `in` or `out`. `corrupt` names the damage, but not its offset.
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct State;
  explicit GzipInflater(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
