// `penstock read`: the micro-benchmark of the paper, on the samples of a manifest.
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_options.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/read_subject.hpp"
#include "benchmarks/read/read_sweep.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr std::string_view kFindings[] = {"ceiling_rung", "sorted_by", "checksums", "rank_scaling"};

// Prints what the table does not show: the errors of skipped samples. Without a table it also prints why a
// row failed.
void report_problems(const ReadSweep& sweep, const std::vector<Tier*>& tiers, bool table, bool skipping) {
  std::set<std::string> said;
  const auto say = [&](const std::string& text) {
    if (said.insert(text).second) warn(text);
  };
  for (const ReadCell& cell : sweep.cells()) {
    const std::string& tier = tiers[cell.tier]->name;
    if (!table && cell.verdict != Verdict::ok)
      say(fmt::format("{}: {}: {}", tier, verdict_name(cell.verdict), cell.reason));
    if (!skipping) continue;
    for (const std::string& error : cell.first_errors) say(fmt::format("{}: {}", tier, error));
  }
}

// The bytes that all ranks read from the tier.
Result<std::uint64_t> bytes_over_ranks(Communicator& ranks, std::uint64_t mine) {
  PENSTOCK_TRY(ranks.all_reduce(std::span(&mine, 1), Reduction::sum));
  return mine;
}

Result<int> run(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  PENSTOCK_ASSIGN(const ReadOptions asked, parse_read_options(context));
  PENSTOCK_ASSIGN(LiveCsv live, LiveCsv::open(context.options.text("live-csv")));
  PENSTOCK_ASSIGN(ReadSubject opened, open_subject(context, asked));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  const std::vector<Tier*> tiers = opened.tiers(!context.options.flag("only-tiers"));
  for (const Tier* tier : tiers) run.check_tier(*tier);

  const std::uint64_t rows = tiers.size() * asked.threads.size();
  // All records start now, because their repeats are interleaved.
  std::vector<Trial> trials(rows, run.trial());
  std::unique_ptr<ReadSweep> sweep;
  {
    Progress progress(context.output.progress, "read", rows * asked.repeats, "repeats");
    sweep = std::make_unique<ReadSweep>(tiers, opened.corpus.manifest, opened.samples, asked, ranks,
                                        &progress, &live);
    PENSTOCK_TRY(sweep->run());
  }
  PENSTOCK_TRY(run.inspect_ranks());
  report_problems(*sweep, tiers, !context.output.json, asked.skip_errors);
  const std::vector<ReadCell>& cells = sweep->cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Trial& trial = trials[i];
    record_corpus(opened.corpus, trial);
    const ReadTier& read = sweep->tier(cells[i].tier);
    if (!read.physical.by.empty()) trial.parameter("sorted_by", read.physical.by);
    trial.parameter("min_time_s", std::chrono::duration<double>(asked.min_time).count());
    const ReadCell& first = cells[i / asked.threads.size() * asked.threads.size()];
    const std::uint64_t mapped = &read.tier == &opened.corpus.tier ? opened.corpus.mapped_bytes : 0;
    PENSTOCK_ASSIGN(const std::uint64_t bytes_read, bytes_over_ranks(ranks, read.bytes_read() + mapped));
    record_cell(cells[i], first, read.tier, opened.corpus.manifest, bytes_read, trial);
    PENSTOCK_TRY(record_overlay(
        read.tier, [&](std::uint64_t bytes) { return bytes_over_ranks(ranks, bytes); }, trial));
    run.add(std::move(trial));
  }
  if (!context.output.json && ranks.root()) {
    print_text(read_report(opened.corpus, run.records(), context.output));
    for (const Sentence& sentence : sentences(run.records(), context.output))
      print_text(sentence.text + "\n");
  }
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
