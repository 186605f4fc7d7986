// Read records of jobs that differ in how many ranks they had: what more processes and nodes bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

// How much one tier moves with each number of ranks, each with that many threads.
struct RankCurve {
  std::string tier;
  std::uint64_t threads = 0;
  std::string name;                           // "pfs, 4 threads a rank"
  std::map<std::uint64_t, const Record*> at;  // ranks -> the latest usable record
};

// Records that differ in tier, threads and ranks only; of several numbers of ranks.
struct RankGroup {
  std::string title;
  std::vector<RankCurve> curves;
};
std::vector<RankGroup> rank_groups(std::span<const Record> records);

// How many nodes the ranks of a record ran on; 1 where it does not say.
std::size_t node_count(const Record& record);

}  // namespace penstock
