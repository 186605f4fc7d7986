#include "benchmarks/read/read_sweep.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

#include "benchmarks/read/yardsticks.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/reading/physical_places.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

template <class T>
void shuffle(std::vector<T>& items, const RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i, i)]);
}

}  // namespace

struct ReadSweep::Place {
  std::unique_ptr<ReadEngine> engine;
  std::uint64_t passes = 0;  // that all ranks have started
  std::unique_ptr<Yardsticks> yardsticks;
  std::unique_ptr<CacheControl> cache;
  bool given_up = false;
  bool baseline_reported = false;
  bool fallback_reported = false;
  PhysicalPlaces physical;
};

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
  place.yardsticks = std::make_unique<Yardsticks>(work, options_);
  place.cache = std::make_unique<CacheControl>(*tiers_[tier], manifest_, samples_, options_.cache,
                                               options_.cold_by, options_.most_threads());
  return success();
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
  for (ReadCell& cell : cells_) judge_at_end(cell, options_, team_.stopped());
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
  for (ReadCell& cell : cells_of(tier)) place.given_up |= judge_run(cell, cells_of(tier), tally, options_);
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
  place.given_up |= judge_run(cell, cells_of(cell.tier), tally, options_);
  cell.errors += tally.errors;
  if (tally.samples == 0 && tally.errors > 0 && !tally.failure && !team_.stopped()) {
    place.given_up = true;
    judge_all(cells_of(cell.tier), Verdict::failed,
              fmt::format("not one sample could be read; the first: {}", tally.first_errors.front()));
  }
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
  cell.baseline_samples_per_s.push_back(good ? tally.sample_rate()
                                             : std::numeric_limits<double>::quiet_NaN());
  if (good && !options_.decode) raise_ceiling(cell, tally, "baseline");
  if (!good && !std::exchange(place.baseline_reported, true))
    warn(fmt::format("no baseline for '{}': {}", tiers_[cell.tier]->name,
                     tally.failure ? tally.failure->message() : "it read nothing"));
}

void ReadSweep::probe_ceiling(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  place.yardsticks->try_probes(cell.threads, [&](const auto& shape, std::chrono::nanoseconds at_least) {
    if (team_.stopped() || place.given_up) return 0.0;
    RepeatPlan plan{.what = "probing the ceiling, " + shape.name(),
                    .spec = {.threads = cell.threads, .end = Passes{at_least}}};
    plan.run = [&](const ReadSpec& pass, const ReadObserver&) {
      return place.yardsticks->probe(shape, pass);
    };
    const std::optional<RepeatFigures> figures = measure_repeat(cell, std::move(plan));
    if (!figures || figures->tally.failure || team_.stopped()) return 0.0;
    raise_ceiling(cell, figures->tally, shape.name());
    return figures->tally.payload_rate();
  });
}

std::optional<RepeatFigures> ReadSweep::measure_repeat(ReadCell& cell, RepeatPlan plan) {
  plan.note = [&](std::string_view what) { note_repeat(cell, what); };
  std::optional<RepeatFigures> figures = team_.repeat(*tiers_[cell.tier], *places_[cell.tier]->cache, plan);
  if (figures) cell.judge(figures->verdict, figures->reason);
  report_fallback(cell.tier);
  return figures;
}

void ReadSweep::raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe) const {
  if (!options_.ceiling || tally.payload_rate() <= cell.ceiling_bytes_per_s) return;
  cell.ceiling_bytes_per_s = tally.payload_rate();
  cell.ceiling_probe = probe;
}

std::span<ReadCell> ReadSweep::cells_of(std::size_t tier) {
  return std::span(cells_).subspan(tier * options_.threads.size(), options_.threads.size());
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

std::uint64_t ReadSweep::tier_bytes_read(std::size_t tier) const {
  const Place& place = *places_[tier];
  return tiers_[tier]->backend->moved_bytes().read +
         (place.yardsticks ? place.yardsticks->uncounted_bytes() : 0) +
         (place.cache ? place.cache->warmed_bytes() : 0);
}

}  // namespace penstock
