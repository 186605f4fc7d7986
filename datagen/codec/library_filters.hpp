// Undoes filters of HDF5 chunks that Penstock has no code for, such as szip, n-bit, scale-offset and Blosc,
// with HDF5's own library. The library is not made for damaged or hostile files. So it runs in a process of
// its own, penstock_hdf5_filters, and gets nothing but the bytes of one chunk. A crash there is an error
// here.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "datagen/codec/chunk_filters.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

struct FilterQuestion;

// The connection to one process, which begins with the first chunk. Only one thread at a time may use it.
class LibraryFilters {
 public:
  // `timeout`: how long the library may take, besides 1 s for each 16 MiB of a chunk.
  explicit LibraryFilters(std::chrono::seconds timeout = std::chrono::seconds(60)) : timeout_(timeout) {}
  LibraryFilters(const LibraryFilters&) = delete;
  LibraryFilters& operator=(const LibraryFilters&) = delete;
  ~LibraryFilters();

  // A connection that was kept, or a new one. Starting a process for each object would cost more than small
  // objects do. keep() drops a connection that has timed out. Any thread may call both.
  static std::unique_ptr<LibraryFilters> take();
  static void keep(std::unique_ptr<LibraryFilters> connection);

  // Whether the library has a filter, or finds a plug-in of it (HDF5_PLUGIN_PATH). Any thread may call this.
  // Errors: `unsupported` if not, with a remedy; those of undo().
  static Result<void> find(uint16_t number);

  // The `chunk_bytes` bytes of a chunk without these filters; they are valid until the next call. Bit i of
  // `not_applied` says that filter i was not applied. Errors: `corrupt` if the library cannot undo the
  // filters or crashes. `unsupported` if penstock_hdf5_filters is missing or cannot be started, if the
  // library lacks a filter, gets no memory for this chunk, or takes too long; after three times no further
  // chunk is tried. `exhausted` if there is no memory or no process. `interrupted` (interrupt.hpp).
  Result<std::span<const std::byte>> undo(std::span<const ChunkFilter> filters, uint32_t not_applied,
                                          std::span<const std::byte> stored, uint64_t chunk_bytes);

  // Whether undo() tries no further chunk.
  bool has_given_up() const;

 private:
  Result<void> start();
  Result<void> reserve(size_t bytes);
  Result<void> ask(FilterQuestion& question);
  Result<void> wait_for_answer(std::chrono::seconds timeout);
  Error ended();
  void stop();

  const std::chrono::seconds timeout_;
  int timeouts_ = 0;
  pid_t process_ = -1;
  Fd socket_;
  Fd memory_fd_;
  std::span<std::byte> memory_;  // mapped; laid out as in filter_exchange.hpp
};

}  // namespace penstock
