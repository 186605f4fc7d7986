// Measures the highest rates of a tier, on files that the probe creates and removes.
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
  std::vector<unsigned> clients;  // threads of a rank, each at least 1
  // Block sizes of random reads and of writes, in bytes. Each is from 1 to `bytes` divided by the most
  // clients.
  std::vector<uint64_t> block_sizes;
  std::vector<unsigned> depths;  // reads in flight, or writer threads, of one client, each at least 1
  uint64_t bytes = 0;            // total size of one rank's large files, and also of its small files
  std::chrono::nanoseconds min_time{0};
  size_t repeats = 1;
  CacheRequest cache = CacheRequest::cold;
  uint64_t seed = 0;
  // As in CommandContext.
  std::function<void(std::string_view)> log;
  std::function<void(std::string_view)> warn;
};

// The result of one probe with one number of clients. The name "read.random.4k.16" consists of operation,
// pattern, block size and depth (reads in flight of one client).
struct ProbeFigure {
  std::string name;
  std::string loop;                 // the fastest loop shape, if several were tried: "readahead.2"
  std::vector<double> bytes_per_s;  // sum of all clients of all ranks, one value for each repeat
  std::vector<double> ops_per_s;
  // One entry for each repeat: the figures of its ranks, or nothing if there is a single process.
  std::vector<std::vector<RankFigures>> ranks;
};

struct ProbeCell {
  unsigned clients = 1;
  std::vector<ProbeFigure> figures;
  // Probes that were not measured: name or name prefix -> reason.
  std::map<std::string, std::string> left_out;
  CacheState cache;  // the cache state before the reads
  // Bytes that the loops read by system calls, which the back end did not count.
  uint64_t uncounted_bytes = 0;
  Verdict verdict = Verdict::ok;
  std::string reason;
};

// Runs all probes on one tier and returns one cell for each number of clients. The probes:
//
// write.sequential.<block>.1      Each client appends to one file, which is then made durable. Block sizes:
//                                 1 MiB, and those of the settings.
// write.sequential.1m.<depth>     Each client has <depth> threads, and each thread writes such a file.
//                                 Depths: those above 1.
// write.random.<block>.1          Each block of a new file is written once, in random order. Needs
//                                 Caps::write_at.
// write.small_files.112k.<depth>  Each client has <depth> threads that write whole files of 112 KiB and make
//                                 each durable. Depths: 1, and those of the settings.
// read.sequential.1m.1            Each client reads its file of write.sequential.1m.1, one read at a time.
// read.sequential.1m.best         The same, by the fastest loop of datagen/yardsticks/ceiling.hpp.
// read.random.<block>.<depth>     Random blocks of these files, <depth> in flight for each client.
// read.small_files.112k.<depth>   Whole files of 112 KiB, <depth> in flight for each client. Depths: 1, and
//                                 those of the settings.
// read.small_files.112k.best      The same, by the fastest loop of datagen/yardsticks/ceiling.hpp.
// metadata.<operation>            create, stat, open (and close), list (counts entries) and remove, of empty
//                                 objects in one folder for each client. This machine may cache them. Has no
//                                 bytes_per_s.
//
// Creates a folder "penstock-probe-<id>" on the tier and removes it at the end, also after a failure or an
// interrupt. The folder of a killed probe is removed by the next probe, except on a network. Fails with
// `no_space` before any write if the tier lacks space for the large and the small files plus 10%. After an
// interrupt it returns the cells measured by then. `note` gets a text about each part before it starts.
//
// Collective. Every rank works in its own folder at the same time as the others. A barrier precedes each
// probe. All ranks return the same figures: the bytes of all ranks over the wall time of the slowest.
Result<std::vector<ProbeCell>> probe_tier(Tier& tier, const ProbeSettings& settings, Communicator& ranks,
                                          const std::function<void(std::string_view what)>& note);

}  // namespace penstock
