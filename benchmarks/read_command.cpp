// penstock read: the paper's micro-benchmark over a manifest.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/read/block_manifest.hpp"
#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_options.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/read_sweep.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/commands/command_output.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/corpus/shared_corpus.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr std::string_view kFindings[] = {"ceiling_rung", "sorted_by", "checksums", "rank_scaling"};

constexpr std::uint64_t kObjectsInspected = 256;

Result<void> check_collective(const Tier& tier) {
  if (tier.backend->caps().collective) return success();
  return make_error(
      Errc::invalid_argument,
      fmt::format("tier '{}' has no collective reads: only the back end mpiio has (mpiio:PATH)", tier.name));
}

// Checks that some of the corpus's objects, spread over all of it, exist: a tier without a copy of the corpus
// must fail before anything is measured.
Result<void> look_for_objects(Tier& tier, const SampleList& samples, std::string_view corpus) {
  const std::uint64_t looks = std::min<std::uint64_t>(samples.objects(), kObjectsInspected);
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::string_view name = samples.name(static_cast<std::uint32_t>(i * samples.objects() / looks));
    const Result<Entry> there = tier.backend->names().stat(name);
    if (!there.ok() && there.error().code == Errc::not_found && tier.backend_name == "mem")
      return make_error(
          Errc::not_found,
          fmt::format(
              "tier '{}' is memory of this process, which is empty when a command begins: read from a folder "
              "in /dev/shm for a tier of memory",
              tier.name));
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

struct ReadSubject {
  Corpus corpus;
  std::vector<Tier> others;  // of --tier
  SampleList samples;        // the manifest's, or blocks of its objects
};

Result<ReadSubject> open_all(const CommandContext& context, const ReadOptions& asked) {
  const Options& options = context.options;
  const std::string& where = context.positionals.front();
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(where, {.scan = options.flag("scan"),
                                                     .manifest_file = options.text("manifest"),
                                                     .types = options.text("types")}));
  if (options.has("block")) {
    if (asked.decode || asked.verify)
      return make_error(Errc::invalid_argument, "--block reads no samples to decode or to verify");
    PENSTOCK_ASSIGN(corpus.manifest, block_manifest(corpus.manifest, options.size("block")));
  }
  if (asked.decode) PENSTOCK_TRY(check_codec(corpus));
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(corpus.manifest));
  if (asked.verify && !corpus.manifest.facts().checksums)
    return make_error(
        Errc::unsupported,
        fmt::format("'{}' has no checksums to verify against: make them with "
                    "'penstock describe {} --scan --checksum --save FILE' for --manifest FILE, or "
                    "leave --verify out",
                    where, where));
  if (options.flag("only-tiers") && options.texts("tier").empty())
    return make_error(Errc::invalid_argument, "--only-tiers needs a --tier to measure");
  if (options.flag("only-tiers") && options.given("overlay"))
    return make_error(Errc::invalid_argument,
                      "--overlay replaces the corpus's own tier, which --only-tiers leaves out");
  if (options.given("overlay")) PENSTOCK_TRY(lay_over(corpus, options.text("overlay")));
  PENSTOCK_ASSIGN(std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));
  if (asked.collective) {
    if (!options.flag("only-tiers")) PENSTOCK_TRY(check_collective(corpus.tier));
    for (const Tier& tier : others) PENSTOCK_TRY(check_collective(tier));
  }
  PENSTOCK_TRY(check_cache_request(corpus.tier, asked.cache));
  for (const Tier& tier : others) PENSTOCK_TRY(check_cache_request(tier, asked.cache));
  if (asked.on_error == OnError::fail)
    for (Tier& tier : others) PENSTOCK_TRY(look_for_objects(tier, samples, where));
  return ReadSubject{std::move(corpus), std::move(others), std::move(samples)};
}

// Opens the corpus and the tiers, and checks that they have what the options ask for (checksums, a decoder,
// objects, collective reads, a sample for each rank) before anything is measured. Collective.
Result<ReadSubject> open_subject(const CommandContext& context, const ReadOptions& asked) {
  Result<ReadSubject> opened = open_all(context, asked);
  PENSTOCK_TRY(agree(context.communicator, outcome_of(opened)));
  PENSTOCK_TRY(check_shares(context.communicator, opened->corpus));
  return opened;
}

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
  PENSTOCK_ASSIGN(const ReadOptions asked, parse_read_options(context));
  PENSTOCK_ASSIGN(LiveCsv live, LiveCsv::open(context.options.text("live-csv")));
  PENSTOCK_ASSIGN(ReadSubject opened, open_subject(context, asked));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  std::vector<Tier*> tiers;
  if (!context.options.flag("only-tiers")) tiers.push_back(&opened.corpus.tier);
  for (Tier& tier : opened.others) tiers.push_back(&tier);
  for (const Tier* tier : tiers) run.measured_tier(*tier);

  const std::uint64_t rows = tiers.size() * asked.threads.size();
  std::vector<Trial> trials(rows, run.trial());  // all begin now: their repeats are interleaved
  std::unique_ptr<ReadSweep> sweep;
  {
    Progress progress(context.output.progress, "read", rows * asked.repeats, "repeats");
    sweep = std::make_unique<ReadSweep>(tiers, opened.corpus.manifest, opened.samples, asked, ranks,
                                        &progress, &live);
    PENSTOCK_TRY(sweep->run());
  }
  PENSTOCK_TRY(run.inspect_ranks());
  report_problems(*sweep, tiers, !context.output.json, asked.on_error == OnError::skip);
  const std::vector<ReadCell>& cells = sweep->cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Trial& trial = trials[i];
    record_corpus(opened.corpus, trial);
    if (const std::string_view by = sweep->sorted_by(cells[i].tier); !by.empty())
      trial.parameter("sorted_by", by);
    trial.parameter("min_time_s", std::chrono::duration<double>(asked.min_time).count());
    const ReadCell& first = cells[i / asked.threads.size() * asked.threads.size()];
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
    .options = kReadOptionTable,
    .run = &run,
    .synopsis = "penstock read CORPUS [--tier TIER]... [--threads LIST] [--cache cold|warm|asis] [options]",
    .examples =
        {"penstock read corpora/imagenet --cache cold     # 1, 2, 4 and 8 threads, evicted before each "
         "repeat",
         "penstock read ~/photos --scan --decode full --threads 2     # somebody else's JPEGs, decoded"},
    .arguments = "CORPUS",
    .measures = true,
    .ranks = true,
    .findings = kFindings,
    .metrics = read_metrics::kAll,
};

}  // namespace penstock
