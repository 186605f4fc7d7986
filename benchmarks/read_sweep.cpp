#include "benchmarks/read_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/random.hpp"
#include "results/statistics.hpp"
#include "results/verdicts.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// How long one repeat may take with everything that is not timed (evicting, asking) before it is cut short.
constexpr std::chrono::seconds kUntimedAtLeast{30};
constexpr int kUntimedTimes = 10;

constexpr std::chrono::milliseconds kBriefRung{50};
constexpr std::chrono::milliseconds kLongRung{500};

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double rate(const ReadTally& tally) {
  return tally.wall_s > 0 ? static_cast<double>(tally.bytes) / tally.wall_s : 0.0;
}

template <class T>
void shuffle(std::vector<T>& items, const RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i, i)]);
}

}  // namespace

struct ReadSweep::Place {
  std::unique_ptr<ReadEngine> engine;
  std::unique_ptr<Yardsticks> yardsticks;
  std::unique_ptr<CacheControl> cache;
  bool given_up = false;
  bool baseline_said = false;
  bool fallback_said = false;
};

struct ReadSweep::Arm {
  std::string what;  // for the progress line
  std::function<ReadTally(const ReadLap&, const ReadWatcher&)> run;
  std::chrono::nanoseconds at_least{0};
  std::chrono::nanoseconds duration{0};
  std::chrono::nanoseconds ramp{0};
  bool reading = false;
};

void ReadCell::judge(Verdict what, std::string_view why) {
  if (what <= verdict) return;
  verdict = what;
  reason = why;
}

ReadSweep::ReadSweep(std::vector<Tier*> tiers, const Manifest& manifest, const SampleList& samples,
                     const SweepSettings& settings, SweepWatch watch)
    : tiers_(std::move(tiers)), manifest_(manifest), samples_(samples), settings_(settings), watch_(watch) {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    places_.push_back(std::make_unique<Place>());
    for (const unsigned threads : settings_.threads) {
      ReadCell& cell = cells_.emplace_back();
      cell.tier = tier;
      cell.threads = threads;
    }
  }
}

ReadSweep::~ReadSweep() = default;

Result<void> ReadSweep::open_place(std::size_t tier) {
  Place& place = *places_[tier];
  const ReadWork work{.manifest = &manifest_, .samples = &samples_, .backend = tiers_[tier]->backend.get()};
  const ReadSettings settings{
      .most_threads = *std::max_element(settings_.threads.begin(), settings_.threads.end()),
      .depth = settings_.depth,
      .order = settings_.order,
      .seed = settings_.seed,
      .decode = settings_.decode,
      .on_error = settings_.on_error};
  PENSTOCK_ASSIGN(place.engine, ReadEngine::make(work, settings));
  place.yardsticks = std::make_unique<Yardsticks>(work, settings);
  place.cache = std::make_unique<CacheControl>(*tiers_[tier], manifest_, samples_, settings_.cache,
                                               settings_.cold_by, settings.most_threads);
  return success();
}

Result<void> ReadSweep::run() {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) PENSTOCK_TRY(open_place(tier));
  for (std::size_t tier = 0; tier < tiers_.size() && !interrupted(); ++tier) warm_up(tier);
  std::vector<std::size_t> order(cells_.size());
  const RandomStream random(settings_.seed, "cells");
  for (std::size_t repeat = 0; repeat < settings_.repeats; ++repeat) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, random.substream(repeat));
    for (const std::size_t cell : order) {
      if (interrupted()) break;
      if (!places_[cells_[cell].tier]->given_up) repeat_cell(cells_[cell], repeat);
      if (watch_.progress) watch_.progress->advance(1);
    }
  }
  judge_cells();
  return success();
}

// One pass with everyone, checked against the manifest, and thrown away: it touches all buffers.
void ReadSweep::warm_up(std::size_t tier) {
  Place& place = *places_[tier];
  if (watch_.progress) watch_.progress->set_note(tiers_[tier]->name + ": warm-up pass");
  ReadLap pass{.threads = place.engine->settings().most_threads, .max_passes = 1};
  pass.verify = manifest_.facts().checksums;
  const ReadTally tally = place.engine->run(pass);
  for (ReadCell& cell : cells_)
    if (cell.tier == tier) judge_tally(cell, tally);
}

void ReadSweep::repeat_cell(ReadCell& cell, std::size_t repeat) {
  const std::size_t index = static_cast<std::size_t>(&cell - cells_.data());
  const RandomStream draw = RandomStream(settings_.seed, "arms").substream(repeat);
  if (repeat == 0 && settings_.ceiling) probe_ceiling(cell);
  if (!settings_.baseline) return read_lap(cell);
  if (draw.bits(index) % 2 == 0) {
    baseline_lap(cell);
    read_lap(cell);
  } else {
    read_lap(cell);
    baseline_lap(cell);
  }
}

void ReadSweep::read_lap(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  const Arm arm{.what = "reading",
                .run = [&](const ReadLap& pass,
                           const ReadWatcher& watcher) { return place.engine->run(pass, watcher); },
                .at_least = settings_.min_time,
                .duration = settings_.duration,
                .ramp = settings_.ramp,
                .reading = true};
  if (watch_.live) watch_.live->begin(tiers_[cell.tier]->name, cell.threads);
  RepeatFigures figures;
  if (!lap(cell, arm, figures)) return;
  const ReadTally& tally = figures.tally;
  if (watch_.live)
    watch_.live->end({.elapsed_s = tally.elapsed_s, .samples = tally.samples, .bytes = tally.bytes});
  judge_tally(cell, tally);
  cell.errors += tally.errors;
  if (tally.samples == 0 && tally.errors > 0 && !tally.failure && !interrupted())
    give_up(cell.tier, Verdict::failed,
            fmt::format("not one sample could be read; the first: {}", tally.first_errors.front()));
  // Done in less time than was asked for; an interrupted or failed repeat has another reason.
  if (tally.wall_s < seconds(settings_.min_time) && !tally.failure && !interrupted())
    cell.judge(Verdict::short_time, fmt::format("a repeat lasted {:.3g} s, less than --min-time {:.3g} s",
                                                tally.wall_s, seconds(settings_.min_time)));
  cell.repeats.push_back(std::move(figures));
}

void ReadSweep::baseline_lap(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  const Arm arm{
      .what = "baseline",
      .run = [&](const ReadLap& pass, const ReadWatcher&) { return place.yardsticks->baseline(pass); },
      .at_least = settings_.min_time,
      .duration = settings_.duration};
  RepeatFigures figures;
  if (place.given_up || interrupted() || !lap(cell, arm, figures)) return;
  const ReadTally& tally = figures.tally;
  const bool good = !tally.failure && tally.wall_s > 0;
  cell.baseline_samples_per_s.push_back(good ? static_cast<double>(tally.samples) / tally.wall_s
                                             : std::numeric_limits<double>::quiet_NaN());
  if (good && !settings_.decode && !interrupted()) raise_ceiling(cell, tally, "baseline");
  if (!good && !interrupted() && !std::exchange(place.baseline_said, true))
    warn(fmt::format("no baseline for '{}': {}", tiers_[cell.tier]->name,
                     tally.failure ? tally.failure->message() : "it read nothing"));
}

// Every rung for a short while, then the two best for longer: what looked best may only have been lucky.
void ReadSweep::probe_ceiling(ReadCell& cell) {
  Place& place = *places_[cell.tier];
  const auto run_rung = [&](const LoopShape& shape, std::chrono::nanoseconds at_least) {
    const Arm arm{
        .what = "probing the ceiling, " + shape.name(),
        .run = [&](const ReadLap& pass, const ReadWatcher&) { return place.yardsticks->rung(shape, pass); },
        .at_least = at_least};
    RepeatFigures figures;
    if (interrupted() || place.given_up || !lap(cell, arm, figures) || figures.tally.failure) return 0.0;
    raise_ceiling(cell, figures.tally, shape.name());
    return rate(figures.tally);
  };
  const std::chrono::nanoseconds brief =
      std::clamp<std::chrono::nanoseconds>(settings_.min_time / 8, kBriefRung, kLongRung);
  std::vector<std::pair<double, LoopShape>> rungs;
  for (const LoopShape& shape : place.yardsticks->ladder(cell.threads))
    rungs.emplace_back(run_rung(shape, brief), shape);
  std::sort(rungs.begin(), rungs.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min<std::size_t>(rungs.size(), 2); ++i)
    if (rungs[i].first > 0) run_rung(rungs[i].second, brief * 3);
}

void ReadSweep::raise_ceiling(ReadCell& cell, const ReadTally& tally, std::string_view rung) const {
  if (!settings_.ceiling || rate(tally) <= cell.ceiling_bytes_per_s) return;
  cell.ceiling_bytes_per_s = rate(tally);
  cell.ceiling_rung = rung;
}

ReadLap ReadSweep::next_pass(const ReadCell& cell, const Arm& arm, const ReadTally& so_far) const {
  ReadLap pass{.threads = cell.threads};
  pass.verify = settings_.verify && arm.reading;
  const std::chrono::nanoseconds gone = nanoseconds(so_far.elapsed_s);
  pass.ramp = std::max(arm.ramp - gone, std::chrono::nanoseconds(0));
  if (arm.duration.count() != 0)
    pass.deadline = std::max(arm.duration + arm.ramp - gone, std::chrono::nanoseconds(1));
  else
    pass.at_least = arm.at_least;
  return pass;
}

// One repeat of one arm: passes until they have lasted long enough, each after what its cache state needs.
// Only a cold cell takes more than one turn, because its passes must be evicted in between. False: it was not
// measured.
bool ReadSweep::lap(ReadCell& cell, const Arm& arm, RepeatFigures& figures) {
  Place& place = *places_[cell.tier];
  Tier& tier = *tiers_[cell.tier];
  std::optional<std::uint64_t> device_bytes = 0;
  const double wanted_s = seconds(arm.duration.count() != 0 ? arm.duration : arm.at_least);
  const Clock::time_point latest = Clock::now() + kUntimedAtLeast + kUntimedTimes * nanoseconds(wanted_s);
  while (true) {
    note_lap(cell, settings_.cache == CacheWish::asis ? "asking the cache" : "preparing the cache");
    const Result<CacheOutcome> cache = place.cache->prepare();
    if (!cache.ok()) return figures.tally.samples > 0;
    cell.judge(cache->verdict, cache->reason);
    say_fallback(cell.tier);
    if (arm.reading && figures.tally.passes == 0) cell.caches.push_back(cache->state);
    const bool emptied = cache->state.method == "evict" || cache->state.method == "drop";

    note_lap(cell, arm.what);
    ReadLap pass = next_pass(cell, arm, figures.tally);
    if (emptied) pass.max_passes = 1;
    const ReadProgress before{figures.tally.elapsed_s, figures.tally.samples, figures.tally.bytes};
    const auto watcher = [&](const ReadProgress& now) {
      if (watch_.live && arm.reading)
        watch_.live->tick(
            {before.elapsed_s + now.elapsed_s, before.samples + now.samples, before.bytes + now.bytes});
    };
    const std::uint64_t moved = tier.backend->moved_bytes().read;
    const std::optional<std::uint64_t> device = device_bytes_read();
    const ReadTally tally = arm.run(pass, watcher);
    const std::optional<std::uint64_t> device_after = device_bytes_read();
    figures.read_call_bytes += tier.backend->moved_bytes().read - moved;
    if (!device || !device_after) device_bytes.reset();
    if (device_bytes) *device_bytes += *device_after - *device;
    figures.tally.append(tally);
    if (tally.failure || interrupted() || !emptied) break;
    if (figures.tally.wall_s >= wanted_s || Clock::now() >= latest) break;
  }
  figures.device_bytes = device_bytes;
  return true;
}

void ReadSweep::judge_tally(ReadCell& cell, const ReadTally& tally) {
  for (const std::string& error : tally.first_errors)
    if (cell.first_errors.size() < ReadTally::kErrorsNamed &&
        std::find(cell.first_errors.begin(), cell.first_errors.end(), error) == cell.first_errors.end())
      cell.first_errors.push_back(error);
  const std::string first = tally.first_errors.empty() ? "" : tally.first_errors.front();
  if (tally.wrong > 0) {
    cell.judge(Verdict::wrong_bytes, first);
    give_up(cell.tier, Verdict::wrong_bytes, first);
  } else if (tally.failure) {
    const Verdict verdict = tally.failure->code == Errc::unsupported ? Verdict::skipped : Verdict::failed;
    give_up(cell.tier, verdict, tally.failure->message());
  } else if (tally.errors > 0) {
    cell.judge(Verdict::degraded, fmt::format("{} samples could not be read and were skipped; the first: {}",
                                              tally.errors, first));
  }
}

void ReadSweep::give_up(std::size_t tier, Verdict verdict, std::string_view why) {
  places_[tier]->given_up = true;
  for (ReadCell& cell : cells_)
    if (cell.tier == tier) cell.judge(verdict, why);
}

void ReadSweep::say_fallback(std::size_t tier) {
  Place& place = *places_[tier];
  if (place.cache->fallback().empty() || std::exchange(place.fallback_said, true)) return;
  warn(fmt::format(
      "{}: {}; the files of the corpus are evicted one by one instead, and the metadata stays warm",
      tiers_[tier]->name, place.cache->fallback()));
}

void ReadSweep::note_lap(const ReadCell& cell, std::string_view what) {
  if (!watch_.progress) return;
  watch_.progress->set_note(fmt::format("{}, {} thread{}: {}", tiers_[cell.tier]->name, cell.threads,
                                        cell.threads == 1 ? "" : "s", what));
}

void ReadSweep::judge_cells() {
  for (ReadCell& cell : cells_) {
    std::vector<double> rates;
    for (const RepeatFigures& repeat : cell.repeats) rates.push_back(rate(repeat.tally));
    const double typical = median(rates);
    if (cell.ceiling_bytes_per_s > 0 && typical > kCeilingTolerance * cell.ceiling_bytes_per_s)
      cell.judge(
          Verdict::ceiling_invalid,
          fmt::format("reads are {:.3g} times as fast as the best rung of the probe ladder ({}): that was "
                      "no ceiling",
                      typical / cell.ceiling_bytes_per_s, cell.ceiling_rung));
    if (interrupted() && cell.repeats.size() < settings_.repeats)
      cell.judge(Verdict::interrupted,
                 fmt::format("stopped after {} of {} repeats", cell.repeats.size(), settings_.repeats));
  }
}

std::uint64_t ReadSweep::tier_bytes_read(std::size_t tier) const {
  const Place& place = *places_[tier];
  return tiers_[tier]->backend->moved_bytes().read +
         (place.yardsticks ? place.yardsticks->uncounted_bytes() : 0) +
         (place.cache ? place.cache->warmed_bytes() : 0);
}

}  // namespace penstock
