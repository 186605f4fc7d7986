// Finds records of other programs (peers) that measured the same tiers, such as fio.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/read/view/read_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Whether this is a usable record of another program than penstock, with a rate of bytes or operations.
bool is_peer(const Record& record);

// The name of the program: the record's label `peer` if it has one ("fio-3.33"), else the record's command.
std::string peer_program(const Record& record);

// What the program did, as far as the record has the parameters: "randread of 128k, depth 8, psync, direct".
std::string peer_work(const Record& record);

// The records of one other program that did the same work on one tier, by thread count.
struct PeerCurve {
  std::string tier;
  std::string name;  // "fio-3.33 on disk", followed by its work if two curves would have the same name
  bool uses_direct_io = false;
  bool rate_is_of_reads = false;
  std::map<uint64_t, const Record*> by_count;  // number of threads -> the latest record
};
std::vector<PeerCurve> peer_curves(std::span<const Record> records);

// Whether the curve may be shown in the chart of `group`. The curve must have rates of reads from a tier of
// the group. The group must be of a single process, and not of an open loop. Reads with direct I/O and reads
// from a warm page cache are not shown together.
bool is_comparable(const PeerCurve& peer, const ReadGroup& group);

}  // namespace penstock
