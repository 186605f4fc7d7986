// What a tier can do at best, measured on files of our own that are removed again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct ProbeSettings {
  std::vector<unsigned> clients;      // threads of a rank, each at least 1
  std::vector<std::uint64_t> blocks;  // of random reads and of writes, bytes, from 1 to a client's share
  std::vector<unsigned> depths;       // reads, or writers, in flight a client, each at least 1
  std::uint64_t bytes = 0;            // of a rank: of its large files together, and of its small ones
  std::chrono::nanoseconds min_time{0};
  std::size_t repeats = 1;
  CacheRequest cache = CacheRequest::cold;
  std::uint64_t seed = 0;
};

// One probe with one number of clients: "read.random.4k.16" is operation, pattern, block and depth (reads in
// flight a client).
struct ProbeFigure {
  std::string name;
  std::string loop;                 // the shape that was fastest, where several were tried: "readahead.2"
  std::vector<double> bytes_per_s;  // all clients of all ranks together, one a repeat
  std::vector<double> ops_per_s;
  std::vector<std::vector<RankFigures>> ranks;  // one a repeat; none in each of a single process
};

struct ProbeCell {
  unsigned clients = 1;
  std::vector<ProbeFigure> figures;
  std::map<std::string, std::string> left_out;  // probes, or the beginnings of their names, and why
  CacheState cache;                             // before the reads
  std::uint64_t uncounted_bytes = 0;            // read past the back end, which did not count them
  Verdict verdict = Verdict::ok;
  std::string reason;
};

// write.sequential.<block>.1      appends to a file a client until they would survive a power cut: 1 MiB,
//                                 and each block of the settings
// write.sequential.1m.<depth>     that many such files a client at once, a thread each: each depth above 1
// write.random.<block>.1          the same blocks, each once anywhere in a new file, where the back end can
//                                 (Caps::write_at)
// write.small_files.112k.<depth>  whole files of 112 KiB, <depth> per client at once, a thread each: 1 and
//                                 each depth, each file until its bytes would survive a power cut
// read.sequential.1m.1            the files of write.sequential.1m.1, a read at a time of each client
// read.sequential.1m.best         the same by the best loop of the series (datagen/yardsticks/ceiling.hpp)
// read.random.<block>.<depth>     blocks at random offsets of them, each block and depth of the settings
// read.small_files.112k.<depth>   whole files of 112 KiB, that many in flight a client: 1 and each depth
// read.small_files.112k.best      the same by the best of the probe series's loops
// metadata.create, .stat, .open   (and close), .list (entries), .remove: of empty objects, a folder a client,
//                                 as this machine caches them; these have no bytes_per_s
//
// Makes a folder "penstock-probe-<id>" on the tier and takes it away again, also when it fails or is
// interrupted; what a killed one left is taken away by the next one (not on a network). `no_space` before
// anything is written when the tier has not room for both sets and a tenth to spare. Interrupted, it returns
// the cells as far as they are. `note` gets what is done now.
//
// Collective: every rank has a folder of its own, works in it at the same time as the others, each probe
// behind a barrier, and returns the same figures: bytes of all by the wall of the slowest.
Result<std::vector<ProbeCell>> probe_tier(Tier& tier, const ProbeSettings& settings, Communicator& ranks,
                                          const std::function<void(std::string_view what)>& note);

}  // namespace penstock
