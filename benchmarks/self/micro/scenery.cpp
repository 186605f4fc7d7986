// Micro-benchmark: paints the scenery from which pictures are cut. A run does this once, on all processors.
// Reports wall time and processor time.
#include "datagen/recipe/scenery.hpp"

#include "benchmarks/self/micro/microbench.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_scenery;

namespace {

void paint(benchmark::State& state) {
  uint64_t seed = 0;
  for (auto _ : state) {
    const Scenery scenery(seed++);
    benchmark::DoNotOptimize(scenery.canvases.data());
  }
}

void add(Microbench& to) {
  to.add("", &paint)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
}

}  // namespace

const MicrobenchInfo microbench_scenery{
    .name = "scenery", .summary = "the canvases of a run, painted", .add = add};

}  // namespace penstock
