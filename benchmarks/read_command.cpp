// penstock read: the paper's micro-benchmark over a manifest.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/block_manifest.hpp"
#include "benchmarks/live_csv.hpp"
#include "benchmarks/read_report.hpp"
#include "benchmarks/read_sweep.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/corpus.hpp"
#include "datagen/corpus_samples.hpp"
#include "datagen/format/sample_opener.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/crc32c.hpp"
#include "io_backends/base/progress.hpp"
#include "results/trial.hpp"
#include "results/verdicts.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kMostInFlight = 16384;
constexpr std::uint64_t kObjectsLookedFor = 256;

constexpr OptionSpec kOptions[] = {
    kScanOption,
    kManifestOption,
    kTypesOption,
    {.name = "tier",
     .value = "TIER",
     .help = "one more place that holds the same objects (`penstock copy`), measured beside the corpus's own",
     .group = "Corpus",
     .repeated = true},
    {.name = "only-tiers",
     .type = OptionType::flag,
     .help = "leave the corpus's own place out",
     .group = "Corpus"},
    {.name = "threads",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,2,4,8",
     .help = "workers that read and decode, one row each",
     .group = "Reading",
     .at_least = 1},
    {.name = "depth",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "reads that each thread keeps in flight",
     .group = "Reading",
     .alias = "iodepth",
     .at_least = 1},
    {.name = "order",
     .type = OptionType::choice,
     .value = "shuffled|sequential|physical",
     .fallback = "shuffled",
     .help =
         "shuffled: anew every pass, from the seed; sequential: as in the manifest; physical: shuffled, then "
         "--window samples at a time as they lie on the device",
     .group = "Reading"},
    {.name = "window",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1024",
     .help = "of --order physical: samples sorted at a time, where the file system tells by extent, else by "
             "inode",
     .group = "Reading",
     .at_least = 1},
    {.name = "block",
     .type = OptionType::size,
     .value = "SIZE",
     .help = "read blocks of this size, whole ones of every object, in place of the samples",
     .group = "Reading",
     .at_least = 1},
    {.name = "decode",
     .type = OptionType::choice,
     .value = "none|full",
     .fallback = "none",
     .help = "full: every sample, JPEG or PNG, to RGB, by the thread that read it",
     .group = "Reading"},
    {.name = "on-error",
     .type = OptionType::choice,
     .value = "fail|skip",
     .fallback = "fail",
     .help = "what a sample that cannot be read or decoded does",
     .group = "Reading"},
    {.name = "verify",
     .type = OptionType::flag,
     .help = "check checksums in the measured repeats too, and count the time; the warm-up pass always does",
     .group = "Reading"},
    {.name = "cache",
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "warm",
     .help = "state of the page cache before every repeat, proven where the kernel tells; asis: as it "
             "happens to be",
     .group = "Cache"},
    {.name = "cold-by",
     .type = OptionType::choice,
     .value = "evict|drop",
     .fallback = "evict",
     .help = "evict: the corpus's files; drop: the whole machine's page cache and metadata (root)",
     .group = "Cache"},
    {.name = "repeat",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats of every row, in random order, after a pass that is thrown away",
     .group = "Duration",
     .at_least = 1},
    {.name = "min-time",
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "2s",
     .help = "a repeat takes as many whole passes as last this long, or is marked short; unless given, no "
             "more than 90% of --duration",
     .group = "Duration"},
    {.name = "duration",
     .type = OptionType::duration,
     .value = "TIME",
     .help = "a repeat takes exactly this long, wherever the pass stands; one that ends before --min-time is "
             "marked short",
     .group = "Duration"},
    {.name = "stonewall",
     .type = OptionType::duration,
     .value = "TIME",
     .help = "as --duration, and then each rank goes on until it has read as many samples as the most "
             "advanced had by then",
     .group = "Duration"},
    {.name = "ramp",
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "what completes in this time at the start of a repeat is thrown away",
     .group = "Duration"},
    {.name = "collective",
     .type = OptionType::flag,
     .help = "all ranks read each object together, each its part (back end mpiio), one read after the other",
     .group = "Ranks"},
    {.name = "rank-shift",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "over several ranks: a rank reads in a pass what the rank N after it read in the pass before; "
             "leaves baseline and ceiling out",
     .group = "Ranks",
     .at_least = 0},
    {.name = "no-baseline",
     .type = OptionType::flag,
     .help = "leave out the simplest loop on the same work",
     .group = "Yardsticks"},
    {.name = "no-ceiling",
     .type = OptionType::flag,
     .help = "leave out the probe ladder",
     .group = "Yardsticks"},
    {.name = "live-csv",
     .value = "FILE",
     .help = "a line a second while running: time,tier,threads,files_per_s,mib_per_s",
     .group = "Output"},
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Collective reads come one after the other on every rank, and as many on each.
Result<void> set_collective(const Options& options, SweepSettings& settings) {
  settings.collective = options.flag("collective");
  if (!settings.collective) return success();
  if (!options.given("threads")) settings.threads = {1};
  const bool alone = settings.threads == std::vector<unsigned>{1} && settings.depth == 1;
  if (alone && settings.order != SampleOrder::physical && settings.duration.count() == 0) return success();
  return make_error(
      Errc::invalid_argument,
      "--collective reads one sample at a time on every rank, in whole passes: leave --threads, "
      "--depth, --duration, --stonewall and --order physical out; use more ranks for more readers");
}

Result<void> check_collective(const Tier& tier) {
  if (tier.backend->caps().collective) return success();
  return make_error(
      Errc::invalid_argument,
      fmt::format("tier '{}' has no collective reads: only the back end mpiio has (mpiio:PATH)", tier.name));
}

Result<SweepSettings> sweep_settings(const CommandContext& context) {
  const Options& options = context.options;
  SweepSettings settings;
  for (const std::uint64_t threads : options.list("threads")) {
    if (threads > kMostThreads)
      return make_error(Errc::invalid_argument,
                        fmt::format("--threads {}: at most {} are of use", threads, kMostThreads));
    const unsigned count = static_cast<unsigned>(threads);
    if (std::find(settings.threads.begin(), settings.threads.end(), count) == settings.threads.end())
      settings.threads.push_back(count);
  }
  const std::uint64_t most = *std::max_element(settings.threads.begin(), settings.threads.end());
  const std::uint64_t depth = static_cast<std::uint64_t>(options.integer("depth"));
  if (depth > kMostInFlight / most)
    return make_error(Errc::invalid_argument,
                      fmt::format("--depth {} with {} threads: at most {} reads in flight in all", depth,
                                  most, kMostInFlight));
  settings.depth = static_cast<unsigned>(depth);
  const std::string& order = options.text("order");
  settings.order = order == "shuffled"   ? SampleOrder::shuffled
                   : order == "physical" ? SampleOrder::physical
                                         : SampleOrder::sequential;
  settings.window = static_cast<std::uint64_t>(options.integer("window"));
  settings.cache = cache_wish(options.text("cache"));
  settings.cold_by = options.text("cold-by") == "drop" ? ColdMethod::drop : ColdMethod::evict;
  settings.decode = options.text("decode") == "full";
  settings.verify = options.flag("verify");
  settings.on_error = options.text("on-error") == "skip" ? OnError::skip : OnError::fail;
  settings.min_time = options.duration("min-time");
  if (options.has("duration") && options.has("stonewall"))
    return make_error(Errc::invalid_argument,
                      "--duration and --stonewall say both how long a repeat lasts: leave one out");
  if (options.has("duration") || options.has("stonewall")) {
    settings.stonewall = options.has("stonewall");
    settings.duration = options.duration(settings.stonewall ? "stonewall" : "duration");
    // The bound of `short` that nobody gave; the last sample may end a little before the time is over.
    if (!options.given("min-time"))
      settings.min_time = std::min(settings.min_time, settings.duration * 9 / 10);
  }
  settings.ramp = options.duration("ramp");
  settings.repeats = static_cast<std::size_t>(options.integer("repeat"));
  settings.baseline = !options.flag("no-baseline");
  settings.ceiling = !options.flag("no-ceiling");
  settings.seed = context.seed;
  settings.rank_shift = static_cast<std::uint64_t>(options.integer("rank-shift"));
  if (settings.rank_shift != 0) settings.baseline = settings.ceiling = false;
  PENSTOCK_TRY(set_collective(options, settings));
  return settings;
}

// Whether some of the corpus's objects, spread over all of it, are there: a tier that nobody copied to should
// be told before anything is measured.
Result<void> look_for_objects(Tier& tier, const SampleList& samples, std::string_view corpus) {
  const std::uint64_t looks = std::min<std::uint64_t>(samples.objects(), kObjectsLookedFor);
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::string_view name = samples.name(static_cast<std::uint32_t>(i * samples.objects() / looks));
    const Result<Entry> there = tier.backend->names().stat(name);
    if (!there.ok() && there.error().code == Errc::not_found)
      return make_error(Errc::not_found,
                        fmt::format("tier '{}' lacks '{}' of the corpus; put a copy there first: "
                                    "penstock copy {} --to {}",
                                    tier.name, name, corpus, tier.spec));
  }
  return success();
}

Result<void> check_codec(const Corpus& corpus) {
  PENSTOCK_TRY(SampleOpener::make(corpus.manifest.facts().codec));
  const std::string_view codec = payload_codec(corpus.manifest.facts().codec);
  if (codec == "png") return png_available();
  if (codec.empty() || codec == "mixed" || codec == "jpeg") return success();
  if (corpus.manifest.facts().recipe == "scan") return success();  // 'raw' by its names: the bytes will tell
  return make_error(Errc::invalid_argument,
                    fmt::format("'{}' holds {} samples; --decode full takes jpeg and png: leave it out, and "
                                "the bytes alone are read",
                                corpus.name, codec));
}

// What only one process can do, and what too many cannot share.
Result<void> check_ranks(const CommandContext& context) {
  const int ranks = context.communicator.size();
  if (ranks == 1 && context.options.integer("rank-shift") != 0)
    return make_error(Errc::invalid_argument,
                      "--rank-shift needs several ranks: start it with mpirun or srun");
  if (ranks > 1 && !context.options.text("live-csv").empty())
    return make_error(Errc::invalid_argument,
                      "--live-csv follows one process: leave it out under a launcher");
  return success();
}

Result<void> check_shares(Communicator& ranks, const Corpus& corpus) {
  if (corpus.manifest.samples() < static_cast<std::uint64_t>(ranks.size()))
    return make_error(Errc::invalid_argument,
                      fmt::format("{} ranks cannot share the {} samples of '{}': start as many at most",
                                  ranks.size(), corpus.manifest.samples(), corpus.name));
  std::uint64_t least = crc32c(corpus.manifest.bytes());
  std::uint64_t most = least;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&least, 1), Reduction::min));
  PENSTOCK_TRY(ranks.all_reduce(std::span(&most, 1), Reduction::max));
  if (least == most) return success();
  return make_error(
      Errc::corrupt,
      fmt::format("the ranks see different data sets in '{}': it must be the same on every node, "
                  "and at rest",
                  corpus.name));
}

struct Opened {
  Corpus corpus;
  std::vector<Tier> others;
  SampleList samples;
};

Result<Opened> open_all(const CommandContext& context, const SweepSettings& settings) {
  const Options& options = context.options;
  const std::string& where = context.positionals.front();
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(where, {.scan = options.flag("scan"),
                                                     .manifest_file = options.text("manifest"),
                                                     .types = options.text("types")}));
  if (options.has("block")) {
    if (settings.decode || settings.verify)
      return make_error(Errc::invalid_argument, "--block reads no samples to decode or to verify");
    PENSTOCK_ASSIGN(corpus.manifest, block_manifest(corpus.manifest, options.size("block")));
  }
  if (settings.decode) PENSTOCK_TRY(check_codec(corpus));
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(corpus.manifest));
  if (settings.verify && !corpus.manifest.facts().checksums)
    return make_error(
        Errc::unsupported,
        fmt::format("'{}' has no checksums to verify against: make them with "
                    "'penstock describe {} --scan --checksum --save FILE' for --manifest FILE, or "
                    "leave --verify out",
                    where, where));
  if (options.flag("only-tiers") && options.texts("tier").empty())
    return make_error(Errc::invalid_argument, "--only-tiers needs a --tier to measure");
  PENSTOCK_ASSIGN(std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));
  if (settings.collective) {
    if (!options.flag("only-tiers")) PENSTOCK_TRY(check_collective(corpus.tier));
    for (const Tier& tier : others) PENSTOCK_TRY(check_collective(tier));
  }
  if (settings.on_error == OnError::fail)
    for (Tier& tier : others) PENSTOCK_TRY(look_for_objects(tier, samples, where));
  return Opened{std::move(corpus), std::move(others), std::move(samples)};
}

// The manifest is mapped, which no back end counts, when it lies in the corpus's own place.
std::uint64_t mapped_manifest_bytes(const CommandContext& context, const Corpus& corpus) {
  const bool lies_there = !context.options.flag("scan") && context.options.text("manifest").empty() &&
                          corpus.tier.backend->native_path(kManifestName).has_value();
  return lies_there ? corpus.manifest.bytes().size() : 0;
}

// What a table has no room for: the samples that something was wrong with and that ended nothing; and, where
// there is no table, why a row failed.
void say_what_went_wrong(const ReadSweep& sweep, const std::vector<Tier*>& tiers, bool table, bool skipping) {
  std::vector<std::string> said;
  const auto say = [&](std::string text) {
    if (std::find(said.begin(), said.end(), text) != said.end()) return;
    warn(text);
    said.push_back(std::move(text));
  };
  for (const ReadCell& cell : sweep.cells()) {
    const std::string& tier = tiers[cell.tier]->name;
    if (!table && cell.verdict != Verdict::ok)
      say(fmt::format("{}: {}: {}", tier, verdict_name(cell.verdict), cell.reason));
    if (!skipping) continue;
    for (const std::string& error : cell.first_errors) say(fmt::format("{}: {}", tier, error));
  }
}

// What all ranks read from the tier.
Result<std::uint64_t> bytes_over_ranks(Communicator& ranks, std::uint64_t mine) {
  PENSTOCK_TRY(ranks.all_reduce(std::span(&mine, 1), Reduction::sum));
  return mine;
}

void print_table(const Corpus& corpus, std::span<const Record> records, const Output& output) {
  print(read_heading(corpus, records, output));
  print("\n" + read_table(corpus, records, output));
  print(scaling_note(records));
  for (const Sentence& sentence : sentences(records, output)) print(sentence.text + "\n");
}

Result<int> run(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  PENSTOCK_TRY(check_ranks(context));
  PENSTOCK_ASSIGN(const SweepSettings settings, sweep_settings(context));
  PENSTOCK_ASSIGN(LiveCsv live, LiveCsv::open(context.options.text("live-csv")));
  Result<Opened> all = open_all(context, settings);
  PENSTOCK_TRY(agree(ranks, all.ok() ? success() : Result<void>(all.error())));
  Opened opened = *std::move(all);
  PENSTOCK_TRY(check_shares(ranks, opened.corpus));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  std::vector<Tier*> tiers;
  if (!context.options.flag("only-tiers")) tiers.push_back(&opened.corpus.tier);
  for (Tier& tier : opened.others) tiers.push_back(&tier);
  for (const Tier* tier : tiers) run.measured_tier(*tier);

  const std::uint64_t rows = tiers.size() * settings.threads.size();
  std::vector<Trial> trials(rows, run.trial());  // all begin now: their repeats are interleaved
  std::unique_ptr<ReadSweep> sweep;
  {
    Progress progress(context.output.progress, "read", rows * settings.repeats, "repeats");
    sweep = std::make_unique<ReadSweep>(tiers, opened.corpus.manifest, opened.samples, settings, ranks,
                                        SweepWatch{.progress = &progress, .live = &live});
    PENSTOCK_TRY(sweep->run());
  }
  PENSTOCK_TRY(run.look_at_ranks());
  say_what_went_wrong(*sweep, tiers, !context.output.json, settings.on_error == OnError::skip);
  const CorpusFacts facts = corpus_facts(opened.corpus);
  const std::vector<ReadCell>& cells = sweep->cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Trial& trial = trials[i];
    trial.corpus(facts);
    if (const std::string_view by = sweep->sorted_by(cells[i].tier); !by.empty())
      trial.parameter("sorted_by", by);
    trial.parameter("min_time_s", std::chrono::duration<double>(settings.min_time).count());
    const ReadCell& first = cells[i / settings.threads.size() * settings.threads.size()];
    const Tier& tier = *tiers[cells[i].tier];
    PENSTOCK_ASSIGN(
        const std::uint64_t bytes_read,
        bytes_over_ranks(
            ranks, sweep->tier_bytes_read(cells[i].tier) +
                       (&tier == &opened.corpus.tier ? mapped_manifest_bytes(context, opened.corpus) : 0)));
    record_cell(cells[i], first, tier, opened.corpus.manifest, bytes_read, trial);
    run.keep(std::move(trial));
  }
  if (!context.output.json && ranks.root()) print_table(opened.corpus, run.records(), context.output);
  PENSTOCK_TRY(run.finish());
  return run.exit_code();
}

}  // namespace

extern const CommandInfo command_read;
const CommandInfo command_read{
    .name = "read",
    .summary = "how fast threads read a corpus's samples from its tiers, cold or warm, raw or decoded",
    .options = kOptions,
    .run = &run,
    .synopsis = "penstock read CORPUS [--tier TIER]... [--threads LIST] [--cache cold|warm|asis] [options]",
    .examples =
        {"penstock read corpora/imagenet --cache cold     # 1, 2, 4 and 8 threads, evicted before each "
         "repeat",
         "penstock read ~/photos --scan --decode full --threads 2     # somebody else's JPEGs, decoded"},
    .nouns = "CORPUS",
    .nouns_at_least = 1,
    .nouns_at_most = 1,
    .measures = true,
    .ranks = true,
};

}  // namespace penstock
