// Micro-benchmark: what keeping a latency costs, for each read.
#include "benchmarks/micro/microbench.hpp"
#include "io_backends/base/random.hpp"
#include "io_backends/base/histogram.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_histogram_add;

namespace {

// Latencies from 50 us to 5 ms, as a device gives them.
void measure(benchmark::State& state) {
  const RandomStream random(1, "latencies");
  std::vector<std::uint64_t> latencies;
  for (std::uint64_t i = 0; i < 4096; ++i)
    latencies.push_back(static_cast<std::uint64_t>(random.log_normal(i, 5e5, 0.8)));
  Histogram histogram;
  std::size_t i = 0;
  for (auto _ : state) histogram.add(latencies[i++ % latencies.size()]);
  benchmark::DoNotOptimize(histogram);
  state.SetItemsProcessed(state.iterations());
}

void add(Microbench& to) {
  to.add("", &measure);
}

}  // namespace

const MicrobenchInfo microbench_histogram_add{
    .name = "histogram_add", .summary = "a latency into its histogram", .add = add};

}  // namespace penstock
