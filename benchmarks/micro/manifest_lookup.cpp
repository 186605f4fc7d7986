// Micro-benchmark: looking samples up, in an order that no cache foresees.
#include <string>

#include "benchmarks/micro/microbench.hpp"
#include "datagen/corpus_samples.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/base/random.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_manifest_lookup;

namespace {

// As many small files as a large data set has.
Result<Manifest> make_manifest(std::uint64_t samples) {
  ManifestFacts facts;
  facts.recipe = "lookups";
  facts.format = "files";
  facts.codec = "raw";
  ManifestBuilder builder(facts);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint32_t object = builder.add_object("n" + std::to_string(10'000'000 + i) + ".JPEG", 1024);
    builder.add_sample({.offset = 0, .length = 1024, .object = object});
  }
  PENSTOCK_ASSIGN(std::vector<std::byte> bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

template <class Look>
void look_up(benchmark::State& state, std::uint64_t samples, Look look) {
  const Result<Manifest> manifest = make_manifest(samples);
  if (!manifest.ok()) return give_up(state, manifest.error());
  const Result<SampleList> list = corpus_samples(*manifest);
  if (!list.ok()) return give_up(state, list.error());
  const Permutation order(samples, 1);
  std::uint64_t n = 0;
  for (auto _ : state) look(*manifest, *list, order.at(n++ % samples));
  state.SetItemsProcessed(state.iterations());
}

void add(Microbench& to) {
  const std::uint64_t samples = to.smoke() ? 100 : 1'000'000;
  to.add("order_alone", [samples](benchmark::State& state) {
    look_up(state, samples,
            [](const Manifest&, const SampleList&, std::uint64_t i) { benchmark::DoNotOptimize(i); });
  });
  to.add("sample_and_name", [samples](benchmark::State& state) {
    look_up(state, samples, [](const Manifest&, const SampleList& list, std::uint64_t i) {
      benchmark::DoNotOptimize(list.name(list[i].object));
    });
  });
  to.add("manifest_entry", [samples](benchmark::State& state) {
    look_up(state, samples, [](const Manifest& manifest, const SampleList&, std::uint64_t i) {
      benchmark::DoNotOptimize(manifest.sample(i).crc32c);
    });
  });
}

}  // namespace

const MicrobenchInfo microbench_manifest_lookup{
    .name = "manifest_lookup", .summary = "a sample's place and name, of a million", .add = add};

}  // namespace penstock
