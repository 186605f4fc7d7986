// Cold and warm, said by layer and proven where the machine allows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// How much of a file is in this machine's page cache.
struct Residency {
  std::uint64_t resident_bytes = 0;
  std::uint64_t total_bytes = 0;
  bool verified =
      false;  // false: the machine would not say (EPERM, O_DIRECT, remote); the numbers then mean nothing
  double fraction() const {
    return total_bytes == 0 ? 0.0 : static_cast<double>(resident_bytes) / static_cast<double>(total_bytes);
  }
};

// Asks cachestat(2), else mincore(2). mincore answers "all resident" to a user who neither owns the file nor
// may write it: that is not taken as an answer (`verified` is false).
Result<Residency> residency(const std::filesystem::path& file);

// Writes dirty pages of the file back and asks the kernel to forget its pages. Succeeds without promise: ask
// residency(). io or no_space: bytes of the file could not be written, now or before, and are lost.
Result<void> evict(const std::filesystem::path& file);

// Drops clean pages, dentries and inodes of the whole machine (/proc/sys/vm/drop_caches). permission_denied
// without root.
Result<void> drop_caches();

// Reads the file once through the page cache.
Result<void> warm(const std::filesystem::path& file);

// What a measurement was: each layer "cold", "warm", "unknown", "none", "memory", "bypassed", "unverified" or
// "asis".
struct CacheState {
  std::string client_data = "unknown";
  std::string client_metadata = "unknown";
  std::string server = "unknown";
  std::string host = "unknown";
  std::string method;                              // "drop", "evict", "reread", "" ...
  std::optional<double> resident_fraction_before;  // absent where it could not be asked
  std::optional<double> device_bytes_fraction;     // device bytes read over bytes consumed
};

}  // namespace penstock
