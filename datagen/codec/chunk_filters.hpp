// Undoes the filters with which HDF5 stored a chunk of an array: compression, shuffled bytes, a checksum.
// Source of the methods: "HDF5 File Format Specification", filter pipeline message, and LibLZF's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

enum class ChunkFilter : uint8_t {
  deflate,     // compressed with zlib
  shuffle,     // the first bytes of all elements, then their second bytes, and so on
  fletcher32,  // Fletcher's checksum in the last 4 bytes
  lzf,         // compressed with LibLZF (h5py's compression="lzf")
};

// The filter with a number of the HDF5 registry; nothing for other filters.
std::optional<ChunkFilter> chunk_filter(uint64_t number);
// A name for messages: "deflate", "szip", "filter 32015".
std::string chunk_filter_name(uint64_t number);

// How the chunks of an array were stored.
struct ChunkFilters {
  std::vector<ChunkFilter> filters{};  // in the order in which they were applied; at most 32
  uint64_t element_bytes = 1;          // bytes of an element, for shuffle
  uint64_t chunk_bytes = 0;            // bytes of a chunk without filters

  bool operator==(const ChunkFilters&) const = default;
};

// Returns the bytes of chunks without their filters. It reuses its buffers, which become a little larger than
// a chunk. Only one thread at a time may use it.
class ChunkOpener {
 public:
  // Errors: `unsupported` if the build lacks zlib and the chunks need it. `invalid_argument` if the elements
  // have no bytes or there are too many filters.
  static Result<ChunkOpener> make(ChunkFilters filters);
  ChunkOpener(ChunkOpener&&) noexcept;
  ChunkOpener& operator=(ChunkOpener&&) noexcept;
  ~ChunkOpener();

  const ChunkFilters& filters() const { return filters_; }

  // The bytes of a chunk; they are valid until the next call, and as long as `stored`. Bit i of `not_applied`
  // says that filter i was not applied to this chunk. Errors: `corrupt` if the bytes are not what the filters
  // make, or make no whole chunk. `exhausted` if there is no memory for a chunk.
  Result<std::span<const std::byte>> open(std::span<const std::byte> stored, uint32_t not_applied = 0);

 private:
  struct Inflater;
  explicit ChunkOpener(ChunkFilters filters);
  Result<std::span<const std::byte>> undo(ChunkFilter filter, std::span<const std::byte> bytes, Buffer& out);

  ChunkFilters filters_;
  std::unique_ptr<Inflater> inflater_;
  // Filters are undone from one buffer to the other.
  Buffer buffers_[2];
};

}  // namespace penstock
