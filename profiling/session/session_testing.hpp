// For tests only: builds the bytes of a session from the definitions in session_abi.h, without the library
// that writes real sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiling/session_abi.h"

namespace penstock {

// The key of a name: any hash of the text will do, if it is always the same one.
uint64_t key_for_test(std::string_view text);

class SessionBytes {
 public:
  // A session of process 100, which started at tick 1000 = 1 s of CLOCK_MONOTONIC = 1001 s since 1970. A tick
  // is one nanosecond, unless the test changes the header.
  explicit SessionBytes(uint32_t pid = 100, uint64_t block_bytes = PENSTOCK_BLOCK_GRANULE);

  penstock_session_header& header();
  void set_command(const std::vector<std::string>& arguments);
  void set_kernel(uint64_t read_at_begin, uint64_t read_at_end);

  // Returns the offset of the name.
  uint64_t add_name(std::string_view text, unsigned kind = PENSTOCK_REGULAR);
  uint64_t add_name(uint64_t key, std::string_view text, unsigned kind = PENSTOCK_REGULAR);
  void add(const penstock_counters& counters);  // as a penstock_brief if that loses no value
  void add(const penstock_brief& counters);
  void add_older(const penstock_counters& counters,
                 size_t entry_bytes);  // only its first `entry_bytes` bytes
  void add(const penstock_thread& thread);
  void add(const penstock_segment& segment);
  void add(const penstock_span& span);
  void add_event(penstock_event_kind kind, uint64_t ticks, uint32_t pid, std::string_view text);

  // Adds the name of a file, and returns counters that say: the file was opened, read `reads` times and
  // closed.
  penstock_counters counters_of(std::string_view path, uint32_t thread, uint32_t reads, uint64_t bytes_each);
  void add_file(std::string_view path, uint32_t thread, uint32_t reads, uint64_t bytes_each,
                unsigned layer = PENSTOCK_POSIX);
  void add_thread(uint32_t thread, uint64_t read, uint64_t written);

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  // Writes the session to <folder>/<pid>-<begin>.session, and returns the path.
  std::filesystem::path write(const std::filesystem::path& folder);

 private:
  uint64_t append(penstock_block_kind kind, size_t entry_bytes, const void* entry, size_t bytes,
                  std::string_view text = {});

  uint64_t block_bytes_;
  std::vector<std::byte> bytes_;
  // (kind, size of entries) -> offset of the block to which such entries are appended
  std::map<std::pair<penstock_block_kind, size_t>, uint64_t> open_blocks_;
  std::map<uint64_t, uint64_t> names_;
};

}  // namespace penstock
