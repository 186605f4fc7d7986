#include "benchmarks/read/read_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "datagen/reading/physical_places.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kBriefProbe{50};
constexpr std::chrono::milliseconds kLongProbe{500};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double rate(const RunTally& tally) {
  return tally.wall_s > 0 ? static_cast<double>(tally.bytes) / tally.wall_s : 0.0;
}

template <class T>
void shuffle(std::vector<T>& items, const RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i, i)]);
}

}  // namespace

struct ReadSweep::Place {
  std::unique_ptr<ReadEngine> engine;
  std::uint64_t passes = 0;  // that all ranks have started
  SampleList share;          // of this rank, for the yardsticks; empty where it has all
  std::vector<std::uint64_t> share_places;
  std::unique_ptr<Yardsticks> yardsticks;
  std::unique_ptr<CacheControl> cache;
  bool given_up = false;
  bool baseline_reported = false;
  bool fallback_reported = false;
  PhysicalPlaces physical;
};

void ReadCell::judge(Verdict what, std::string_view why) {
  penstock::judge(verdict, reason, what, why);
}

ReadSweep::ReadSweep(std::vector<Tier*> tiers, const Manifest& manifest, const SampleList& samples,
                     const ReadOptions& options, Communicator& ranks, Progress* progress, LiveCsv* live)
    : tiers_(std::move(tiers)),
      manifest_(manifest),
      samples_(samples),
      options_(options),
      ranks_(ranks),
      team_(ranks),
      progress_(progress),
      live_(live) {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    places_.push_back(std::make_unique<Place>());
    for (const unsigned threads : options_.threads) {
      ReadCell& cell = cells_.emplace_back();
      cell.tier = tier;
      cell.threads = threads;
    }
  }
}

ReadSweep::~ReadSweep() = default;

Result<void> ReadSweep::open_place(std::size_t tier) {
  Place& place = *places_[tier];
  if (options_.order == SampleOrder::physical) {
    if (progress_) progress_->set_note(tiers_[tier]->name + ": looking where samples lie");
    PENSTOCK_ASSIGN(place.physical, physical_places(samples_, *tiers_[tier]->backend));
  }
  const ReadWork work{.manifest = &manifest_,
                      .samples = &samples_,
                      .backend = tiers_[tier]->backend.get(),
                      .offsets = &place.physical.of_sample,
                      .share = team_.share(options_.rank_shift)};
  PENSTOCK_ASSIGN(place.engine, ReadEngine::make(work, options_));
  if (team_.alone())
    place.yardsticks = std::make_unique<Yardsticks>(work, options_);
  else
    open_share(place, work);
  place.cache = std::make_unique<CacheControl>(*tiers_[tier], manifest_, samples_, options_.cache,
                                               options_.cold_by, options_.most_threads());
  return success();
}

// The yardsticks' loops know nothing of shares: they get a list that holds no more.
void ReadSweep::open_share(Place& place, ReadWork work) const {
  const std::uint64_t begin = work.share.begin(samples_.size(), 0);
  const std::uint64_t end = work.share.end(samples_.size(), 0);
  work.share = {};
  place.share = samples_.part(begin, end);
  work.samples = &place.share;
  if (options_.order == SampleOrder::physical) {
    const std::vector<std::uint64_t>& all = place.physical.of_sample;
    place.share_places.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                              all.begin() + static_cast<std::ptrdiff_t>(end));
    work.offsets = &place.share_places;
  }
  place.yardsticks = std::make_unique<Yardsticks>(work, options_);
}

std::string_view ReadSweep::sorted_by(std::size_t tier) const {
  return places_[tier]->physical.by;
}

Result<void> ReadSweep::run() {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) PENSTOCK_TRY(agree(ranks_, open_place(tier)));
  for (std::size_t tier = 0; tier < tiers_.size() && !team_.stopped(); ++tier) warm_up(tier);
  std::vector<std::size_t> order(cells_.size());
  const RandomStream random(options_.seed, "cells");
  for (std::size_t repeat = 0; repeat < options_.repeats; ++repeat) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, random.substream(repeat));
    for (const std::size_t cell : order) {
      if (team_.stopped()) break;
      if (!places_[cells_[cell].tier]->given_up) repeat_cell(cells_[cell], repeat);
      if (progress_) progress_->advance(1);
    }
  }
  judge_cells();
  return success();
}

// One pass with everyone, checked against the manifest where that has checksums, and thrown away: it touches
// all buffers.
void ReadSweep::warm_up(std::size_t tier) {
  Place& place = *places_[tier];
  if (progress_) progress_->set_note(tiers_[tier]->name + ": warm-up pass");
  ReadSpec pass{.threads = options_.most_threads(), .max_passes = 1};
  pass.verify = manifest_.facts().checksums;
  const std::chrono::nanoseconds limit = time_limit(options_.end);
  if (!pass.verify && limit.count() != 0) {  // nothing to check: no reason to see all of it
    pass.max_passes = 0;
    pass.end = Duration{limit};
  }
  const RunTally tally = team_.run(pass, [&](const ReadSpec& mine) { return place.engine->run(mine); });
  place.passes += tally.passes;
  for (ReadCell& cell : cells_)
    if (cell.tier == tier) judge_tally(cell, tally);
}

void ReadSweep::repeat_cell(ReadCell& cell, std::size_t repeat) {
  const std::size_t index = static_cast<std::size_t>(&cell - cells_.data());
  const RandomStream draw = RandomStream(options_.seed, "arms").substream(repeat);
  if (repeat == 0 && options_.ceiling) probe_ceiling(cell);
  if (!options_.baseline) return read_repeat(cell);
  if (draw.bits(index) % 2 == 0) {
    baseline_repeat(cell);
    read_repeat(cell);
  } else {
    read_repeat(cell);
    baseline_repeat(cell);
  }
}

void ReadSweep::read_repeat(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  RepeatPlan plan{.what = "reading", .spec = {.threads = cell.threads, .end = options_.end}};
  plan.spec.ramp = options_.ramp;
  plan.spec.verify = options_.verify;
  plan.spec.first_pass = place.passes;
  plan.spec.measured = repeats_measured_++;
  TimedCalls* const calls = timed_calls(*tiers_[cell.tier]->backend);
  plan.run = [&](const ReadSpec& pass, const ReadObserver& observer) {
    if (calls != nullptr) calls->take();  // what was before
    RunTally tally = place.engine->run(pass, observer);
    if (calls != nullptr) tally.calls = calls->take();
    return tally;
  };
  if (live_) {
    live_->begin(tiers_[cell.tier]->name, cell.threads);
    plan.observer = [&](const ReadProgress& now) { live_->tick(now); };
  }
  std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
  if (!figures) return;
  const RunTally& tally = figures->tally;
  place.passes += tally.passes;
  if (live_) live_->end({.elapsed_s = tally.elapsed_s, .samples = tally.samples, .bytes = tally.bytes});
  judge_tally(cell, tally);
  cell.errors += tally.errors;
  if (tally.samples == 0 && tally.errors > 0 && !tally.failure && !team_.stopped())
    give_up(cell.tier, Verdict::failed,
            fmt::format("not one sample could be read; the first: {}", tally.first_errors.front()));
  // Done in less time than was asked for; an interrupted or failed repeat has another reason.
  if (tally.wall_s < seconds(options_.min_time) && !tally.failure && !team_.stopped())
    cell.judge(Verdict::short_time, fmt::format("a repeat lasted {:.3g} s, less than --min-time {:.3g} s",
                                                tally.wall_s, seconds(options_.min_time)));
  cell.repeats.push_back(std::move(*figures));
}

void ReadSweep::baseline_repeat(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  RepeatPlan plan{.what = "baseline", .spec = {.threads = cell.threads, .end = options_.end}};
  plan.run = [&](const ReadSpec& pass, const ReadObserver&) { return place.yardsticks->baseline(pass); };
  if (place.given_up || team_.stopped()) return;
  const std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
  if (!figures) return;
  const RunTally& tally = figures->tally;
  if (team_.stopped()) return;
  const bool good = !tally.failure && tally.samples > 0;
  cell.baseline_samples_per_s.push_back(good ? static_cast<double>(tally.samples) / tally.wall_s
                                             : std::numeric_limits<double>::quiet_NaN());
  if (good && !options_.decode) raise_ceiling(cell, tally, "baseline");
  if (!good && !std::exchange(place.baseline_reported, true))
    warn(fmt::format("no baseline for '{}': {}", tiers_[cell.tier]->name,
                     tally.failure ? tally.failure->message() : "it read nothing"));
}

// Every probe for a short while, then the two best for longer: what looked best may only have been lucky.
void ReadSweep::probe_ceiling(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  const auto run_probe = [&](const LoopShape& shape, std::chrono::nanoseconds at_least) {
    if (team_.stopped() || place.given_up) return 0.0;
    RepeatPlan plan{.what = "probing the ceiling, " + shape.name(),
                    .spec = {.threads = cell.threads, .end = Passes{at_least}}};
    plan.run = [&](const ReadSpec& pass, const ReadObserver&) {
      return place.yardsticks->probe(shape, pass);
    };
    const std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
    if (!figures || figures->tally.failure || team_.stopped()) return 0.0;
    raise_ceiling(cell, figures->tally, shape.name());
    return rate(figures->tally);
  };
  const std::chrono::nanoseconds brief =
      std::clamp<std::chrono::nanoseconds>(options_.min_time / 8, kBriefProbe, kLongProbe);
  std::vector<std::pair<double, LoopShape>> probes;
  for (const LoopShape& shape : place.yardsticks->probe_series(cell.threads))
    probes.emplace_back(run_probe(shape, brief), shape);
  std::sort(probes.begin(), probes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min<std::size_t>(probes.size(), 2); ++i)
    if (probes[i].first > 0) run_probe(probes[i].second, brief * 3);
}

std::optional<RepeatFigures> ReadSweep::measure_repeat(ReadCell& cell, RepeatPlan plan) {
  plan.note = [&](std::string_view what) { note_repeat(cell, what); };
  std::optional<RepeatFigures> figures = team_.repeat(*tiers_[cell.tier], *places_[cell.tier]->cache, plan);
  if (figures) cell.judge(figures->verdict, figures->reason);
  report_fallback(cell.tier);
  return figures;
}

void ReadSweep::raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe) const {
  if (!options_.ceiling || rate(tally) <= cell.ceiling_bytes_per_s) return;
  cell.ceiling_bytes_per_s = rate(tally);
  cell.ceiling_probe = probe;
}

void ReadSweep::judge_tally(ReadCell& cell, const RunTally& tally) {
  for (const std::string& error : tally.first_errors)
    if (cell.first_errors.size() < RunTally::kErrorsNamed &&
        std::find(cell.first_errors.begin(), cell.first_errors.end(), error) == cell.first_errors.end())
      cell.first_errors.push_back(error);
  const std::string first = tally.first_errors.empty() ? "" : tally.first_errors.front();
  const bool skipping = options_.on_error == OnError::skip && tally.samples > 0;
  if (tally.wrong > 0 && !skipping) {
    give_up(cell.tier, Verdict::wrong_bytes, tally.first_wrong);
  } else if (tally.failure) {
    const Verdict verdict = tally.failure->code == Errc::unsupported ? Verdict::skipped : Verdict::failed;
    give_up(cell.tier, verdict, tally.failure->message());
  } else if (tally.wrong > 0 && !options_.verify) {  // the warm-up pass: no other looked
    cell.judge(Verdict::degraded,
               fmt::format("the warm-up pass found {} of wrong bytes; the repeats check nothing without "
                           "--verify, and count {}{}; the first: {}",
                           tally.wrong == 1 ? "1 sample" : fmt::format("{} samples", tally.wrong),
                           tally.wrong == 1 ? "it" : "them",
                           options_.decode ? " where the decoder takes such bytes" : "", tally.first_wrong));
  } else if (tally.wrong > 0) {
    cell.judge(Verdict::degraded,
               fmt::format("{} skipped, {} of them for wrong bytes; the first: {}",
                           tally.errors == 1 ? "1 sample was" : fmt::format("{} samples were", tally.errors),
                           tally.wrong, tally.first_wrong));
  } else if (tally.errors > 0 && cell.repeats.empty()) {
    cell.failed_in_warm_up = tally.errors;  // the repeats may say more
  }
}

void ReadSweep::give_up(std::size_t tier, Verdict verdict, std::string_view why) {
  places_[tier]->given_up = true;
  for (ReadCell& cell : cells_)
    if (cell.tier == tier) cell.judge(verdict, why);
}

void ReadSweep::report_fallback(std::size_t tier) {
  Place& place = *places_[tier];
  if (place.cache->fallback().empty() || std::exchange(place.fallback_reported, true)) return;
  const bool direct = tiers_[tier]->backend->caps().bypasses_cache;
  warn(fmt::format("{}: {}; {}", tiers_[tier]->name, place.cache->fallback(),
                   direct
                       ? "the data are read past the page cache all the same, and the metadata stays as it is"
                       : "the files of the corpus are evicted one by one instead, and the metadata stays "
                         "warm"));
}

void ReadSweep::note_repeat(const ReadCell& cell, std::string_view what) {
  if (!progress_) return;
  progress_->set_note(fmt::format("{}, {} thread{}: {}", tiers_[cell.tier]->name, cell.threads,
                                  cell.threads == 1 ? "" : "s", what));
}

// Of all repeats together: which of them met how many is chance.
void ReadSweep::judge_skipped(ReadCell& cell) {
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

void ReadSweep::judge_cells() {
  for (ReadCell& cell : cells_) {
    std::vector<double> rates;
    for (const RepeatFigures& repeat : cell.repeats) rates.push_back(rate(repeat.tally));
    const double typical = median(rates);
    judge_skipped(cell);
    if (cell.ceiling_bytes_per_s > 0 && typical > kCeilingTolerance * cell.ceiling_bytes_per_s)
      cell.judge(
          Verdict::ceiling_invalid,
          fmt::format("reads are {:.3g} times as fast as the best probe of the probe series ({}): it is "
                      "no ceiling",
                      typical / cell.ceiling_bytes_per_s, cell.ceiling_probe));
    if (team_.stopped() && cell.repeats.size() < options_.repeats)
      cell.judge(Verdict::interrupted,
                 fmt::format("stopped after {} of {} repeats", cell.repeats.size(), options_.repeats));
  }
}

std::uint64_t ReadSweep::tier_bytes_read(std::size_t tier) const {
  const Place& place = *places_[tier];
  return tiers_[tier]->backend->moved_bytes().read +
         (place.yardsticks ? place.yardsticks->uncounted_bytes() : 0) +
         (place.cache ? place.cache->warmed_bytes() : 0);
}

}  // namespace penstock
