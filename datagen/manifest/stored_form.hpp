// Says how an array or a stream of records is stored, if its samples are not in the object as they are: an
// array in chunks with filters (HDF5), or a compressed stream (a member of an .npz archive, a TFRecord file).
// A scan finds it, the manifest keeps it, and FormReader (form_reader.hpp) reads samples by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "datagen/codec/chunk_filters.hpp"
#include "datagen/codec/gzip.hpp"

namespace penstock {

// The bytes of a sample in an array or a stream, as they are after all filters and compression are undone.
struct SampleExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

inline constexpr size_t kMostDimensions = 32;  // of an array in chunks; as in HDF5 (H5S_MAX_RANK)

// An array in chunks. A chunk at the edge of the array is stored whole.
struct ChunkedArray {
  // The same in memory as in the manifest.
  struct Chunk {
    uint64_t offset = 0;  // in the object
    // Number of stored bytes; the lowest 8 bits: not_applied(). No bytes: the chunk was never written, and
    // all its elements have the fill value.
    uint64_t bytes_and_flags = 0;

    static Chunk make(uint64_t offset, uint64_t bytes, uint32_t not_applied) {
      return {offset, bytes << 8U | (not_applied & 0xffU)};
    }
    uint64_t bytes() const { return bytes_and_flags >> 8U; }
    uint32_t not_applied() const { return uint32_t(bytes_and_flags & 0xffU); }  // bit i: filter i was not
  };

  uint64_t item_bytes = 1;
  std::vector<uint64_t> shape{};
  std::vector<uint64_t> chunk_shape{};
  std::vector<ChunkFilter> filters{};  // at most 8
  uint64_t fill_value = 0;             // its lowest item_bytes bytes, the first byte lowest
  std::span<const Chunk> chunks{};     // in row-major order of their places in the array

  uint64_t bytes() const;        // of the whole array
  uint64_t chunk_bytes() const;  // of a chunk without filters
  // Number of chunks along a dimension.
  uint64_t grid(size_t dimension) const {
    return (shape[dimension] + chunk_shape[dimension] - 1) / chunk_shape[dimension];
  }
};

// Compressed streams that follow one another in an object, and the places where inflating can begin. Offsets
// of points count from `begin`. Only gzip has more than one stream.
struct CompressedStream {
  DeflateFormat format = DeflateFormat::raw;
  uint64_t begin = 0;                 // offset in the object
  uint64_t stored_bytes = 0;          // in the object, from `begin` on
  uint64_t bytes = 0;                 // inflated
  std::vector<AccessPoint> points{};  // in order; without the beginning itself
};

using StoredForm = std::variant<ChunkedArray, CompressedStream>;

uint64_t form_bytes(const StoredForm& form);  // number of bytes that samples can be in

// The form as the manifest keeps it (docs/reference/manifest.md).
std::vector<uint64_t> encode_form(const StoredForm& form);
// Nothing if the words are no form, or one that contradicts itself. Chunks and the windows of points refer to
// `words`. Whether chunks are inside the object is not checked.
std::optional<StoredForm> decode_form(std::span<const uint64_t> words);

}  // namespace penstock
