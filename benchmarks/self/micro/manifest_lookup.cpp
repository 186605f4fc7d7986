// Micro-benchmark: looks up samples of a manifest in random order, which no cache can predict. The baseline
// uses plain arrays of the same data: a shuffled order, one entry for each sample and one string for each
// name.
#include <string>
#include <string_view>

#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_manifest_lookup;

namespace {

constexpr size_t kBatch = 1000;

std::string name_of(uint64_t i) {
  return "n" + std::to_string(10'000'000 + i) + ".JPEG";
}

// Makes a manifest of `samples` small files.
Result<Manifest> make_manifest(uint64_t samples) {
  ManifestFacts facts;
  facts.recipe = "lookups";
  facts.format = "files";
  facts.codec = "raw";
  ManifestBuilder builder(facts);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint32_t object = builder.add_object(name_of(i), 1024);
    builder.add_sample({.offset = 0, .length = 1024, .object = object});
  }
  PENSTOCK_ASSIGN(std::vector<std::byte> bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

// The same data without a manifest, as a program with enough memory would store it.
struct PlainSample {
  uint64_t offset = 0;
  uint64_t length = 1024;
  uint32_t object = 0;
  uint32_t crc32c = 0;
};
struct PlainArrays {
  explicit PlainArrays(uint64_t count, const Permutation& shuffle) : samples(count) {
    for (uint64_t i = 0; i < count; ++i) {
      samples[i].object = uint32_t(i);
      names.push_back(name_of(i));
      order.push_back(uint32_t(shuffle.at(i)));
    }
  }
  std::vector<uint32_t> order;
  std::vector<PlainSample> samples;
  std::vector<std::string> names;
};

template <class Lookup, class PlainLookup>
void look_up(benchmark::State& state, uint64_t samples, bool smoke, Lookup lookup, PlainLookup plain_lookup) {
  const Result<Manifest> manifest = make_manifest(samples);
  if (!manifest.ok()) return give_up(state, manifest.error());
  const Result<SampleList> list = corpus_samples(*manifest);
  if (!list.ok()) return give_up(state, list.error());
  const Permutation order(samples, 1);
  // The two lookups are half a pass apart, so that neither finds data that the other has just brought into
  // the cache.
  const PlainArrays plain(samples, order);
  uint64_t n = 0;
  uint64_t m = samples / 2;
  const Result<void> done = by_turns(
      state, {.batch = smoke ? 1 : kBatch}, [&] { lookup(*manifest, *list, order.at(n++ % samples)); },
      [&] { plain_lookup(plain, plain.order[m++ % samples]); });
  if (!done.ok()) give_up(state, done.error());
}

void add(Microbench& to) {
  const bool smoke = to.smoke();
  const uint64_t samples = smoke ? 100 : 1'000'000;
  to.add("order_alone", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest&, const SampleList&, uint64_t i) { benchmark::DoNotOptimize(i); },
          [](const PlainArrays&, uint64_t i) { benchmark::DoNotOptimize(i); });
    })->UseManualTime();
  to.add("sample_and_name", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest&, const SampleList& list, uint64_t i) {
            benchmark::DoNotOptimize(list.name(list[i].object));
          },
          [](const PlainArrays& plain, uint64_t i) {
            benchmark::DoNotOptimize(std::string_view(plain.names[plain.samples[i].object]));
          });
    })->UseManualTime();
  to.add("manifest_entry", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest& manifest, const SampleList&, uint64_t i) {
            benchmark::DoNotOptimize(manifest.sample(i).crc32c);
          },
          [](const PlainArrays& plain, uint64_t i) { benchmark::DoNotOptimize(plain.samples[i].crc32c); });
    })->UseManualTime();
}

}  // namespace

const MicrobenchInfo microbench_manifest_lookup{
    .name = "manifest_lookup", .summary = "a sample's place and name, of a million", .add = add};

}  // namespace penstock
