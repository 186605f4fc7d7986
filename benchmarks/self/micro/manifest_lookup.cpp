// Micro-benchmark: looking samples up, in an order that no cache foresees, next to arrays that hold the same
// spelled out: an order that was shuffled before, an entry a sample, a string a name.
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

// As many small files as a large data set has.
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

// The same without a manifest, as who has the memory would keep it.
struct PlainSample {
  uint64_t offset = 0;
  uint64_t length = 1024;
  uint32_t object = 0;
  uint32_t crc32c = 0;
};
struct Plain {
  explicit Plain(uint64_t count, const Permutation& shuffle) : samples(count) {
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

template <class Look, class PlainLook>
void look_up(benchmark::State& state, uint64_t samples, bool smoke, Look look, PlainLook plain_look) {
  const Result<Manifest> manifest = make_manifest(samples);
  if (!manifest.ok()) return give_up(state, manifest.error());
  const Result<SampleList> list = corpus_samples(*manifest);
  if (!list.ok()) return give_up(state, list.error());
  const Permutation order(samples, 1);
  // Another place of the pass, so that neither finds what the other has just brought into the cache.
  const Plain plain(samples, order);
  uint64_t n = 0;
  uint64_t m = samples / 2;
  const Result<void> done = by_turns(
      state, {.batch = smoke ? 1 : kBatch}, [&] { look(*manifest, *list, order.at(n++ % samples)); },
      [&] { plain_look(plain, plain.order[m++ % samples]); });
  if (!done.ok()) give_up(state, done.error());
}

void add(Microbench& to) {
  const bool smoke = to.smoke();
  const uint64_t samples = smoke ? 100 : 1'000'000;
  to.add("order_alone", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest&, const SampleList&, uint64_t i) { benchmark::DoNotOptimize(i); },
          [](const Plain&, uint64_t i) { benchmark::DoNotOptimize(i); });
    })->UseManualTime();
  to.add("sample_and_name", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest&, const SampleList& list, uint64_t i) {
            benchmark::DoNotOptimize(list.name(list[i].object));
          },
          [](const Plain& plain, uint64_t i) {
            benchmark::DoNotOptimize(std::string_view(plain.names[plain.samples[i].object]));
          });
    })->UseManualTime();
  to.add("manifest_entry", [samples, smoke](benchmark::State& state) {
      look_up(
          state, samples, smoke,
          [](const Manifest& manifest, const SampleList&, uint64_t i) {
            benchmark::DoNotOptimize(manifest.sample(i).crc32c);
          },
          [](const Plain& plain, uint64_t i) { benchmark::DoNotOptimize(plain.samples[i].crc32c); });
    })->UseManualTime();
}

}  // namespace

const MicrobenchInfo microbench_manifest_lookup{
    .name = "manifest_lookup", .summary = "a sample's place and name, of a million", .add = add};

}  // namespace penstock
