// The memory that LibraryFilters (library_filters.hpp) shares with penstock_hdf5_filters, the program that
// undoes filters with HDF5's own library. For each chunk one byte goes each way over the program's stdin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "datagen/codec/chunk_filters.hpp"

namespace penstock {

inline constexpr const char* kFilterProgram = "penstock_hdf5_filters";
inline constexpr int kFilterMemoryFd = 3;  // the program's descriptor of the memory
inline constexpr int kFilterNoMemory = 3;  // its exit code if it cannot map the memory

struct FilterQuestion {
  struct Filter {
    uint16_t number = 0;
    uint16_t parameter_count = 0;
    std::array<uint32_t, ChunkFilter::kMostParameters> parameters{};
  };

  uint64_t stored_bytes = 0;  // 0: whether the library can undo the first filter is the question
  uint64_t chunk_bytes = 0;   // of the chunk without filters
  uint32_t timeout_s = 0;     // after this time the program ends itself
  uint32_t filter_count = 0;
  std::array<Filter, ChunkFilter::kMostFilters> filters{};  // in the order in which they were applied
};

struct FilterAnswer {
  uint32_t is_done = 0;
  uint32_t lacks_memory = 0;       // why not: the library got no memory, so the chunk may be intact
  std::array<char, 512> reason{};  // why not: HDF5's own message; ends with a zero
};

// The memory: the question, the answer, a file that the program makes around the chunk (headers, then the
// stored bytes), and the chunk without filters.
inline constexpr size_t kFilterAnswerOffset = 4096;
inline constexpr size_t kFilterFileOffset = 8192;
inline constexpr size_t kFilterStoredOffset = 16384;
static_assert(sizeof(FilterQuestion) <= kFilterAnswerOffset);
static_assert(kFilterAnswerOffset + sizeof(FilterAnswer) <= kFilterFileOffset);
constexpr size_t filter_result_offset(uint64_t stored_bytes) {
  return size_t((kFilterStoredOffset + stored_bytes + 63) / 64 * 64);
}

}  // namespace penstock
