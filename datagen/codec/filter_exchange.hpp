// The memory that LibraryFilters (library_filters.hpp) shares with penstock_hdf5_filters, the process that
// undoes filters with HDF5's own library. For each chunk one byte goes each way over the process's stdin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr const char* kFilterProgram = "penstock_hdf5_filters";
inline constexpr int kFilterMemoryFd = 3;  // the process's descriptor of the memory

struct FilterExchange {
  struct Filter {
    uint16_t number = 0;
    uint16_t parameter_count = 0;
    std::array<uint32_t, 64> parameters{};  // ChunkFilter::kMostParameters
  };
  enum class Outcome : uint32_t { failed, done };

  // The question. Without stored bytes it is whether the library can undo the first filter.
  uint64_t stored_bytes = 0;  // at most 4 GiB
  uint64_t chunk_bytes = 0;   // of the chunk without filters; at least 1
  uint32_t filter_count = 0;
  std::array<Filter, 8> filters{};  // in the order in which they were applied

  // The answer.
  Outcome outcome = Outcome::failed;
  std::array<char, 512> reason{};  // of a failure, in HDF5's words; ends with a zero
};

// The process makes a file of the chunk here: headers, and right behind them the stored bytes.
inline constexpr size_t kFilterFileOffset = 8192;
inline constexpr size_t kFilterStoredOffset = 16384;
static_assert(sizeof(FilterExchange) <= kFilterFileOffset);

// Offset of the chunk without filters.
constexpr size_t filter_result_offset(uint64_t stored_bytes) {
  return size_t((kFilterStoredOffset + stored_bytes + 63) / 64 * 64);
}

}  // namespace penstock
