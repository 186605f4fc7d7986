// Micro-benchmark: the time in which each shuffle of `train` gives the next sample of an epoch.
#include <string>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/reading/sampler.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_epoch_order;

namespace {

// A permutation of n samples draws a number below the next power of 4, and draws again if the number is n or
// more. For a billion samples this is rare, because a billion is little less than 4^15. For kSlowestSamples
// it happens after three of four draws.
constexpr uint64_t kBillion = 1'000'000'000;
constexpr uint64_t kSlowestSamples = (uint64_t{1} << 28U) + 1;

void draw(benchmark::State& state, uint64_t samples, Shuffle shuffle) {
  const Sampler sampler(samples, shuffle, 1);
  uint64_t epoch = 0;
  EpochOrder order = sampler.epoch(epoch);
  for (auto _ : state) {
    if (order.left() == 0) order = sampler.epoch(++epoch);
    benchmark::DoNotOptimize(order.next());
  }
  state.SetItemsProcessed(state.iterations());
}

void add(Microbench& to) {
  const auto add_one = [&to](Shuffle shuffle, uint64_t samples) {
    to.add(shuffle_text(shuffle) + "/" + std::to_string(samples),
           [shuffle, samples](benchmark::State& state) { draw(state, samples, shuffle); });
  };
  add_one(Shuffle::none, kBillion);
  add_one(Shuffle::buffer(1000), kBillion);
  add_one(Shuffle::buffer(to.smoke() ? 2000 : 10'000'000), kBillion);
  add_one(Shuffle::global, kBillion);
  add_one(Shuffle::global, kSlowestSamples);
}

}  // namespace

const MicrobenchInfo microbench_epoch_order{
    .name = "epoch_order", .summary = "the next sample of an epoch, by each shuffle of train", .add = add};

}  // namespace penstock
