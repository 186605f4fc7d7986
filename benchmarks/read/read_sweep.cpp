#include "benchmarks/read/read_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "benchmarks/read/block_manifest.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

template <class T>
void shuffle(std::vector<T>& items, const RandomStream& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i, i)]);
}

void judge_all(std::span<ReadCell> cells, Verdict verdict, std::string_view why) {
  for (ReadCell& cell : cells) cell.judge(verdict, why);
}

// Gives the cell a verdict after a run (the warm-up pass or a repeat). Returns true if the tier must not be
// measured further. In that case, all cells of the tier (`cells_of_tier`) have got the verdict.
bool judge_run(ReadCell& cell, std::span<ReadCell> cells_of_tier, const RunTally& tally,
               const ReadOptions& options) {
  for (const std::string& error : tally.first_errors)
    if (cell.first_errors.size() < RunTally::kMostErrorsNamed &&
        std::find(cell.first_errors.begin(), cell.first_errors.end(), error) == cell.first_errors.end())
      cell.first_errors.push_back(error);
  const bool skips_errors = options.skip_errors && tally.samples > 0;
  if (tally.wrong_samples > 0 && !skips_errors) {
    judge_all(cells_of_tier, Verdict::wrong_bytes,
              tally.first_wrong_text + std::string(options.skip_errors ? "" : kSkipAdvice));
    return true;
  }
  if (tally.failure) {
    const Verdict verdict = tally.failure->code == Errc::unsupported ? Verdict::skipped : Verdict::failed;
    const bool may_skip =
        !options.skip_errors && verdict == Verdict::failed && is_sample_error(tally.failure->code);
    judge_all(cells_of_tier, verdict,
              tally.failure->message() + std::string(may_skip ? kSkipAdvice : std::string_view()));
    return true;
  }
  if (tally.wrong_samples > 0 && !options.verify) {  // only the warm-up pass verified samples
    cell.judge(
        Verdict::degraded,
        fmt::format("the warm-up pass found {} with wrong bytes; without --verify the repeats do not check, "
                    "and count {}{}; the first: {}",
                    count_of(tally.wrong_samples, "sample"), tally.wrong_samples == 1 ? "it" : "them",
                    options.decode ? " if the decoder accepts such bytes" : "", tally.first_wrong_text));
  } else if (tally.wrong_samples > 0) {
    cell.judge(Verdict::degraded, fmt::format("{} skipped, {} of them for wrong bytes; the first: {}",
                                              count_of(tally.errors, "sample was", "samples were"),
                                              tally.wrong_samples, tally.first_wrong_text));
  } else if (tally.errors > 0 && cell.repeats.empty()) {
    cell.errors_in_warm_up = tally.errors;  // reported only if no sample of any repeat fails
  }
  return false;
}

// Gives a verdict because of skipped samples. It counts them over all repeats together, because their number
// in a single repeat depends on chance.
void judge_skipped(ReadCell& cell) {
  uint64_t read_count = cell.errors;
  for (const RepeatFigures& repeat : cell.repeats) read_count += repeat.tally.samples;
  const std::string first_error = cell.first_errors.empty() ? "" : cell.first_errors.front();
  if (cell.errors > 0)
    cell.judge(Verdict::degraded,
               fmt::format("{} of {} failed and {} skipped; the first: {}", format_count(cell.errors),
                           count_of(read_count, "sample"), cell.errors == 1 ? "was" : "were", first_error));
  else if (cell.errors_in_warm_up > 0)
    cell.judge(Verdict::degraded,
               fmt::format("in the warm-up pass only, {} failed and {} skipped; the first: {}",
                           count_of(cell.errors_in_warm_up, "sample"),
                           cell.errors_in_warm_up == 1 ? "was" : "were", first_error));
}

// Gives the cell its last verdicts after the last repeat. `stopped`: the user interrupted the sweep.
void judge_at_end(ReadCell& cell, const ReadOptions& options, bool stopped) {
  std::vector<double> rates;
  for (const RepeatFigures& repeat : cell.repeats) rates.push_back(repeat.tally.payload_rate());
  const double median_rate = median(rates);
  judge_skipped(cell);
  if (cell.ceiling_bytes_per_s > 0 && median_rate > kCeilingTolerance * cell.ceiling_bytes_per_s)
    cell.judge(Verdict::ceiling_invalid,
               fmt::format("reads are {:.3g} times as fast as the best probe of the probe series ({}), so "
                           "the ceiling is invalid",
                           median_rate / cell.ceiling_bytes_per_s, cell.ceiling_probe));
  if (stopped && cell.repeats.size() < options.repeats)
    cell.judge(Verdict::interrupted, fmt::format("stopped after {} of {}", cell.repeats.size(),
                                                 count_of(options.repeats, "repeat")));
}

// The cache state of the whole cell. It is the worst state of all repeats, with the fraction of the bytes
// read that came from the device. Bytes read during ramps count here, although they are not payload.
CacheState cell_cache(const ReadCell& cell) {
  if (cell.repeats.empty()) return {};
  CacheState state = cell.repeats.front().cache;
  for (const RepeatFigures& repeat : cell.repeats) combine_cache_states(state, repeat.cache);
  double device_bytes = 0;
  double read_bytes = 0;
  for (const RepeatFigures& repeat : cell.repeats) {
    if (!repeat.device_bytes) return state;
    device_bytes += double(*repeat.device_bytes);
    read_bytes += double(repeat.read_call_bytes);
  }
  const bool from_device = state.client_data != "memory" && state.client_data != "none";
  if (read_bytes > 0 && from_device) state.device_bytes_fraction = device_bytes / read_bytes;
  return state;
}

void record_repeat(const RepeatFigures& repeat, Trial& trial) {
  const RunTally& tally = repeat.tally;
  tally.record(trial);
  const auto record_rate = [&](const MetricInfo& metric, uint64_t bytes) {
    trial.sample(metric, per_second(double(bytes), tally.elapsed_s));
  };
  record_rate(read_metrics::kReadCallRate, repeat.read_call_bytes);
  if (repeat.device_bytes) record_rate(read_metrics::kDeviceRate, *repeat.device_bytes);
  if (tally.due_samples > 0)
    trial.sample(read_metrics::kKeptUpFraction, double(tally.samples) / double(tally.due_samples));
}

// The bytes of each second of all repeats. Empty if no repeat lasted a second.
Series bytes_by_second(const ReadCell& cell) {
  Series series;
  bool has_second = false;
  for (const RepeatFigures& repeat : cell.repeats) {
    const RunTally& tally = repeat.tally;
    if (tally.wall_s <= 0) continue;
    has_second |= tally.wall_s >= 1 - Series::kSecondTolerance_s;
    series.append_seconds(std::vector<double>(tally.bytes_by_second.begin(), tally.bytes_by_second.end()),
                          tally.wall_s);
  }
  return has_second ? series : Series{};
}

}  // namespace

void ReadCell::judge(Verdict what, std::string_view why) {
  add_verdict(verdict, reason, what, why);
}

ReadSweep::ReadSweep(const std::vector<Tier*>& tiers, const Manifest& manifest, const SampleList& samples,
                     const ReadOptions& options, Communicator& ranks, Progress* progress, LiveCsv* live_csv,
                     Log warnings)
    : manifest_(manifest),
      samples_(samples),
      options_(options),
      team_(ranks),
      progress_(progress),
      live_csv_(live_csv),
      warnings_(std::move(warnings)) {
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    tiers_.push_back(std::make_unique<ReadTier>(*tiers[tier]));
    for (const unsigned threads : options_.threads) {
      ReadCell& cell = cells_.emplace_back();
      cell.tier = tier;
      cell.threads = threads;
    }
  }
}

Result<void> ReadSweep::open_tiers() {
  for (const std::unique_ptr<ReadTier>& tier : tiers_) {
    if (tier->engine != nullptr) continue;
    if (progress_ && options_.order == SampleOrder::physical)
      progress_->set_note(tier->tier.name + ": finding the device positions of samples");
    PENSTOCK_TRY(team_.all_ok(tier->open(manifest_, samples_, options_, team_.share(options_.rank_shift))));
  }
  return success();
}

Result<void> ReadSweep::run() {
  PENSTOCK_TRY(open_tiers());
  for (size_t tier = 0; tier < tiers_.size() && !team_.stopped(); ++tier) warm_up(tier);
  std::vector<size_t> order(cells_.size());
  const RandomStream random(options_.seed, "cells");
  for (size_t repeat = 0; repeat < options_.repeats; ++repeat) {
    std::iota(order.begin(), order.end(), size_t{0});
    shuffle(order, random.substream(repeat));
    for (const size_t cell : order) {
      if (team_.stopped()) break;
      if (!tiers_[cells_[cell].tier]->given_up) repeat_cell(cells_[cell], repeat);
      if (progress_) progress_->advance(1);
    }
  }
  if (plan_ != nullptr) plan_->end();
  for (ReadCell& cell : cells_) {
    judge_at_end(cell, options_, team_.stopped());
    if (plan_ != nullptr && plan_->left_out("repeats") > 0 && cell.repeats.size() < options_.repeats)
      cell.judge(cell.repeats.empty() ? Verdict::skipped : Verdict::short_time,
                 fmt::format("{} left out {} of {} repeats", plan_->limit_text(),
                             options_.repeats - cell.repeats.size(), options_.repeats));
  }
  return success();
}

// Reads a pass that is not measured, with the highest thread count, so that all buffers are used once. It
// verifies the samples if the manifest has checksums; but samples that have forms only with --verify, because
// unpacking them in any order may take much longer than reading them.
void ReadSweep::warm_up(size_t index) {
  ReadTier& tier = *tiers_[index];
  if (progress_) progress_->set_note(tier.tier.name + ": warm-up pass");
  if (plan_ != nullptr && !plan_->begin("warm-up", tier.tier.name + ": warm-up")) {
    tier.given_up = true;
    return;
  }
  ReadSpec pass{.threads = options_.most_threads(), .max_passes = 1};
  pass.verify = warm_up_verifies();
  if (const std::chrono::nanoseconds limit = warm_up_limit(); limit.count() != 0) {
    pass.max_passes = 0;
    pass.end = Duration{limit};
  }
  pass.first_pass = tier.passes_started;
  const RunTally tally = team_.run(pass, [&](const ReadSpec& mine) { return tier.engine->run(mine); });
  tier.passes_started += tally.passes;
  for (ReadCell& cell : cells_of(index)) tier.given_up |= judge_run(cell, cells_of(index), tally, options_);
}

bool ReadSweep::warm_up_verifies() const {
  return manifest_.facts().checksums && (options_.verify || manifest_.forms() == 0);
}

// If there is nothing to verify, a part of a pass is enough.
std::chrono::nanoseconds ReadSweep::warm_up_limit() const {
  return warm_up_verifies() ? std::chrono::nanoseconds(0) : time_limit(options_.end);
}

void ReadSweep::repeat_cell(ReadCell& cell, size_t repeat) {
  const size_t index = size_t(&cell - cells_.data());
  const RandomStream random = RandomStream(options_.seed, "arms").substream(repeat);
  if (repeat == 0 && options_.measure_ceiling && begin_part("ceiling", cell, "ceiling")) probe_ceiling(cell);
  const std::string number = fmt::format("{} of {}", repeat + 1, options_.repeats);
  const auto measure_baseline = [&] {
    if (options_.measure_baseline && begin_part("baseline", cell, "baseline " + number))
      baseline_repeat(cell);
  };
  const bool baseline_is_first = random.bits(index) % 2 == 0;
  if (baseline_is_first) measure_baseline();
  if (begin_part("repeats", cell, "repeat " + number)) read_repeat(cell, repeat);
  if (!baseline_is_first) measure_baseline();
}

void ReadSweep::read_repeat(ReadCell& cell, size_t repeat) {
  ReadTier& tier = *tiers_[cell.tier];
  RepeatPlan plan{.progress_text = "reading", .spec = {.threads = cell.threads, .end = options_.end}};
  plan.spec.ramp = options_.ramp;
  plan.spec.verify = options_.verify;
  plan.spec.first_pass = tier.passes_started;
  plan.spec.measured_repeat = repeats_measured_++;
  TierActivity& activity = *tier.tier.activity;
  activity.repeat = repeat + 1;
  plan.run = [&](const ReadSpec& pass, const ReadObserver& observer) {
    take_call_times(*tier.tier.backend);  // drops the times of earlier calls
    const uint64_t operations_before = activity.operations;
    const ReadObserver watch = [&](const RunTally& so_far) {
      activity.raise_operations(operations_before + so_far.samples);
      if (observer) observer(so_far);
    };
    RunTally tally = tier.engine->run(pass, watch);
    tally.calls = take_call_times(*tier.tier.backend);
    activity.raise_operations(operations_before + tally.samples);
    activity.errors += tally.errors;
    return tally;
  };
  if (live_csv_) {
    live_csv_->begin(tier.tier.name, cell.threads);
    plan.observer = [&](const RunTally& so_far) { live_csv_->tick(so_far); };
  }
  std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
  if (!figures) return;
  const RunTally& tally = figures->tally;
  tier.passes_started += tally.passes;
  if (live_csv_) live_csv_->end(tally);
  tier.given_up |= judge_run(cell, cells_of(cell.tier), tally, options_);
  cell.errors += tally.errors;
  if (tally.samples == 0 && tally.errors > 0 && !tally.failure && !team_.stopped()) {
    tier.given_up = true;
    judge_all(cells_of(cell.tier), Verdict::failed,
              fmt::format("no sample could be read; the first: {}", tally.first_errors.front()));
  }
  // This verdict is for a repeat that ended too early without a failure or an interrupt. Those have verdicts
  // of their own.
  if (tally.wall_s < seconds(options_.min_time) && !tally.failure && !team_.stopped())
    cell.judge(Verdict::short_time, fmt::format("a repeat lasted {:.3g} s, less than --min-time {:.3g} s",
                                                tally.wall_s, seconds(options_.min_time)));
  cell.repeats.push_back(std::move(*figures));
}

void ReadSweep::baseline_repeat(ReadCell& cell) {
  ReadTier& tier = *tiers_[cell.tier];
  RepeatPlan plan{.progress_text = "baseline", .spec = {.threads = cell.threads, .end = options_.end}};
  plan.run = [&](const ReadSpec& pass, const ReadObserver&) { return tier.yardsticks->baseline(pass); };
  if (tier.given_up || team_.stopped()) return;
  const std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
  if (!figures) return;
  const RunTally& tally = figures->tally;
  if (team_.stopped()) return;
  const bool measured = !tally.failure && tally.samples > 0;
  cell.baseline_loop = tier.yardsticks->baseline_shape(cell.threads).name();
  cell.baseline_samples_per_s.push_back(measured ? tally.sample_rate()
                                                 : std::numeric_limits<double>::quiet_NaN());
  if (measured && !options_.decode) raise_ceiling(cell, tally, "baseline");
  if (!measured) log(tier.no_baseline_warning(tally));
}

void ReadSweep::probe_ceiling(ReadCell& cell) {
  cell.has_probes = true;
  ReadTier& tier = *tiers_[cell.tier];
  tier.yardsticks->try_probes(cell.threads, [&](const auto& shape, std::chrono::nanoseconds at_least) {
    if (team_.stopped() || tier.given_up) return 0.0;
    RepeatPlan plan{.progress_text = "probing the ceiling, " + shape.name(),
                    .spec = {.threads = cell.threads, .end = Passes{at_least}}};
    plan.run = [&](const ReadSpec& pass, const ReadObserver&) { return tier.yardsticks->probe(shape, pass); };
    const std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
    if (!figures || figures->tally.failure || team_.stopped()) return 0.0;
    raise_ceiling(cell, figures->tally, shape.name());
    return figures->tally.payload_rate();
  });
}

std::optional<RepeatFigures> ReadSweep::measure_repeat(ReadCell& cell, RepeatPlan plan) {
  plan.note = [&](std::string_view what) { show_repeat(cell, what); };
  ReadTier& tier = *tiers_[cell.tier];
  std::optional<RepeatFigures> figures = run_repeat(team_, tier.tier, *tier.cache, plan);
  if (figures) cell.judge(figures->verdict, figures->reason);
  log(tier.cache_not_dropped_warning());
  return figures;
}

void ReadSweep::raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe) {
  if (!cell.has_probes || tally.payload_rate() <= cell.ceiling_bytes_per_s) return;
  cell.ceiling_bytes_per_s = tally.payload_rate();
  cell.ceiling_probe = probe;
}

std::span<ReadCell> ReadSweep::cells_of(size_t tier) {
  return std::span(cells_).subspan(tier * options_.threads.size(), options_.threads.size());
}

void ReadSweep::log(const std::string& warning) {
  if (warnings_ && !warning.empty()) warnings_(warning);
}

void ReadSweep::show_repeat(const ReadCell& cell, std::string_view what) {
  if (!progress_) return;
  progress_->set_note(
      fmt::format("{}, {}: {}", tiers_[cell.tier]->tier.name, count_of(cell.threads, "thread"), what));
}

namespace {

// Records how many bytes a pass has for the rank with the fewest and for the one with the most. Ranks get
// equal numbers of samples, so with samples of different sizes their work differs.
void record_rank_parts(const Manifest& manifest, uint64_t ranks, Trial& trial) {
  trial.parameter("rank_scaling", "strong");
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const RankShare share{.rank = rank, .ranks = ranks};
    uint64_t bytes = 0;
    for (uint64_t i = share.begin(manifest.samples(), 0); i < share.end(manifest.samples(), 0); ++i)
      bytes += manifest.sample(i).length;
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  trial.parameter("rank_bytes_least", least);
  trial.parameter("rank_bytes_most", most);
}

}  // namespace

void record_cell(const ReadCell& cell, const ReadCell& first, const Tier& tier, const Manifest& manifest,
                 uint64_t tier_bytes_read, Trial& trial) {
  trial.parameter("tier", tier.name);
  trial.parameter("threads", cell.threads);
  if (!cell.repeats.empty() && !cell.repeats.front().tally.ranks.empty())
    record_rank_parts(manifest, cell.repeats.front().tally.ranks.size(), trial);
  if (const BlockRest rest = rest_of_blocks(manifest); rest.bytes > 0)
    trial.parameter("left_out", Json{{"objects", rest.objects}, {"bytes", rest.bytes}});
  trial.tier("data", tier);
  trial.cache(cache_json(cell_cache(cell)));
  for (const RepeatFigures& repeat : cell.repeats) record_repeat(repeat, trial);

  const size_t pairs = std::min(cell.repeats.size(), first.repeats.size());
  for (size_t i = 0; i < pairs; ++i) {
    const double first_rate = first.repeats[i].tally.sample_rate();
    trial.sample(read_metrics::kScaling, first_rate > 0 ? cell.repeats[i].tally.sample_rate() / first_rate
                                                        : std::numeric_limits<double>::quiet_NaN());
  }
  if (!cell.baseline_loop.empty()) trial.parameter("baseline_loop", cell.baseline_loop);
  for (const double rate : cell.baseline_samples_per_s) trial.sample(read_metrics::kBaselineRate, rate);
  if (cell.ceiling_bytes_per_s > 0) {
    trial.parameter("ceiling_rung", cell.ceiling_probe);
    trial.sample(read_metrics::kCeilingRate, cell.ceiling_bytes_per_s);
    for (const RepeatFigures& repeat : cell.repeats)
      trial.sample(read_metrics::kCeilingFraction, repeat.tally.payload_rate() / cell.ceiling_bytes_per_s);
  }
  trial.sample(read_metrics::kErrors, double(cell.errors));
  trial.sample(shared_metrics::kTierBytesRead, double(tier_bytes_read));
  trial.parameter("checksums", manifest.facts().checksums);
  if (Series seconds = bytes_by_second(cell); !seconds.values.empty())
    trial.series(shared_metrics::kPayloadSeries, std::move(seconds));
  trial.verdict(cell.verdict, cell.reason);
}

}  // namespace penstock
