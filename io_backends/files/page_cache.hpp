// Evicts, warms and inspects files in the page cache, and describes the cache state of a measurement.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// The bytes of a file that are in this machine's page cache.
struct Residency {
  uint64_t resident_bytes = 0;
  uint64_t total_bytes = 0;
  // If false, the kernel did not tell which pages are cached, and `resident_bytes` means nothing.
  bool verified = false;
  double fraction() const { return total_bytes == 0 ? 0.0 : double(resident_bytes) / double(total_bytes); }
};

// Asks the kernel how much of a file is cached, by cachestat(2) or else mincore(2). If the user neither owns
// the file nor may write it, mincore always answers "all resident". Then its answer is ignored, and
// `verified` is false.
Result<Residency> residency(const std::filesystem::path& file);

// Writes dirty pages of the file back and asks the kernel to evict its pages. Success does not prove that the
// pages are gone; residency() reports whether they are. Fails with io or no_space if bytes of the file could
// not be written, now or earlier. These bytes are lost.
Result<void> evict(const std::filesystem::path& file);

// Drops clean pages, dentries and inodes of the whole machine (/proc/sys/vm/drop_caches). Fails with
// permission_denied without root.
Result<void> drop_caches();

// Reads the file once, so that it is in the page cache.
Result<void> warm(const std::filesystem::path& file);

// The cache state of a measurement. Each of the members client_data, client_metadata, server and host is
// "cold", "warm", "unknown", "none", "memory", "bypassed", "unverified" or "asis".
struct CacheState {
  std::string client_data = "unknown";
  std::string client_metadata = "unknown";
  std::string server = "unknown";
  std::string host = "unknown";
  // How the state was reached: "drop", "evict", "reread" or "" (nothing was done).
  std::string method;
  // The part of the data that was in the page cache before the repeat, from 0 to 1; absent if unknown.
  std::optional<double> resident_fraction_before;
  std::optional<double> device_bytes_fraction;  // bytes read from the device, divided by bytes consumed
};

}  // namespace penstock
