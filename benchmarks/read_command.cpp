// penstock read: the paper's micro-benchmark over a manifest.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/read_request.hpp"
#include "benchmarks/read/read_sweep.hpp"
#include "datagen/commands/command_output.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {
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

constexpr std::string_view kFindings[] = {"ceiling_rung", "sorted_by", "checksums", "rank_scaling"};

// What a table has no room for: the samples that something was wrong with and that ended nothing; and, where
// there is no table, why a row failed.
void report_problems(const ReadSweep& sweep, const std::vector<Tier*>& tiers, bool table, bool skipping) {
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
  print_text(read_heading(corpus, records, output));
  print_text("\n" + read_table(corpus, records, output));
  print_text(scaling_note(records));
  for (const Sentence& sentence : sentences(records, output)) print_text(sentence.text + "\n");
}

Result<int> run(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  PENSTOCK_ASSIGN(const SweepSettings settings, sweep_settings(context));
  PENSTOCK_ASSIGN(LiveCsv live, LiveCsv::open(context.options.text("live-csv")));
  PENSTOCK_ASSIGN(ReadSubject opened, open_subject(context, settings));
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
  PENSTOCK_TRY(run.inspect_ranks());
  report_problems(*sweep, tiers, !context.output.json, settings.on_error == OnError::skip);
  const std::vector<ReadCell>& cells = sweep->cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Trial& trial = trials[i];
    record_corpus(opened.corpus, trial);
    if (const std::string_view by = sweep->sorted_by(cells[i].tier); !by.empty())
      trial.parameter("sorted_by", by);
    trial.parameter("min_time_s", std::chrono::duration<double>(settings.min_time).count());
    const ReadCell& first = cells[i / settings.threads.size() * settings.threads.size()];
    const Tier& tier = *tiers[cells[i].tier];
    PENSTOCK_ASSIGN(
        const std::uint64_t bytes_read,
        bytes_over_ranks(ranks, sweep->tier_bytes_read(cells[i].tier) +
                                    (&tier == &opened.corpus.tier ? opened.corpus.mapped_bytes : 0)));
    record_cell(cells[i], first, tier, opened.corpus.manifest, bytes_read, trial);
    PENSTOCK_TRY(record_overlay(
        tier, [&](std::uint64_t bytes) { return bytes_over_ranks(ranks, bytes); }, trial));
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
    .arguments = "CORPUS",
    .min_arguments = 1,
    .max_arguments = 1,
    .measures = true,
    .ranks = true,
    .findings = kFindings,
    .metrics = read_metrics::kAll,
};

}  // namespace penstock
