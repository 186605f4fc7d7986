// Packs bytes into zlib streams (RFC 1950), one after another. It uses zlib if the build has it. Otherwise it
// writes stored blocks, which every reader of zlib streams accepts; they are not smaller than the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// Not thread-safe.
class ZlibStream {
 public:
  // Receives a stream in pieces. A piece is valid only during the call.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  enum class Packing {
    smallest,  // compressed with zlib if the build has it
    stored,
  };
  explicit ZlibStream(Sink sink, Packing packing = Packing::smallest);
  ~ZlibStream();

  // The first add() after construction or end() begins a stream. Errors are the sink's, or `exhausted`.
  Result<void> add(std::span<const std::byte> bytes);
  // Ends the stream. If nothing was added, this writes an empty stream.
  Result<void> end();

 private:
  struct Packer;
  struct StoredPacker;
  struct ZlibPacker;
  std::unique_ptr<Packer> packer_;
};

}  // namespace penstock
