// Converts sessions to result records (docs/reference/records.md). `penstock report` can draw them, for example the
// bandwidth of any program over its threads and its tiers.
#pragma once

#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"
#include "results/record/record.hpp"

namespace penstock {

// A tier that the user names: all files below a folder.
struct NamedTier {
  std::string name;
  std::string path;  // absolute, without a slash at its end
};
// Parses "fast=/dev/shm/p"; the path may be relative.
Result<NamedTier> parse_named_tier(std::string_view text);

// Makes a record for each tier that the session read from or wrote to. The tiers are `tiers`. If this list is
// empty, each mount is a tier, whose name is the last part of the mount's path. Pseudo file systems (/proc,
// /sys, /dev) are left out, and so are mounts with less than 1% of the bytes.
//
// The record's command is "profile".
// Parameters: tier, program, processes, cache, measured_by ("spans" or "calls"), and threads. `threads` is
// the largest number of threads that read at the same time. Threads with less than 1% of the tier's bytes are
// not counted.
//
// Metrics of the tier:
// - wall_s is the time from the start of the first read to the end of the last read.
// - payload_bytes and payload_bytes_per_s are the bytes that were read in this time, and their rate.
// - read_s is the time in reads, added over threads.
// - Others: read_call_bytes_per_s, tier_bytes_read, tier_bytes_mapped, tier_bytes_written, reads, files.
//
// Some programs report spans of reading, as Penstock's mini-apps do. If such a program reads from one tier
// only, payload, wall_s and threads are those of the spans: reads outside spans, such as preparations, do not
// count. If the spans have no sample numbers, they belong to repeats of a measurement, and their epoch is the
// number of the repeat. The record then has a rate for each repeat, and the time between repeats does not
// count.
std::vector<Record> records_of(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               const std::vector<NamedTier>& tiers, const std::vector<std::string>& argv);

}  // namespace penstock
