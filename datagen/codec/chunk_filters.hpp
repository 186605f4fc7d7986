// Undoes the filters with which HDF5 stored a chunk of an array: compression, shuffled bytes, a checksum.
// Those that Penstock has no code for are left to HDF5's own library (library_filters.hpp). Source of the
// methods: "HDF5 File Format Specification", filter pipeline message, and LibLZF's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A filter of a chunk, with its parameters.
struct ChunkFilter {
  // Filters that Penstock has code for: compressed with zlib; the first bytes of all elements, then their
  // second bytes, and so on; Fletcher's checksum in the last 4 bytes; compressed with LibLZF (h5py's
  // compression="lzf").
  static constexpr uint16_t kDeflate = 1;
  static constexpr uint16_t kShuffle = 2;
  static constexpr uint16_t kFletcher32 = 3;
  static constexpr uint16_t kLzf = 32000;
  static constexpr size_t kMostParameters = 64;
  static constexpr size_t kMostFilters = 8;  // of a chunk

  uint16_t number = 0;                 // in The HDF Group's registry of filters
  std::vector<uint32_t> parameters{};  // HDF5's "client data". Of shuffle: bytes of an element

  bool needs_library() const {
    return number != kDeflate && number != kShuffle && number != kFletcher32 && number != kLzf;
  }
  bool operator==(const ChunkFilter&) const = default;
};

inline constexpr uint64_t kMostChunkBytes = uint64_t{1} << 32U;  // HDF5 counts them in 32 bits

// A name for messages: "deflate", "szip", "filter 32015".
std::string chunk_filter_name(uint64_t number);

class LibraryFilters;

// Returns the bytes of chunks without their filters. It reuses its buffers, which become a little larger than
// a chunk. Only one thread at a time may use it.
class ChunkOpener {
 public:
  ChunkOpener();
  // Uses this connection to HDF5's library first.
  explicit ChunkOpener(std::unique_ptr<LibraryFilters> library);
  ChunkOpener(const ChunkOpener&) = delete;
  ChunkOpener& operator=(const ChunkOpener&) = delete;
  ~ChunkOpener();

  // From now on undoes these filters, in the order in which they were applied, of chunks of `chunk_bytes`
  // bytes. Errors: `unsupported` if the build lacks zlib and the chunks need it, or if chunks are larger than
  // 4 GiB. `invalid_argument` if there are more than kMostFilters.
  Result<void> use(const std::vector<ChunkFilter>& filters, uint64_t chunk_bytes);

  // The bytes of a chunk; they are valid until the next call, and as long as `stored`. Bit i of `not_applied`
  // says that filter i was not applied to this chunk. Errors: `corrupt` if the bytes are not what the filters
  // make, or make no whole chunk. `exhausted` if there is no memory for a chunk. Those of LibraryFilters.
  Result<std::span<const std::byte>> open(std::span<const std::byte> stored, uint32_t not_applied = 0);

 private:
  struct Inflater;
  Result<std::span<const std::byte>> undo(const ChunkFilter& filter, std::span<const std::byte> bytes,
                                          Buffer& out);

  std::vector<ChunkFilter> filters_;
  uint64_t chunk_bytes_ = 0;
  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<LibraryFilters> library_;
  // Filters are undone from one buffer to the other.
  Buffer buffers_[2];
};

}  // namespace penstock
