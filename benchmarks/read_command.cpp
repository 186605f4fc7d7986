// `penstock read`: measures how fast the samples of a manifest are read.
#include "benchmarks/read_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/read_subject.hpp"
#include "benchmarks/read/read_sweep.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/corpus/shared_corpus.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr std::string_view kReadFindings[] = {"ceiling_rung",    "baseline_loop", "sorted_by",
                                              "checksums",       "rank_scaling",  "rank_bytes_least",
                                              "rank_bytes_most", "left_out"};

constexpr OptionSpec kReadOptions[] = {
    kScanOption,
    kManifestOption,
    kTypesOption,
    kFollowLinksOption,
    kFieldOption,
    {.name = "tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "also measure this tier, which must have a copy of the corpus (see penstock copy)",
     .group = "Corpus",
     .repeated = true},
    {.name = "only-tiers",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "measure only the --tier tiers, not the corpus's own tier",
     .group = "Corpus"},
    kOverlayOption,
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,2,4,8",
     .help = "thread counts for reading and decoding; one row per number",
     .group = "Reading",
     .alias = "numjobs",
     .at_least = 1},
    {.name = "depth",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "queue depth: reads in flight per thread",
     .group = "Reading",
     .alias = "iodepth",
     .at_least = 1},
    {.name = "order",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "shuffled|sequential|physical",
     .fallback = "shuffled",
     .help = "shuffled: a new order in every pass, from the seed; sequential: manifest order; physical: "
             "shuffled, then sorted by device position within each --window",
     .group = "Reading"},
    {.name = "window",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1024",
     .help = "with --order physical: number of samples to sort at a time (by extent if the file system "
             "reports it, else by inode)",
     .group = "Reading",
     .at_least = 1},
    {.name = "block",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "read fixed-size blocks instead of whole samples (partial tail blocks are skipped)",
     .group = "Reading",
     .alias = "bs",
     .at_least = 1},
    {.name = "decode",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "none|full",
     .fallback = "none",
     .help = "full: decode every JPEG or PNG sample to RGB in the thread that read it",
     .group = "Reading"},
    {.name = "on-error",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "fail|skip",
     .fallback = "fail",
     .help = "unreadable or undecodable samples: end the run, or count and skip them",
     .group = "Reading"},
    {.name = "verify",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "verify checksums during measured repeats as well (adds to the time); the warm-up pass verifies "
             "them anyway, unless samples are compressed",
     .group = "Reading"},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "warm",
     .help = "state of the page cache before every repeat, verified with the kernel if possible; asis: leave "
             "it unchanged",
     .group = "Cache"},
    {.name = "cold-by",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "evict|drop",
     .fallback = "evict",
     .help = "how to empty the cache. evict: only the corpus's files; drop: the page cache and metadata of "
             "the whole machine (root)",
     .group = "Cache"},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "number of repeats of every row, in random order, after a discarded warm-up pass",
     .group = "Duration",
     .at_least = 1},
    {.name = "min-time",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "2s",
     .help = "minimum time of a repeat, which consists of whole passes; shorter repeats are marked short "
             "(default: at most 90% of --duration)",
     .group = "Duration"},
    {.name = "duration",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "exact time of a repeat, which may end within a pass; shorter than --min-time is marked short",
     .group = "Duration",
     .alias = "runtime",
     .alias_unit = "s"},
    {.name = "stonewall",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "like --duration; then each rank continues until it has read the same number of samples as the "
             "fastest rank",
     .group = "Duration"},
    {.name = "rate",
     .role = OptionRole::work,
     .value = "N/s[,poisson]",
     .help = "open loop: issue N samples/s in total, evenly or Poisson-distributed, regardless of "
             "completions; latency is measured from the scheduled time. A repeat lasts --duration, else "
             "--min-time; no baseline and ceiling",
     .group = "Duration"},
    {.name = "ramp",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "discard samples that complete within this time after the start of a repeat",
     .group = "Duration"},
    kTimeLimitOption,
    {.name = "collective",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "collective reads: all ranks read each object together, each rank its part (back end mpiio), "
             "one object at a time",
     .group = "Ranks"},
    {.name = "rank-shift",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "shift data between ranks by N in each pass, to defeat client caches (IOR -C); no baseline and "
             "ceiling",
     .group = "Ranks",
     .at_least = 0},
    {.name = "no-baseline",
     .role = OptionRole::repeat,
     .type = OptionType::flag,
     .help = "do not measure the baseline, a simple read loop on the same work (saves time)",
     .group = "Yardsticks"},
    {.name = "no-ceiling",
     .role = OptionRole::repeat,
     .type = OptionType::flag,
     .help = "do not measure the ceiling, a series of probes (saves time)",
     .group = "Yardsticks"},
    {.name = "accelerator-rate",
     .role = OptionRole::output,
     .type = OptionType::real,
     .value = "N",
     .help = "images/s of one accelerator, to calculate how many accelerators a tier can feed (default 200)",
     .group = "Output",
     .at_least = 1},
    {.name = "live-csv",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "write one line per second during the run: time,tier,threads,files_per_s,mib_per_s",
     .group = "Output"},
};

constexpr uint64_t kMostThreads = 1024;
constexpr double kLeastSamplesPerS = 1e-3;
constexpr double kMostSamplesPerS = 1e9;

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Checks the options that depend on the number of ranks.
Result<void> check_ranks(const Options& line, int ranks) {
  const int64_t shift = line.integer("rank-shift");
  if (ranks == 1 && shift != 0)
    return make_error(Errc::invalid_argument,
                      "--rank-shift needs several ranks: start it with mpirun or srun");
  if (shift != 0 && shift % ranks == 0)
    return make_error(
        Errc::invalid_argument,
        "--rank-shift {}: with {} ranks, each rank would read its own part again; choose another number",
        shift, ranks);
  if (ranks > 1 && !line.text("live-csv").empty())
    return make_error(Errc::invalid_argument,
                      "--live-csv works for one process: leave it out under a launcher");
  return success();
}

Result<void> parse_threads(const Options& line, ReadOptions& options) {
  options.threads.clear();
  for (const uint64_t threads : line.list("threads")) {
    if (threads > kMostThreads)
      return make_error(Errc::invalid_argument, "--threads {}: use at most {}", threads, kMostThreads);
    const unsigned count = unsigned(threads);
    if (std::find(options.threads.begin(), options.threads.end(), count) == options.threads.end())
      options.threads.push_back(count);
  }
  const uint64_t most_threads = options.most_threads();
  const uint64_t depth = uint64_t(line.integer("depth"));
  if (depth > kMostInFlight / most_threads)
    return make_error(Errc::invalid_argument,
                      "--depth {} with {} threads: use at most {} reads in flight in total", depth,
                      most_threads, kMostInFlight);
  options.depth = unsigned(depth);
  return success();
}

Result<void> parse_order_and_cache(const Options& line, ReadOptions& options) {
  const std::string& order = line.text("order");
  options.order = order == "shuffled"   ? SampleOrder::shuffled
                  : order == "physical" ? SampleOrder::physical
                                        : SampleOrder::sequential;
  options.sort_window = uint64_t(line.integer("window"));
  options.cache = parse_cache_request(line.text("cache"));
  if (line.given("cold-by") && options.cache != CacheRequest::cold)
    return make_error(Errc::invalid_argument, "--cold-by has no effect without --cache cold: add it");
  if (line.given("window") && options.order != SampleOrder::physical)
    return make_error(Errc::invalid_argument,
                      "--window has no effect without --order physical: add that, or leave it out");
  options.cold_method = line.text("cold-by") == "drop" ? ColdMethod::drop : ColdMethod::evict;
  return success();
}

Result<void> parse_end(const Options& line, ReadOptions& options) {
  options.min_time = line.duration("min-time");
  if (line.has("duration") && line.has("stonewall"))
    return make_error(Errc::invalid_argument,
                      "--duration and --stonewall both set how long a repeat lasts: leave one out");
  if (line.has("duration")) options.end = Duration{line.duration("duration")};
  if (line.has("stonewall")) options.end = Stonewall{line.duration("stonewall")};
  // The last sample may end a little before the time limit. So without --min-time a repeat gets the
  // verdict `short` only below 90% of the limit, or below the default of --min-time if that is less.
  if (!std::holds_alternative<Passes>(options.end) && !line.given("min-time"))
    options.min_time = std::min(options.min_time, time_limit(options.end) * 9 / 10);
  if (!std::holds_alternative<Stonewall>(options.end) && time_limit(options.end).count() == 0)
    options.end = Passes{options.min_time};
  return success();
}

// Checks the options for collective reads. Such reads need one read at a time on each rank, and equally many
// reads on all ranks.
Result<void> parse_collective(const Options& line, ReadOptions& options) {
  options.collective = line.flag("collective");
  if (!options.collective) return success();
  if (!line.given("threads")) options.threads = {1};
  const bool one_at_a_time = options.threads == std::vector<unsigned>{1} && options.depth == 1;
  if (one_at_a_time && options.order != SampleOrder::physical && time_limit(options.end).count() == 0)
    return success();
  return make_error(
      Errc::invalid_argument,
      "--collective reads one sample at a time on every rank, in whole passes: leave out --threads, --depth, "
      "--duration, --stonewall and --order physical; for more readers, start more ranks");
}

// Reads the options of an open loop. With --rate, a repeat lasts a given time instead of whole passes. At a
// low rate, one pass over a large corpus may take days.
Result<void> parse_rate(const Options& line, ReadOptions& options) {
  if (!line.has("rate")) return success();
  PENSTOCK_ASSIGN(options.open_loop, parse_open_loop(line.text("rate")));
  if (options.depth > 1 || options.collective)
    return make_error(Errc::invalid_argument,
                      "--rate keeps one read in flight per thread: leave out --depth and --collective; "
                      "--threads sets how many reads may overlap");
  options.measure_baseline = options.measure_ceiling = false;
  if (time_limit(options.end).count() != 0) return success();
  options.end = with_time_limit(options.end, options.min_time);
  options.min_time = options.min_time * 9 / 10;  // 90%: the last sample may be due a little before the end
  return success();
}

// Prints the problems that the table does not show: pictures decoded with warnings, and the errors of skipped
// samples. If there is no table, also each verdict that is not ok, with its reason.
void report_problems(const ReadSweep& sweep, const std::vector<Tier*>& tiers, bool table, bool skipping) {
  std::set<std::string> printed_texts;
  const auto print_once = [&](const std::string& text) {
    if (printed_texts.insert(text).second) warn(text);
  };
  for (const ReadCell& cell : sweep.cells()) {
    const std::string& tier = tiers[cell.tier]->name;
    if (!table && cell.verdict != Verdict::ok)
      print_once(fmt::format("{}: {}: {}", tier, verdict_name(cell.verdict), cell.reason));
    PictureWarningCounts warnings;
    for (const RepeatFigures& repeat : cell.repeats) warnings.add(repeat.tally.picture_warnings);
    if (warnings.samples > 0) print_once(fmt::format("{}: pictures: {}", tier, warnings.text()));
    if (!skipping) continue;
    for (const std::string& error : cell.first_errors) print_once(fmt::format("{}: {}", tier, error));
  }
}

// The sum over all ranks of the number `mine`. Collective: every rank must call it.
Result<uint64_t> sum_over_ranks(Communicator& ranks, uint64_t mine) {
  PENSTOCK_ASSIGN(const std::vector<uint64_t> rank_values, gather<uint64_t>(ranks, mine));
  return std::accumulate(rank_values.begin(), rank_values.end(), uint64_t{0});
}

Result<int> run_read(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  PENSTOCK_ASSIGN(const ReadOptions requested, parse_read_options(context));
  PENSTOCK_ASSIGN(LiveCsv live, LiveCsv::open(context.options.text("live-csv")));
  Result<ReadSubject> opened = open_subject(context, requested);
  PENSTOCK_TRY(all_ok(ranks, opened));
  PENSTOCK_TRY(check_shared_corpus(ranks, opened->corpus));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  const std::vector<Tier*> tiers = opened->tiers(!context.options.flag("only-tiers"));
  for (const Tier* tier : tiers) run.check_tier(*tier);

  const uint64_t row_count = tiers.size() * requested.threads.size();
  // All records get the same start time, because their repeats are interleaved.
  std::vector<Trial> trials(row_count, run.trial());
  std::unique_ptr<ReadSweep> sweep;
  {
    Progress progress(context.output.progress, "read", row_count * requested.repeats, "repeats");
    sweep = std::make_unique<ReadSweep>(tiers, opened->corpus.manifest, opened->samples, requested, ranks,
                                        &progress, &live, &warn);
    PENSTOCK_TRY(sweep->plan_time(run.plan()));
    PENSTOCK_TRY(run.plan().settle(context.options.given("duration")
                                       ? "fewer --threads, or a shorter --duration"
                                       : "fewer --threads, or a shorter --min-time"));
    PENSTOCK_TRY(sweep->run());
  }
  PENSTOCK_TRY(run.inspect_ranks());
  report_problems(*sweep, tiers, !context.output.json, requested.skip_errors);
  const std::vector<ReadCell>& cells = sweep->cells();
  for (size_t i = 0; i < cells.size(); ++i) {
    Trial& trial = trials[i];
    record_corpus(opened->corpus, trial);
    const ReadTier& read_tier = sweep->tier(cells[i].tier);
    if (!read_tier.physical_order.key_kind.empty())
      trial.parameter("sorted_by", read_tier.physical_order.key_kind);
    trial.parameter("min_time_s", std::chrono::duration<double>(requested.min_time).count());
    const ReadCell& first_cell = cells[i / requested.threads.size() * requested.threads.size()];
    const uint64_t mapped = &read_tier.tier == &opened->corpus.tier ? opened->corpus.mapped_bytes : 0;
    PENSTOCK_ASSIGN(const uint64_t bytes_read, sum_over_ranks(ranks, read_tier.bytes_read() + mapped));
    record_cell(cells[i], first_cell, read_tier.tier, opened->corpus.manifest, bytes_read, trial);
    PENSTOCK_TRY(record_overlay(
        read_tier.tier, [&](uint64_t bytes) { return sum_over_ranks(ranks, bytes); }, trial));
    run.add(std::move(trial));
  }
  if (!context.output.json && ranks.root())
    print_text(read_report(opened->corpus, run.records(), context.output));
  PENSTOCK_TRY(run.finish());
  PENSTOCK_TRY(live.check());
  return run.exit_code();
}

Result<TimeRange> expected_read_time(const CommandContext& context) {
  PENSTOCK_ASSIGN(const ReadOptions options, parse_read_options(context));
  PENSTOCK_ASSIGN(ReadSubject subject, open_subject(context, options));
  ReadSweep sweep(subject.tiers(!context.options.flag("only-tiers")), subject.corpus.manifest,
                  subject.samples, options, context.communicator);
  TimePlan plan(context);
  PENSTOCK_TRY(sweep.plan_time(plan));
  return plan.planned_time();
}

}  // namespace

Result<OpenLoop> parse_open_loop(std::string_view text) {
  OpenLoop loop;
  std::string_view number = text;
  loop.poisson = take_suffix(number, ",poisson");
  take_suffix(number, "/s");
  double factor = 1;
  if (take_suffix(number, "k"))
    factor = 1e3;
  else if (take_suffix(number, "M"))
    factor = 1e6;
  const char* const end = number.data() + number.size();
  const auto [stopped, failed] = std::from_chars(number.data(), end, loop.per_second);
  loop.per_second *= factor;
  if (failed == std::errc() && stopped == end && loop.per_second >= kLeastSamplesPerS &&
      loop.per_second <= kMostSamplesPerS)
    return loop;
  return make_error(Errc::invalid_argument,
                    "--rate: '{}' is not a number of samples per second: write 500, 2.5k/s or 500/s,poisson",
                    text);
}

Result<ReadOptions> parse_read_options(const CommandContext& context) {
  const Options& line = context.options;
  PENSTOCK_TRY(check_ranks(line, context.communicator.size()));
  ReadOptions options;
  PENSTOCK_TRY(parse_threads(line, options));
  PENSTOCK_TRY(parse_order_and_cache(line, options));
  options.decode = line.text("decode") == "full";
  options.verify = line.flag("verify");
  options.skip_errors = line.text("on-error") == "skip";
  PENSTOCK_TRY(parse_end(line, options));
  options.ramp = line.duration("ramp");
  options.repeats = size_t(line.integer("repeat"));
  options.rank_shift = uint64_t(line.integer("rank-shift"));
  // No loop of the baseline both decodes and keeps several reads in flight.
  options.measure_baseline =
      !line.flag("no-baseline") && options.rank_shift == 0 && !(options.decode && options.depth > 1);
  options.measure_ceiling = !line.flag("no-ceiling") && options.rank_shift == 0;
  options.seed = context.seed;
  PENSTOCK_TRY(parse_collective(line, options));
  PENSTOCK_TRY(parse_rate(line, options));
  return options;
}

const CommandInfo command_read{
    .name = "read",
    .summary = "measure how fast threads read a corpus from storage tiers, cold or warm, raw or decoded",
    .options = kReadOptions,
    .run = run_read,
    .synopsis = "penstock read CORPUS [--tier TIER]... [--threads LIST] [--cache cold|warm|asis] [options]",
    .examples =
        {"penstock read corpora/imagenet --cache cold     # 1, 2, 4 and 8 threads, evicted before each "
         "repeat",
         "penstock read ~/photos --scan --decode full --threads 2     # any folder of JPEGs, decoded"},
    .arguments = "CORPUS",
    .measures = true,
    .runs_on_ranks = true,
    .findings = kReadFindings,
    .metrics = read_metrics::kAll,
    .expected_time = expected_read_time,
};

}  // namespace penstock
