// Micro-benchmark: opening an object and closing it again, of every back end.
#include <string>

#include "benchmarks/micro/bench_folder.hpp"
#include "benchmarks/micro/microbench.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_open_close;

namespace {

void measure(benchmark::State& state, const BackendInfo& info) {
  const auto folder = BenchFolder::make(info, 4096);
  if (!folder.ok()) return give_up(state, folder.error());
  for (auto _ : state) {
    const auto reader = (*folder)->backend().open(BenchFolder::kObject);
    if (!reader.ok()) return give_up(state, reader.error());
  }
  state.SetItemsProcessed(state.iterations());
}

void add(Microbench& to) {
  for (const BackendInfo* const info : benchable_backends())
    to.add(info->name, [info](benchmark::State& state) { measure(state, *info); });
}

}  // namespace

const MicrobenchInfo microbench_open_close{
    .name = "open_close", .summary = "an object opened and closed, by every back end", .add = add};

}  // namespace penstock
