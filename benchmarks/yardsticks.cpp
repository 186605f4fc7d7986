#include "benchmarks/yardsticks.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "datagen/codec/png.hpp"
#include "datagen/format/sample_opener.hpp"
#include "io_backends/base/baseline.hpp"
#include "io_backends/base/buffer.hpp"
#include "io_backends/base/interrupt.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

std::function<std::uint64_t(std::uint64_t)> order_of(const ReadWork& work, const ReadSettings& settings) {
  if (settings.order == SampleOrder::sequential) return {};
  if (settings.order == SampleOrder::physical) {
    // One pass, sorted once: its threads share it.
    PassOrder order(settings.order, work.samples->size(), settings.seed, settings.window);
    std::vector<std::uint64_t> pass(work.samples->size());
    for (std::uint64_t i = 0; i < pass.size(); ++i) pass[i] = order.sample(0, i);
    return [pass = std::move(pass)](std::uint64_t n) { return pass[n % pass.size()]; };
  }
  const Permutation permutation(work.samples->size(), PassOrder::pass_seed(settings.seed, 0));
  return [permutation](std::uint64_t n) { return permutation.at(n % permutation.size()); };
}

}  // namespace

Yardsticks::Yardsticks(const ReadWork& work, const ReadSettings& settings)
    : work_(work),
      settings_(settings),
      plan_{.samples = *work.samples,
            .backend = *work.backend,
            .whole_objects = work.manifest->one_object_a_sample(),
            .order = order_of(work, settings)} {}

ReadTally Yardsticks::baseline(const ReadLap& lap) {
  return timed(lap, [&](const LoopEnd& end) {
    return settings_.decode ? decoding_loop(lap.threads, end) : baseline_read(plan_, lap.threads, end);
  });
}

std::vector<LoopShape> Yardsticks::ladder(unsigned threads) const {
  std::vector<LoopShape> rungs = ceiling_ladder(plan_, threads);
  if (settings_.depth > 1) rungs.push_back({LoopKind::queued, threads, settings_.depth});
  return rungs;
}

ReadTally Yardsticks::rung(const LoopShape& shape, const ReadLap& lap) {
  return timed(lap, [&](const LoopEnd& end) { return ceiling_read(plan_, shape, end); });
}

// A loop starts its threads anew each time, so that passes are asked for in as few calls as their number can
// be foreseen: one to learn how long a pass takes, one for the rest.
ReadTally Yardsticks::timed(const ReadLap& lap, const Loop& loop) {
  ReadTally tally;
  const std::uint64_t pass = work_.samples->size();
  const std::uint64_t counted_before = work_.backend->moved_bytes().read;
  const double wanted_s = std::chrono::duration<double>(lap.at_least + lap.ramp).count();
  if (lap.at_gate) lap.at_gate();
  const Clock::time_point start = Clock::now();
  std::uint64_t passes_more = 1;
  while (true) {
    LoopEnd end{.first = tally.samples};
    if (lap.deadline.count() != 0) end.at = start + lap.deadline;
    const bool whole_passes = lap.max_passes != 0 || lap.deadline.count() == 0;
    if (whole_passes) end.samples = passes_more * pass;
    const Result<LoopDone> done = loop(end);
    tally.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    if (!done.ok()) {
      tally.failure = done.error();
      tally.first_errors.push_back(done.error().message());
      break;
    }
    tally.samples += done->samples;
    tally.bytes += done->bytes;
    tally.passes = tally.samples / pass;
    if (interrupted() || !whole_passes || done->samples < end.samples) break;
    if (tally.wall_s >= wanted_s || tally.passes == lap.max_passes) break;
    const double a_pass_s = std::max(tally.wall_s / static_cast<double>(tally.passes), 1e-9);
    passes_more = static_cast<std::uint64_t>(std::ceil((wanted_s - tally.wall_s) / a_pass_s));
    if (lap.max_passes != 0) passes_more = std::min(passes_more, lap.max_passes - tally.passes);
  }
  tally.elapsed_s = tally.wall_s;
  const std::uint64_t counted = work_.backend->moved_bytes().read - counted_before;
  uncounted_bytes_ += tally.bytes > counted ? tally.bytes - counted : 0;
  return tally;
}

Result<LoopDone> Yardsticks::decoding_loop(unsigned threads, const LoopEnd& end) const {
  LoopControl control(plan_, end);
  return control.run(threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(std::max<std::size_t>(plan_.samples.largest(), 1));
    PENSTOCK_ASSIGN(SampleOpener opener, SampleOpener::make(work_.manifest->facts().codec));
    PictureDecoder decoder;
    Image image;
    for (SampleList::Sample sample; control.next(sample);) {
      const std::span<std::byte> out = buffer.first(sample.length);
      const std::string_view name = plan_.samples.name(sample.object);
      if (plan_.whole_objects) {
        PENSTOCK_TRY(plan_.backend.read_object(name, sample.length, out));
      } else {
        PENSTOCK_ASSIGN(const std::unique_ptr<Reader> reader, plan_.backend.open(name));
        PENSTOCK_TRY(reader->read_at(sample.offset, out));
      }
      PENSTOCK_ASSIGN(const std::span<const std::byte> payload, opener.open(out));
      PENSTOCK_TRY(decoder.decode(payload, image));
      ++done.samples;
      done.bytes += sample.length;
    }
    return success();
  });
}

}  // namespace penstock
