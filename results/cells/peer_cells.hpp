// What other programs measured of our tiers: records that were imported from fio and Google Benchmark.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// A usable record of another program that says how many bytes or operations it moved.
bool is_peer(const Record& record);

// "fio-3.33": what its label says, else the program.
std::string peer_program(const Record& record);

// "randread of 128k, depth 8, psync, direct": how it worked, as far as it says.
std::string peer_work(const Record& record);

// One way in which one program worked on one tier, by threads.
struct PeerCurve {
  std::string tier;
  std::string name;     // "fio-3.33 on disk", and how it worked where that tells two apart
  bool direct = false;  // past the page cache
  bool reads = false;   // it moved bytes by reading
  std::map<std::uint64_t, const Record*> at;  // threads -> the latest
};
std::vector<PeerCurve> peer_curves(std::span<const Record> records);

// It may be shown with a group: it reads a tier of that name, the group is of one process, and direct I/O is
// not compared with reads from the page cache.
bool is_comparable(const PeerCurve& peer, const ReadGroup& group);

}  // namespace penstock
