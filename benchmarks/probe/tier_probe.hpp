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
#include "results/record/time_plan.hpp"

namespace penstock {

struct ProbeSettings {
  // The numbers of clients to measure, each at least 1. A client is a thread, and each rank has that many.
  std::vector<unsigned> clients;
  // Block sizes in bytes, of random reads and of writes. Each is at least 1 and at most `bytes` / (the
  // largest of `clients`).
  std::vector<uint64_t> block_sizes;
  // Queue depths, each at least 1. For reads: how many one client has in flight. For writes: how many threads
  // one client has.
  std::vector<unsigned> depths;
  // Total size of the large files of one rank; its small files have the same total size.
  uint64_t bytes = 0;
  std::chrono::nanoseconds min_time{0};
  size_t repeats = 1;
  CacheRequest cache = CacheRequest::cold;
  uint64_t seed = 0;
  TimePlan* plan = nullptr;  // which probes are made; null: all
  // Called with sentences for the user, as in CommandContext: `log` with what was done, `warn` with warnings.
  std::function<void(std::string_view)> log;
  std::function<void(std::string_view)> warn;
};

// The result of one probe with one number of clients. The name "read.random.4k.16" consists of operation,
// pattern, block size and depth. The depth is how many reads, or writing threads, each client has.
struct ProbeFigure {
  std::string name;
  std::string loop;                 // the fastest loop shape, if several were tried: "readahead.2"
  std::vector<double> bytes_per_s;  // for each repeat, the sum of all clients of all ranks
  std::vector<double> ops_per_s;
  // For each repeat, the figures of its ranks. Empty entries if there is a single process.
  std::vector<std::vector<RankFigures>> ranks;
  Verdict verdict = Verdict::ok;  // of this probe alone; ProbeCell::reason has the reasons
};

struct ProbeCell {
  unsigned clients = 1;
  std::vector<ProbeFigure> figures;
  // The probes that were not measured: the name of a probe, or the prefix of several names -> the reason.
  std::map<std::string, std::string> left_out;
  CacheState cache;  // the cache state before the reads
  // Bytes that the measured loops read by their own system calls, and bytes that were read to warm the cache.
  // The back end's counters do not include either.
  uint64_t uncounted_bytes = 0;
  Verdict verdict = Verdict::ok;
  std::string reason;
};

// Runs all probes on one tier and returns one cell for each number of clients. The probes:
//
// write.sequential.<block>.1      Each client appends to one file, which is then made durable. Block sizes:
//                                 1 MiB, and those of the settings.
// write.sequential.1m.<depth>     Each client has <depth> threads, and each thread appends to a file of its
//                                 own. Depths: those of the settings that are above 1.
// write.random.<block>.1          Each block of a new file is written once, in random order. Block sizes: as
//                                 for write.sequential.<block>.1. Left out without Caps::write_at.
// write.small_files.112k.<depth>  Each client has <depth> threads that write whole files of 112 KiB and make
//                                 each durable. Depths: 1, and those of the settings.
// read.sequential.1m.1            The clients together read the files of write.sequential.1m.1 from front to
//                                 back, in blocks of 1 MiB. Each client has one read in flight.
// read.sequential.1m.best         The same as read.sequential.1m.1, by the fastest loop of
//                                 datagen/yardsticks/ceiling.hpp.
// read.random.<block>.<depth>     Random blocks of the files of write.sequential.1m.1, <depth> in flight for
//                                 each client.
// read.small_files.112k.<depth>   Whole files of 112 KiB, <depth> in flight for each client. Depths: 1, and
//                                 those of the settings.
// read.small_files.112k.best      The same as read.small_files.112k.<depth>, by the fastest loop of
//                                 datagen/yardsticks/ceiling.hpp.
// metadata.<operation>            create, stat, open (and close), list (counts entries) and remove. Each
//                                 client has a folder with empty objects. The metadata may be in the cache
//                                 of this machine. The record has no metric in bytes per second.
//
// The probes work in a folder "penstock-probe-<id>" on the tier. It is removed at the end, also after a
// failure or an interrupt. If the process is killed, the next plan_probe() removes the folder, except on a
// network.
// If the tier lacks space for the large and the small files plus 10%, probe_tier() fails with `no_space`
// before it writes anything. After an interrupt it returns all cells, with the figures that are measured by
// then. `note` gets a text about each part before that part starts.
//
// Collective: every rank must call it. All ranks work at the same time, each in its own folder. A barrier
// precedes each probe. All ranks return the same figures: the bytes of all ranks divided by the wall time of
// the slowest rank.
// If settings.plan is set, plan_probe() must have been called for each tier before. ProbeCell::left_out then
// also names the probes that the plan leaves out.
Result<std::vector<ProbeCell>> probe_tier(Tier& tier, const ProbeSettings& settings, Communicator& ranks,
                                          const std::function<void(std::string_view what)>& note);

// Adds the probes of this tier to settings.plan, by their kinds (probe_time.hpp). With `may_write` it first
// removes the folders of killed probes, and writes a small object to learn how fast the tier is. Collective.
void plan_probe(Tier& tier, const ProbeSettings& settings, Communicator& ranks, bool may_write);

}  // namespace penstock
