// gzip members (RFC 1952) through zlib, made and inflated one after another. Where the build lacks zlib every
// start() is `unsupported` and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr int kGzipLevel = 6;                       // what gzip(1) compresses with
inline constexpr std::uint64_t kMostGzipInflation = 1032;  // of deflate: 258 bytes from two bits

// Nothing, or `unsupported`.
Result<void> gzip_available();

bool begins_as_gzip(std::span<const std::byte> bytes);

// Makes one member after another; its 400 KiB are reused. The same bytes make the same member,
// however they are cut (with one version of zlib): no time, no name and no system is in it. One thread.
class GzipMaker {
 public:
  static Result<GzipMaker> start();  // gzip_available(), or `exhausted`
  GzipMaker(GzipMaker&&) noexcept;
  GzipMaker& operator=(GzipMaker&&) noexcept;
  ~GzipMaker();

  // Takes a member in pieces as they come, at most 64 KiB each; they are the maker's again when it returns.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  // One member of all pieces. Errors are the sink's; the next member is started anew after them.
  Result<void> make(std::span<const std::span<const std::byte>> pieces, const Sink& sink);

  // What a member of that many bytes takes at most. Between members.
  std::uint64_t most(std::uint64_t bytes) const;

 private:
  struct State;
  explicit GzipMaker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Inflates one member after another; its 50 KiB are reused. One thread.
class GzipInflater {
 public:
  static Result<GzipInflater> start();  // gzip_available(), or `exhausted`
  GzipInflater(GzipInflater&&) noexcept;
  GzipInflater& operator=(GzipInflater&&) noexcept;
  ~GzipInflater();

  void begin();  // of another member

  struct Step {
    std::size_t taken = 0;  // of `in`
    std::size_t made = 0;   // of `out`
    bool end = false;       // of the member, whose checksum and length are right
  };
  // Goes as far as `in` and `out` do; where it neither takes nor makes anything, one of them has to be
  // longer. `corrupt` says what is wrong, but not where.
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct State;
  explicit GzipInflater(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
