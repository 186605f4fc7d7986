// Micro-benchmark: what composed pictures cost when a run starts. Such pictures consist of strips, which are
// coded when they are first needed. Makes the strips of one class (of one width and quantizer), and all
// strips that a data set needs until it needs no new ones.
#include "datagen/recipe/strip_stock.hpp"

#include <string>

#include "benchmarks/self/micro/microbench.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_strip_stock;

namespace {

constexpr int kQuantizerPercents[] = {2, 5, 24, 192};
constexpr uint32_t kWidth = 500;
constexpr uint64_t kSamples = 2048;  // these need nearly every class of strips that imagenet uses
constexpr uint64_t kSmokeSamples = 4;

void make_strips(benchmark::State& state, int percent) {
  const Scenery scenery(1);
  size_t bytes = 0;
  for (auto _ : state) {
    const StripStock stock(scenery, RandomStream(1, "strips"));
    const auto made = stock.get(kWidth, percent);
    if (!made.ok()) return give_up(state, made.error());
    bytes = (*made)->bytes.size();
  }
  state.counters["stock_bytes"] = double(bytes);
}

void start_imagenet(benchmark::State& state, uint64_t samples) {
  for (auto _ : state) {
    const auto recipe = default_recipe("imagenet");
    if (!recipe.ok()) return give_up(state, recipe.error());
    const auto maker = (*recipe)->maker();
    if (!maker.ok()) return give_up(state, maker.error());
    for (uint64_t index = 0; index < samples; ++index) {
      const auto made = (*maker)->make(index);
      if (!made.ok()) return give_up(state, made.error());
    }
  }
}

void add(Microbench& to) {
  for (const int percent : kQuantizerPercents)
    to.add("class/" + std::to_string(percent), [percent](benchmark::State& state) {
        make_strips(state, percent);
      })->Unit(benchmark::kMillisecond);
  const uint64_t samples = to.smoke() ? kSmokeSamples : kSamples;
  to.add("imagenet/" + std::to_string(samples),
         [samples](benchmark::State& state) {
           start_imagenet(state, samples);  // paints its scenery on all processors
         })
      ->Unit(benchmark::kMillisecond)
      ->MeasureProcessCPUTime()
      ->UseRealTime();
}

}  // namespace

const MicrobenchInfo microbench_strip_stock{
    .name = "strip_stock",
    .summary = "one class of strips; scenery, strips and the first samples of imagenet",
    .add = add};

}  // namespace penstock
