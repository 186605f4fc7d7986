// Micro-benchmark: adds a latency to a Histogram, which `read` does for each sample. The baseline is the
// plainest histogram: one count for each power of two.
#include <array>
#include <bit>

#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_histogram_add;

namespace {

// The latencies are like those of a device: from about 50 us to 5 ms.
void measure(benchmark::State& state, bool smoke) {
  const RandomStream random(1, "latencies");
  std::vector<uint64_t> latencies;
  for (uint64_t i = 0; i < 4096; ++i) latencies.push_back(uint64_t(random.log_normal(i, 5e5, 0.8)));
  Histogram histogram;
  std::array<uint64_t, 65> powers{};
  size_t i = 0;
  size_t j = 0;
  const Result<void> done = by_turns(
      state, {.batch = smoke ? 1 : latencies.size()},
      [&] { histogram.add(latencies[i++ % latencies.size()]); },
      [&] { ++powers[size_t(std::bit_width(latencies[j++ % latencies.size()]))]; });
  benchmark::DoNotOptimize(histogram);
  benchmark::DoNotOptimize(powers);
  if (!done.ok()) give_up(state, done.error());
}

void add(Microbench& to) {
  to.add("", [smoke = to.smoke()](benchmark::State& state) { measure(state, smoke); })->UseManualTime();
}

}  // namespace

const MicrobenchInfo microbench_histogram_add{
    .name = "histogram_add", .summary = "a latency into its histogram", .add = add};

}  // namespace penstock
