// Undoes filters of HDF5 chunks that Penstock has no code for, such as szip, n-bit, scale-offset and Blosc,
// with HDF5's own library. The library is not made for damaged or hostile files. So it runs in a process of
// its own, penstock_hdf5_filters, and gets nothing but the bytes of one chunk. A crash there is an error
// here.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "datagen/codec/chunk_filters.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

struct FilterExchange;

// The connection to one process. The process begins with the first chunk. Only one thread at a time may use
// it.
class LibraryFilters {
 public:
  // Chunks of more bytes, stored or not, are refused.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 32U;

  // `patience`: how long the library may take, besides 1 s for each 16 MiB of a chunk.
  explicit LibraryFilters(std::chrono::seconds patience = std::chrono::seconds(60)) : patience_(patience) {}
  LibraryFilters(LibraryFilters&& other) noexcept;
  LibraryFilters& operator=(LibraryFilters&& other) noexcept;
  ~LibraryFilters();

  // Whether the library has a filter, or finds a plug-in of it (HDF5_PLUGIN_PATH). It is asked once for each
  // filter; any thread may call this. Error: `unsupported`, with the reason and a remedy.
  static Result<void> find(uint16_t number);

  // The `chunk_bytes` bytes of a chunk without these filters; they are valid until the next call. Bit i of
  // `not_applied` says that filter i was not applied. Errors: `corrupt` if the library cannot undo the
  // filters, crashes or takes too long; the next chunk gets a new process, but none if it took too long.
  // `unsupported` if penstock_hdf5_filters is missing. `exhausted` if there is no memory. `interrupted`
  // (interrupt.hpp).
  Result<std::span<const std::byte>> undo(std::span<const ChunkFilter> filters, uint32_t not_applied,
                                          std::span<const std::byte> stored, uint64_t chunk_bytes);

 private:
  Result<void> start();
  Result<void> reserve(size_t bytes);
  Result<void> ask(std::chrono::seconds patience);
  Error ended();
  void stop();
  FilterExchange& exchange() const;

  std::chrono::seconds patience_;
  pid_t process_ = -1;
  Fd socket_;
  Fd memory_fd_;
  std::span<std::byte> memory_;  // mapped
  std::optional<Error> gave_up_;
};

}  // namespace penstock
