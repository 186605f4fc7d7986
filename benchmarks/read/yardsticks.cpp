#include "benchmarks/read/yardsticks.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "datagen/codec/png.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/yardsticks/baseline.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kShortestProbe{50};
constexpr std::chrono::milliseconds kLongestProbe{500};
// If the first pass of a queued probe is shorter than this time, or shorter than the run must be, the result
// of that pass is discarded. The probe then reads on.
constexpr std::chrono::nanoseconds kLongPassTime = std::chrono::seconds(1);

std::function<uint64_t(uint64_t)> order_of(const ReadWork& work, const ReadOptions& options) {
  if (options.order == SampleOrder::sequential) return {};
  if (options.order == SampleOrder::physical) {
    // Sort the samples of one pass here, once. All threads then use this order.
    PassOrder order = work.order(options);
    std::vector<uint64_t> pass(work.samples->size());
    for (uint64_t i = 0; i < pass.size(); ++i) pass[i] = order.sample(0, i);
    return [pass = std::move(pass)](uint64_t n) { return pass[n % pass.size()]; };
  }
  const Permutation permutation(work.samples->size(), PassOrder::pass_seed(options.seed, 0));
  return [permutation](uint64_t n) { return permutation.at(n % permutation.size()); };
}

}  // namespace

Yardsticks::Yardsticks(const ReadWork& work, const ReadOptions& options)
    : options_(options),
      work_(own_part(work)),
      plan_{.samples = *work_.samples,
            .backend = *work_.backend,
            .whole_objects = work_.manifest->one_object_per_sample(),
            .order = order_of(work_, options)} {}

// The part of the work that this rank reads. The loops of the yardsticks always read a whole list, so they
// get a list with only the samples of this rank.
ReadWork Yardsticks::own_part(ReadWork work) {
  if (work.share.ranks == 1) return work;
  const uint64_t begin = work.share.begin(work.samples->size(), 0);
  const uint64_t end = work.share.end(work.samples->size(), 0);
  own_samples_ = work.samples->part(begin, end);
  if (options_.order == SampleOrder::physical) {
    own_offsets_.assign(work.offsets->begin() + ptrdiff_t(begin), work.offsets->begin() + ptrdiff_t(end));
    work.offsets = &own_offsets_;
  }
  work.samples = &own_samples_;
  work.share = {};
  return work;
}

LoopShape Yardsticks::baseline_shape(unsigned threads) const {
  return options_.depth > 1 ? LoopShape{LoopKind::queued, threads, options_.depth}
                            : LoopShape{LoopKind::blocking, threads, 1};
}

RunTally Yardsticks::baseline(const ReadSpec& spec) {
  if (options_.depth > 1) return probe(baseline_shape(spec.threads), spec);
  return run_timed(spec, [&](const LoopEnd& end) {
    return options_.decode ? decoding_loop(spec.threads, end) : baseline_read(plan_, spec.threads, end);
  });
}

std::vector<LoopShape> Yardsticks::probe_series(unsigned threads) const {
  std::vector<LoopShape> probes = ceiling_probes(plan_, threads);
  // Streaming is other work than reads at random offsets, and its rate no ceiling of theirs.
  if (options_.order == SampleOrder::shuffled)
    std::erase_if(probes, [](const LoopShape& probe) { return probe.kind == LoopKind::streamed; });
  const LoopShape with_read_depth{LoopKind::queued, threads, options_.depth};
  const auto is_same = [&](const LoopShape& probe) { return probe.name() == with_read_depth.name(); };
  if (options_.depth > 1 && std::none_of(probes.begin(), probes.end(), is_same))
    probes.push_back(with_read_depth);
  return probes;
}

std::chrono::nanoseconds Yardsticks::first_probe_time() const {
  return std::clamp<std::chrono::nanoseconds>(options_.min_time / 8, kShortestProbe, kLongestProbe);
}

void Yardsticks::try_probes(unsigned threads, const MeasureProbe& measure) const {
  std::multimap<double, LoopShape, std::greater<>> by_rate;
  for (const LoopShape& shape : probe_series(threads))
    by_rate.emplace(measure(shape, first_probe_time()), shape);
  int measured_again = 0;
  for (const auto& [rate, shape] : by_rate)
    if (rate > 0 && ++measured_again <= 2) measure(shape, first_probe_time() * 3);
}

RunTally Yardsticks::probe(const LoopShape& shape, const ReadSpec& spec) {
  CeilingLoop probe(plan_, shape);
  const Loop loop = [&](const LoopEnd& end) { return probe.run(end); };
  const bool more_may_follow = spec.max_passes == 0 && time_limit(spec.end).count() == 0;
  if (shape.kind != LoopKind::queued || !more_may_follow) return run_timed(spec, loop);
  ReadSpec pass = spec;
  pass.max_passes = 1;
  const RunTally first_pass = run_timed(pass, loop);
  const double enough_s =
      std::chrono::duration<double>(std::max(shortest_time(spec.end) + spec.ramp, kLongPassTime)).count();
  if (first_pass.failure || interrupted() || first_pass.wall_s >= enough_s) return first_pass;
  ReadSpec rest_spec = spec;
  // at_gate() must not be called again: all ranks met in it before the first pass, and some may have
  // finished.
  rest_spec.at_gate = {};
  return run_timed(rest_spec, loop, first_pass.wall_s);
}

// Measures a loop until `spec` ends it. Each call of `loop` starts new threads, so there are few calls. With
// a time limit there is one. Otherwise the first call reads one pass, unless `seconds_per_pass` is known. The
// next call reads the estimated number of passes that remain. The time to make queues is not counted.
RunTally Yardsticks::run_timed(const ReadSpec& spec, const Loop& loop, double seconds_per_pass) {
  RunTally tally;
  const uint64_t samples_per_pass = work_.samples->size();
  const uint64_t counted_before = work_.backend->moved_bytes().read;
  const double wanted_s = std::chrono::duration<double>(shortest_time(spec.end) + spec.ramp).count();
  if (spec.at_gate) spec.at_gate();
  const Clock::time_point start = Clock::now();
  std::chrono::nanoseconds queue_setup_time{0};
  // At the end of each call the queues run empty, which is slow. So one pass too many costs less than another
  // call.
  uint64_t more_passes = seconds_per_pass > 0 ? uint64_t(wanted_s / seconds_per_pass * 1.25) + 1 : 1;
  while (true) {
    LoopEnd end{.first_read = tally.samples};
    const std::chrono::nanoseconds limit = time_limit(spec.end);
    if (limit.count() != 0) end.deadline = start + queue_setup_time + limit;
    const bool whole_passes = spec.max_passes != 0 || limit.count() == 0;
    if (whole_passes) end.samples = more_passes * samples_per_pass;
    const Result<LoopDone> done = loop(end);
    if (done.ok()) queue_setup_time += done->queue_setup_time;
    tally.wall_s = std::chrono::duration<double>(Clock::now() - start - queue_setup_time).count();
    if (!done.ok()) {
      tally.failure = done.error();
      tally.first_errors.push_back(done.error().message());
      break;
    }
    tally.samples += done->samples;
    tally.bytes += done->bytes;
    tally.passes = tally.samples / samples_per_pass;
    if (interrupted() || !whole_passes || done->samples < end.samples) break;
    if (tally.wall_s >= wanted_s || tally.passes == spec.max_passes) break;
    seconds_per_pass = std::max(tally.wall_s / double(tally.passes), 1e-9);
    more_passes = uint64_t(std::ceil((wanted_s - tally.wall_s) / seconds_per_pass));
    if (spec.max_passes != 0) more_passes = std::min(more_passes, spec.max_passes - tally.passes);
  }
  tally.elapsed_s = tally.wall_s;
  const uint64_t counted_bytes = work_.backend->moved_bytes().read - counted_before;
  uncounted_bytes_ += tally.bytes > counted_bytes ? tally.bytes - counted_bytes : 0;
  return tally;
}

Result<LoopDone> Yardsticks::decoding_loop(unsigned threads, const LoopEnd& end) const {
  LoopControl control(plan_, end);
  return control.run(threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(whole_huge_pages(std::max<size_t>(plan_.samples.largest_bytes(), 1)));
    PENSTOCK_ASSIGN(SampleOpener opener, SampleOpener::make(*work_.manifest));
    PictureDecoder decoder;
    Image image;
    uint64_t index = 0;
    for (SampleList::Sample sample; control.next(sample, &index);) {
      const std::span<std::byte> out = buffer.first(sample.length);
      const std::string_view name = plan_.samples.name(sample.object);
      if (plan_.whole_objects) {
        PENSTOCK_TRY(plan_.backend.read_object(name, sample.length, out));
      } else {
        PENSTOCK_ASSIGN(const std::unique_ptr<Reader> reader, plan_.backend.open(name));
        PENSTOCK_TRY(reader->read_at(sample.offset, out));
      }
      PENSTOCK_ASSIGN(const std::span<const std::byte> payload, opener.open(index, out));
      PENSTOCK_TRY(decoder.decode(payload, image));
      ++done.samples;
      done.bytes += sample.length;
    }
    return success();
  });
}

}  // namespace penstock
