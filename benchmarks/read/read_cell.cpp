#include "benchmarks/read/read_cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// Of all repeats together: which of them met how many is chance.
void judge_skipped(ReadCell& cell) {
  std::uint64_t reads = cell.errors;
  for (const RepeatFigures& repeat : cell.repeats) reads += repeat.tally.samples;
  const std::string first = cell.first_errors.empty() ? "" : cell.first_errors.front();
  if (cell.errors > 0)
    cell.judge(Verdict::degraded,
               fmt::format("{} of {} reads failed and {} skipped; the first: {}", format_count(cell.errors),
                           format_count(reads), cell.errors == 1 ? "was" : "were", first));
  else if (cell.failed_in_warm_up > 0)
    cell.judge(
        Verdict::degraded,
        fmt::format("{} of the warm-up pass failed and {} skipped, none of the repeats; the first: {}",
                    cell.failed_in_warm_up == 1 ? "1 read" : format_count(cell.failed_in_warm_up) + " reads",
                    cell.failed_in_warm_up == 1 ? "was" : "were", first));
}

// The state of the whole cell: the least flattering residency of its repeats, and all device bytes over all
// that was read meanwhile (a ramp delivers no payload, but it is read).
CacheState cell_cache(const ReadCell& cell) {
  if (cell.repeats.empty()) return {};
  CacheState state = cell.repeats.front().cache;
  for (const RepeatFigures& repeat : cell.repeats) blend(state, repeat.cache);
  double device = 0;
  double consumed = 0;
  for (const RepeatFigures& repeat : cell.repeats) {
    if (!repeat.device_bytes) return state;
    device += static_cast<double>(*repeat.device_bytes);
    consumed += static_cast<double>(repeat.read_call_bytes);
  }
  const bool of_a_device = state.client_data != "memory" && state.client_data != "none";
  if (consumed > 0 && of_a_device) state.device_bytes_fraction = device / consumed;
  return state;
}

void record_repeat(const RepeatFigures& repeat, Trial& trial) {
  const RunTally& tally = repeat.tally;
  tally.record(trial);
  const auto rate = [&](const MetricInfo& metric, std::uint64_t bytes) {
    trial.sample(metric, per_second(static_cast<double>(bytes), tally.elapsed_s));
  };
  rate(read_metrics::kReadCallRate, repeat.read_call_bytes);
  if (repeat.device_bytes) rate(read_metrics::kDeviceRate, *repeat.device_bytes);
  if (tally.due > 0)
    trial.sample(read_metrics::kKeptUp, static_cast<double>(tally.samples) / static_cast<double>(tally.due));
}

// The whole seconds of each repeat: what is left at its end is shorter than a second and would look slower.
std::vector<double> bytes_by_second(const ReadCell& cell) {
  constexpr double kNearlyWhole = 0.01;  // s: the last sample of a second ends a little before it
  std::vector<double> all;
  for (const RepeatFigures& repeat : cell.repeats) {
    const std::vector<std::uint64_t>& bytes = repeat.tally.bytes_by_second;
    const auto whole = static_cast<std::size_t>(repeat.tally.wall_s + kNearlyWhole);
    for (std::size_t i = 0; i < std::min(whole, bytes.size()); ++i)
      all.push_back(static_cast<double>(bytes[i]));
  }
  return all;
}

}  // namespace

void ReadCell::judge(Verdict what, std::string_view why) {
  penstock::judge(verdict, reason, what, why);
}

bool judge_run(ReadCell& cell, std::span<ReadCell> of_tier, const RunTally& tally,
               const ReadOptions& options) {
  for (const std::string& error : tally.first_errors)
    if (cell.first_errors.size() < RunTally::kErrorsNamed &&
        std::find(cell.first_errors.begin(), cell.first_errors.end(), error) == cell.first_errors.end())
      cell.first_errors.push_back(error);
  const bool skipping = options.on_error == OnError::skip && tally.samples > 0;
  if (tally.wrong > 0 && !skipping) {
    judge_all(of_tier, Verdict::wrong_bytes, tally.first_wrong);
    return true;
  }
  if (tally.failure) {
    const Verdict verdict = tally.failure->code == Errc::unsupported ? Verdict::skipped : Verdict::failed;
    judge_all(of_tier, verdict, tally.failure->message());
    return true;
  }
  if (tally.wrong > 0 && !options.verify) {  // the warm-up pass: no other looked
    cell.judge(Verdict::degraded,
               fmt::format("the warm-up pass found {} of wrong bytes; the repeats check nothing without "
                           "--verify, and count {}{}; the first: {}",
                           tally.wrong == 1 ? "1 sample" : fmt::format("{} samples", tally.wrong),
                           tally.wrong == 1 ? "it" : "them",
                           options.decode ? " where the decoder takes such bytes" : "", tally.first_wrong));
  } else if (tally.wrong > 0) {
    cell.judge(Verdict::degraded,
               fmt::format("{} skipped, {} of them for wrong bytes; the first: {}",
                           tally.errors == 1 ? "1 sample was" : fmt::format("{} samples were", tally.errors),
                           tally.wrong, tally.first_wrong));
  } else if (tally.errors > 0 && cell.repeats.empty()) {
    cell.failed_in_warm_up = tally.errors;  // the repeats may say more
  }
  return false;
}

void judge_all(std::span<ReadCell> cells, Verdict verdict, std::string_view why) {
  for (ReadCell& cell : cells) cell.judge(verdict, why);
}

void judge_at_end(ReadCell& cell, const ReadOptions& options, bool stopped) {
  std::vector<double> rates;
  for (const RepeatFigures& repeat : cell.repeats) rates.push_back(repeat.tally.payload_rate());
  const double typical = median(rates);
  judge_skipped(cell);
  if (cell.ceiling_bytes_per_s > 0 && typical > kCeilingTolerance * cell.ceiling_bytes_per_s)
    cell.judge(Verdict::ceiling_invalid,
               fmt::format("reads are {:.3g} times as fast as the best probe of the probe series ({}): it is "
                           "no ceiling",
                           typical / cell.ceiling_bytes_per_s, cell.ceiling_probe));
  if (stopped && cell.repeats.size() < options.repeats)
    cell.judge(Verdict::interrupted,
               fmt::format("stopped after {} of {} repeats", cell.repeats.size(), options.repeats));
}

void record_cell(const ReadCell& cell, const ReadCell& first, const Tier& tier, const Manifest& manifest,
                 std::uint64_t tier_bytes_read, Trial& trial) {
  trial.parameter("tier", tier.name);
  trial.parameter("threads", cell.threads);
  if (!cell.repeats.empty() && !cell.repeats.front().tally.ranks.empty())
    trial.parameter("rank_scaling", "strong");
  trial.tier("data", tier);
  trial.cache(cache_json(cell_cache(cell)));
  for (const RepeatFigures& repeat : cell.repeats) record_repeat(repeat, trial);

  const std::size_t pairs = std::min(cell.repeats.size(), first.repeats.size());
  for (std::size_t i = 0; i < pairs; ++i) {
    const double before = first.repeats[i].tally.sample_rate();
    trial.sample(read_metrics::kScaling, before > 0 ? cell.repeats[i].tally.sample_rate() / before
                                                    : std::numeric_limits<double>::quiet_NaN());
  }
  for (const double rate : cell.baseline_samples_per_s) trial.sample(read_metrics::kBaselineRate, rate);
  if (cell.ceiling_bytes_per_s > 0) {
    trial.parameter("ceiling_rung", cell.ceiling_probe);
    trial.sample(read_metrics::kCeilingRate, cell.ceiling_bytes_per_s);
    for (const RepeatFigures& repeat : cell.repeats)
      trial.sample(read_metrics::kOfCeiling, repeat.tally.payload_rate() / cell.ceiling_bytes_per_s);
  }
  trial.sample(read_metrics::kErrors, static_cast<double>(cell.errors));
  trial.sample(shared_metrics::kTierBytesRead, static_cast<double>(tier_bytes_read));
  trial.parameter("checksums", manifest.facts().checksums);
  if (std::vector<double> seconds = bytes_by_second(cell); !seconds.empty())
    trial.series("payload_bytes", 1.0, std::move(seconds));
  trial.verdict(cell.verdict, cell.reason);
}

}  // namespace penstock
