// The options of `penstock read`: the table for the parser of its command line, and the parsed values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/reading/sample_order.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr OptionSpec kReadOptionTable[] = {
    kScanOption,
    kManifestOption,
    kTypesOption,
    {.name = "tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "one more tier that holds the same objects (`penstock copy`), measured after the corpus's own",
     .group = "Corpus",
     .repeated = true},
    {.name = "only-tiers",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "leave the corpus's own place out",
     .group = "Corpus"},
    kOverlayOption,
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,2,4,8",
     .help = "workers that read and decode, one row each",
     .group = "Reading",
     .at_least = 1},
    {.name = "depth",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "reads that each thread keeps in flight",
     .group = "Reading",
     .alias = "iodepth",
     .at_least = 1},
    {.name = "order",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "shuffled|sequential|physical",
     .fallback = "shuffled",
     .help =
         "shuffled: anew every pass, from the seed; sequential: as in the manifest; physical: shuffled, then "
         "--window samples at a time as they lie on the device",
     .group = "Reading"},
    {.name = "window",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1024",
     .help = "of --order physical: samples sorted at a time, where the file system tells by extent, else by "
             "inode",
     .group = "Reading",
     .at_least = 1},
    {.name = "block",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "read blocks of this size, whole ones of every object, in place of the samples",
     .group = "Reading",
     .at_least = 1},
    {.name = "decode",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "none|full",
     .fallback = "none",
     .help = "full: every sample, JPEG or PNG, to RGB, by the thread that read it",
     .group = "Reading"},
    {.name = "on-error",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "fail|skip",
     .fallback = "fail",
     .help = "what a sample that cannot be read or decoded does",
     .group = "Reading"},
    {.name = "verify",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "check checksums in the measured repeats too, and count the time; the warm-up pass always does",
     .group = "Reading"},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "warm",
     .help = "state of the page cache before every repeat, proven where the kernel tells; asis: as it "
             "happens to be",
     .group = "Cache"},
    {.name = "cold-by",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "evict|drop",
     .fallback = "evict",
     .help = "evict: the corpus's files; drop: the whole machine's page cache and metadata (root)",
     .group = "Cache"},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats of every row, in random order, after a pass that is thrown away",
     .group = "Duration",
     .at_least = 1},
    {.name = "min-time",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "2s",
     .help = "a repeat takes as many whole passes as last this long, or is marked short; unless given, no "
             "more than 90% of --duration",
     .group = "Duration"},
    {.name = "duration",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "a repeat takes exactly this long, wherever the pass stands; one that ends before --min-time is "
             "marked short",
     .group = "Duration"},
    {.name = "stonewall",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "as --duration, and then each rank goes on until it has read as many samples as the most "
             "advanced had by then",
     .group = "Duration"},
    {.name = "rate",
     .role = OptionRole::work,
     .value = "N/s[,poisson]",
     .help = "an open loop: N samples per second are due on all threads together, whether the tier keeps "
             "up or not, evenly or "
             "at random; a latency counts from when its sample is due. A repeat lasts --duration, else "
             "--min-time; leaves baseline and ceiling out",
     .group = "Duration"},
    {.name = "ramp",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "what completes in this time at the start of a repeat is thrown away",
     .group = "Duration"},
    {.name = "collective",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "all ranks read each object together, each its part (back end mpiio), one read after the other",
     .group = "Ranks"},
    {.name = "rank-shift",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "over several ranks: a rank reads in a pass what the rank N after it read in the pass before; "
             "leaves baseline and ceiling out",
     .group = "Ranks",
     .at_least = 0},
    {.name = "no-baseline",
     .role = OptionRole::repeat,
     .type = OptionType::flag,
     .help = "leave out the simplest loop on the same work",
     .group = "Yardsticks"},
    {.name = "no-ceiling",
     .role = OptionRole::repeat,
     .type = OptionType::flag,
     .help = "leave out the probe ladder",
     .group = "Yardsticks"},
    {.name = "live-csv",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "a line a second while running: time,tier,threads,files_per_s,mib_per_s",
     .group = "Output"},
};

// When a repeat or one of its runs ends. A time of 0 is no limit.
struct Passes {
  // Whole passes are added until they have lasted this long, without the ramp.
  std::chrono::nanoseconds at_least{0};
};
struct Duration {
  std::chrono::nanoseconds time{0};  // ends at this time, also within a pass; reads in flight are finished
};
struct Stonewall {
  // As Duration; then each rank reads on until it has read as many samples as the fastest rank had.
  std::chrono::nanoseconds time{0};
};
using ReadEnd = std::variant<Passes, Duration, Stonewall>;

std::chrono::nanoseconds time_limit(const ReadEnd& end);  // the limit of Duration or Stonewall; 0 for Passes
std::chrono::nanoseconds shortest(const ReadEnd& end);    // at_least of Passes; 0 for the others
ReadEnd with_time_limit(const ReadEnd& end, std::chrono::nanoseconds time);  // turns Passes into a Duration

// When the next sample is read. In a closed loop, as soon as a thread has finished its last sample. In an
// open loop, when the sample is due.
using ReadArrival = std::variant<ClosedLoop, OpenLoop>;

// Parses "500", "500/s", "2.5k" or "500/s,poisson". Fails with invalid_argument for any other text, and for
// rates below 0.001 or above 1e9.
Result<OpenLoop> parse_open_loop(std::string_view text);

// The most reads in flight that commands allow for one process, over all its threads.
inline constexpr std::uint64_t kMostInFlight = 16384;

// The parsed options. Other objects keep references to it, so it must outlive them.
struct ReadOptions {
  std::vector<unsigned> threads{1};  // thread counts to measure, each at least 1
  // Reads in flight of each thread. If above 1, reads go through deep_queue().
  unsigned depth = 1;
  SampleOrder order = SampleOrder::sequential;
  std::uint64_t window = 1;  // for SampleOrder::physical: how many samples are sorted at a time
  CacheRequest cache = CacheRequest::asis;
  ColdMethod cold_by = ColdMethod::evict;
  bool decode = false;  // the thread that read a sample also decodes it, from JPEG or PNG to RGB
  // Verifies checksums also in measured repeats. The warm-up pass always does if there are checksums.
  bool verify = false;
  // A sample that cannot be read, verified or decoded is counted and does not end the run.
  bool skip_errors = false;
  std::chrono::nanoseconds min_time{0};  // a shorter repeat is marked short
  ReadEnd end = Passes{};
  ReadArrival arrival = ClosedLoop{};  // an open loop has neither baseline nor ceiling
  std::chrono::nanoseconds ramp{0};
  std::size_t repeats = 1;
  bool baseline = true;
  bool ceiling = true;
  std::uint64_t seed = 0;
  // All ranks read each object together (needs Caps::collective). Then there is one thread with depth 1,
  // repeats consist of whole passes, and every object has several samples.
  bool collective = false;
  // RankShare::shift. If it is not 0, baseline and ceiling are not measured, because they do not shift.
  std::uint64_t rank_shift = 0;

  unsigned most_threads() const;
};

// Parses and checks the options. Fails with invalid_argument, which names the options, if they contradict
// each other or the number of ranks.
Result<ReadOptions> parse_read_options(const CommandContext& context);

}  // namespace penstock
