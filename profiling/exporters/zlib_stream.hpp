// Bytes as zlib streams (RFC 1950), one after another. Through zlib where the build has it; elsewhere in
// stored blocks, which every reader of zlib streams takes and which are as long as the bytes themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// One thread.
class ZlibStream {
 public:
  // Takes a stream in pieces as they come; they are the stream's again when it returns.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  enum class Packing {
    smallest,  // that the build can
    stored,
  };
  explicit ZlibStream(Sink sink, Packing packing = Packing::smallest);
  ~ZlibStream();

  // The first add() after construction or end() begins a stream. Errors are the sink's, or `exhausted`.
  Result<void> add(std::span<const std::byte> bytes);
  // A stream of nothing where nothing was added.
  Result<void> end();

 private:
  struct Packer;
  struct Stored;
  struct Deflated;
  std::unique_ptr<Packer> packer_;
};

}  // namespace penstock
