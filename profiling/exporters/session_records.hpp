// Sessions as records (docs/records.md), so that `penstock report` draws the bandwidth of any program against
// its threads and its tiers.
#pragma once

#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"
#include "results/record/record.hpp"

namespace penstock {

// What lies below a folder is one tier.
struct NamedTier {
  std::string name;
  std::string path;  // absolute, without a slash at its end
};
// "fast=/dev/shm/p": the path may be relative.
Result<NamedTier> parse_named_tier(std::string_view text);

// A record for each tier that the session read from or wrote to: the named ones, or where none are named
// mounts, under the last part of their path, but no pseudo file systems (/proc, /sys, /dev) and none on which
// less than a hundredth of the bytes moved. Command "profile"; parameters: tier, threads (that read at the
// same time, at most, each at least a hundredth of the tier's bytes), processes; metrics of the tier alone:
// payload_bytes and payload_bytes_per_s from its first read to the end of its last, wall_s the time between,
// read_call_bytes_per_s, tier_bytes_read, tier_bytes_mapped, tier_bytes_written, read_s (added over threads),
// reads, files.
//
// Where the program named its reads itself (spans of reading, as our mini-apps do) and one tier was read
// alone, payload, wall and threads are those of the spans: what was measured, without preparations. Spans
// without a sample's number are repeats of a measurement (by epoch): each has a rate, and the time between
// them is left out.
std::vector<Record> records_of(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               const std::vector<NamedTier>& tiers, const std::vector<std::string>& argv);

}  // namespace penstock
