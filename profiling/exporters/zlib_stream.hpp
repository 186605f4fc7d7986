// Packs bytes into zlib streams (RFC 1950), one stream after another. If the build has zlib, the bytes are
// compressed. Otherwise they are written uncompressed in stored blocks, which every reader of zlib streams
// accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// Packs bytes and gives them to a sink. Only one thread may use an instance.
class ZlibStream {
 public:
  // Receives the bytes of a packed stream, in several calls. `bytes` is valid only during the call.
  using Sink = std::function<Result<void>(std::span<const std::byte> bytes)>;
  enum class Packing {
    smallest,  // compressed with zlib if the build has it
    stored,
  };
  explicit ZlibStream(Sink sink, Packing packing = Packing::smallest);
  ~ZlibStream();

  // Packs the bytes and passes the result to the sink. Begins a new stream if no stream is open: at first,
  // and after end(). Errors: those of the sink; exhausted if no memory is left.
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
