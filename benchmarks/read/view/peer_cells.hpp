// Finds records of other programs that measured the same tiers. They were imported from fio and Google
// Benchmark.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/read/view/read_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Whether this is a usable record of another program with a rate in bytes or operations.
bool is_peer(const Record& record);

// The program with its version from the record's label ("fio-3.33"), else only its name.
std::string peer_program(const Record& record);

// The parameters of its work, as far as the record has them: "randread of 128k, depth 8, psync, direct".
std::string peer_work(const Record& record);

// The records of one program that did the same work on one tier, by thread count.
struct PeerCurve {
  std::string tier;
  std::string name;  // "fio-3.33 on disk", followed by its work if two curves would have the same name
  bool uses_direct_io = false;
  bool rate_is_of_reads = false;
  std::map<uint64_t, const Record*> by_count;  // threads -> the latest record
};
std::vector<PeerCurve> peer_curves(std::span<const Record> records);

// Whether the curve may be shown in the chart of a group. It must read a tier of the group, and the group
// must be of a single process. Direct I/O is not compared with reads from the page cache.
bool is_comparable(const PeerCurve& peer, const ReadGroup& group);

}  // namespace penstock
