// Converts sessions to result records (docs/records.md). From these records `penstock report` can draw the
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

// Makes a record for each tier that the session read from or wrote to. The tiers are the named ones. If none
// are named, each mount is a tier, and the last part of its path is its name. Pseudo file systems (/proc,
// /sys, /dev) are left out, and so are mounts with less than 1% of the bytes.
//
// The command is "profile". Parameters: tier; threads (the largest number that read at the same time, each
// with at least 1% of the tier's bytes); processes. Metrics of the tier: payload_bytes and
// payload_bytes_per_s from its first read to the end of its last read, wall_s between the two,
// read_call_bytes_per_s, tier_bytes_read, tier_bytes_mapped, tier_bytes_written, read_s (added over threads),
// reads, files.
//
// Some programs report spans of reading, as our mini-apps do. If such a program reads from one tier only,
// payload, wall_s and threads come from the spans, so reads outside spans (such as preparations) do not
// count. Spans without the number of a sample belong to repeats of a measurement; their epoch is the number
// of the repeat. The record then has a rate for each repeat, and the time between repeats does not count.
std::vector<Record> records_of(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               const std::vector<NamedTier>& tiers, const std::vector<std::string>& argv);

}  // namespace penstock
