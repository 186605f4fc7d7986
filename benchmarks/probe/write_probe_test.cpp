#include "benchmarks/probe/write_probe.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

// Concatenates `blocks` blocks whose sizes are taken from `sizes` in turn.
std::vector<std::byte> blocks_of(BlockNoise& noise, size_t blocks, std::initializer_list<size_t> sizes) {
  std::vector<std::byte> all;
  for (size_t i = 0; i < blocks; ++i) {
    const auto block = noise.next(*(sizes.begin() + i % sizes.size()));
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

TEST(BlockNoise, NeverHasEightBytesTwice) {
  BlockNoise noise(1, 64U << 10U);
  const std::vector<std::byte> all = blocks_of(noise, 48, {64U << 10U, 4096, 12'288});
  std::set<uint64_t> words;
  for (size_t at = 0; at < all.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, all.data() + at, sizeof word);
    ASSERT_TRUE(words.insert(word).second) << "at " << at;
  }
}

// A compressor with a dictionary needs repeated byte sequences, and the test above shows that there are none.
// A compressor that codes single bytes needs some bytes to be more frequent than others, and this test shows
// that none are.
TEST(BlockNoise, HasEachByteAsOftenAsAnother) {
  BlockNoise noise(1, 4096);
  const std::vector<std::byte> all = blocks_of(noise, 256, {4096});
  std::array<int, 256> count{};
  for (const std::byte byte : all) ++count[std::to_integer<size_t>(byte)];
  // Each byte value occurs 4096 times on average, with a standard deviation of 64.
  EXPECT_GT(*std::min_element(count.begin(), count.end()), 4096 - 6 * 64);
  EXPECT_LT(*std::max_element(count.begin(), count.end()), 4096 + 6 * 64);
}

TEST(BlockNoise, DiffersForEachSeedAndHasAnyLength) {
  BlockNoise one(1, 13);
  BlockNoise other(2, 13);
  EXPECT_NE(text_of(one.next(13)), text_of(other.next(13)));
  EXPECT_EQ(one.next(5).size(), 5U);
}

class WriteProbeTest : public testing::Test {
 protected:
  static Tier tier(const std::string& options = "") {
    static int count = 0;
    auto opened = open_tier("t=mem:write-probe" + std::to_string(count++) + options, kNoNamedTiers);
    EXPECT_OK(opened);
    return *std::move(opened);
  }
  static WriteProbe probe(Tier& tier, const WriteShape& shape) {
    return WriteProbe(
        *tier.backend, shape, [](uint64_t n) { return "probe/" + std::to_string(n); },
        [](unsigned writer) { return writer; });
  }
  static ReadSpec spec(std::chrono::nanoseconds deadline, uint64_t most_passes = 0) {
    ReadSpec spec{.max_passes = most_passes};
    spec.end = Duration{deadline};
    return spec;
  }
  static uint64_t bytes_of_object(Tier& tier, int n) {
    const auto entry = tier.backend->names().stat("probe/" + std::to_string(n));
    return entry.ok() ? entry->bytes : 0;
  }
};

TEST_F(WriteProbeTest, WritesAllObjectsOfAPass) {
  Tier store = tier();
  WriteProbe all =
      probe(store, {.writers = 2, .objects_per_writer = 3, .object_bytes = 10'000, .block_bytes = 4096});
  const RunTally tally = all.run(spec(1h, 1));
  EXPECT_FALSE(tally.failure);
  EXPECT_EQ(tally.bytes, 60'000U);
  EXPECT_EQ(tally.samples, 18U) << "blocks, the last of each object shorter";
  EXPECT_EQ(tally.passes, 1U);
  EXPECT_GT(tally.wall_s, 0);
  for (int n = 0; n < 6; ++n) EXPECT_EQ(bytes_of_object(store, n), 10'000U);
  EXPECT_EQ(store.backend->moved_bytes().written, tally.bytes);
  EXPECT_OK(all.remove());
  EXPECT_EQ(bytes_of_object(store, 0), 0U);
  EXPECT_OK(all.remove()) << "what is not there is removed";
}

TEST_F(WriteProbeTest, CountsObjectsWhereTheyAreTheSamples) {
  Tier store = tier();
  const WriteShape shape{
      .writers = 2, .objects_per_writer = 5, .object_bytes = 100, .block_bytes = 100, .count_objects = true};
  EXPECT_EQ(probe(store, shape).run(spec(1h, 2)).samples, 20U);
}

TEST_F(WriteProbeTest, RandomBlocksFillTheObject) {
  Tier store = tier();
  WriteProbe random = probe(store, {.object_bytes = 100'000, .block_bytes = 4096, .random_order = true});
  EXPECT_EQ(random.run(spec(1h, 1)).samples, 25U);
  ASSERT_EQ(bytes_of_object(store, 0), 100'000U);
  const auto reader = store.backend->open("probe/0");
  ASSERT_OK(reader);
  std::vector<std::byte> bytes(100'000);
  ASSERT_OK((*reader)->read_at(0, bytes));
  for (size_t at = 0; at + 8 <= bytes.size(); at += 4096)
    EXPECT_NE(std::memcmp(bytes.data() + at, "\0\0\0\0\0\0\0\0", 8), 0) << "a hole at " << at;
}

TEST_F(WriteProbeTest, TheDeadlineCutsObjectsShort) {
  Tier store = tier();
  WriteProbe cut =
      probe(store, {.writers = 2, .objects_per_writer = 4, .object_bytes = 1 << 20, .block_bytes = 64 << 10});
  const RunTally tally = cut.run(spec(1ns));
  EXPECT_FALSE(tally.failure);
  EXPECT_EQ(tally.samples, 2U) << "one block of each writer";
  EXPECT_EQ(bytes_of_object(store, 0), 64U << 10U) << "published as far as it is";
  EXPECT_EQ(bytes_of_object(store, 4), 64U << 10U);
  EXPECT_EQ(bytes_of_object(store, 1), 0U);
}

TEST_F(WriteProbeTest, WholePassesAreFinishedAfterTheDeadline) {
  Tier store = tier();
  const WriteShape shape{
      .objects_per_writer = 4, .object_bytes = 1 << 20, .block_bytes = 64 << 10, .whole_passes = true};
  const RunTally tally = probe(store, shape).run(spec(1ns));
  EXPECT_EQ(tally.passes, 1U);
  EXPECT_EQ(tally.bytes, 4U << 20U);
}

TEST_F(WriteProbeTest, StopsAfterTheMostPasses) {
  Tier store = tier();
  const RunTally tally = probe(store, {.object_bytes = 10, .block_bytes = 10}).run(spec(1h));
  EXPECT_EQ(tally.passes, WriteProbe::kMostPasses);
}

TEST_F(WriteProbeTest, FailuresAndSignalsEndARun) {
  Tier full = tier(",capacity=100k");
  const RunTally failed = probe(full, {.object_bytes = 1 << 20, .block_bytes = 4096}).run(spec(1h));
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->code, Errc::no_space);
  Tier store = tier();
  simulate_interrupt(SIGINT);
  const RunTally stopped = probe(store, {.object_bytes = 10, .block_bytes = 10}).run(spec(1h));
  simulate_interrupt(0);
  ASSERT_TRUE(stopped.failure);
  EXPECT_EQ(stopped.failure->code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
