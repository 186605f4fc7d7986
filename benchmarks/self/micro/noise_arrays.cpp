// Micro-benchmark: gathers arrays from stocks of noise (NoiseStock), and makes such stocks, which a run does
// once at its start.
#include <string>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/recipe/noise_stock.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_noise_arrays;

namespace {

constexpr uint64_t kArrayBytes = uint64_t{16} << 20U;
constexpr uint64_t kSmokeBytes = 10'000;

void gather(benchmark::State& state, Noise kind, uint64_t bytes) {
  const NoiseStock stock(kind, 1);
  NoiseArray array(stock);
  const RandomStream samples(1, "noise_arrays");
  uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(array.make(samples.substream(index++), bytes).crc32c);
  state.SetBytesProcessed(int64_t(bytes) * state.iterations());
}

void make_stock(benchmark::State& state, Noise kind) {
  uint64_t seed = 0;
  for (auto _ : state) {
    const NoiseStock stock(kind, seed++);
    benchmark::DoNotOptimize(stock.body(0).data());
  }
}

void add(Microbench& to) {
  constexpr std::pair<Noise, const char*> kKinds[] = {
      {Noise::bytes, "bytes"}, {Noise::floats, "floats"}, {Noise::classes, "classes"}};
  const uint64_t bytes = to.smoke() ? kSmokeBytes : kArrayBytes;
  for (const auto& [kind, name] : kKinds) {
    to.add(name, [kind = kind, bytes](benchmark::State& state) {
        gather(state, kind, bytes);
      })->Unit(benchmark::kMicrosecond);
    to.add(std::string("stock/") + name,
           [kind = kind](benchmark::State& state) {
             make_stock(state, kind);  // uses all processors; both wall time and processor time count
           })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
}

}  // namespace

const MicrobenchInfo microbench_noise_arrays{
    .name = "noise_arrays", .summary = "arrays gathered from stocks of noise; stocks made", .add = add};

}  // namespace penstock
