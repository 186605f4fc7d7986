#include "results/cells/verdicts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/cells/verdicts_testing.hpp"

namespace penstock {
namespace {

TEST(Sentences, HugeRatesStayReadable) {
  const std::vector<Record> records{read_cell("a", 1, "warm", 1e280), read_cell("b", 1, "warm", 1)};
  EXPECT_LT(only_sentence(records, "tiers").size(), 80U);
}

TEST(Sentences, OnlyTheSameWorkIsCompared) {
  Record other = read_cell("fast", 1, "cold", 500);
  other.parameters["order"] = "sequential";
  EXPECT_TRUE(sentence_texts({read_cell("disk", 1, "cold", 100), other}, "tiers").empty());
  other = read_cell("fast", 1, "cold", 500);
  other.environment["host"] = "elsewhere";
  const std::vector<Record> records{read_cell("disk", 1, "cold", 100), other};
  EXPECT_TRUE(sentence_texts(records, "tiers").empty());
  EXPECT_TRUE(has(only_sentence(records, "hosts"), "2 machines"));
}

TEST(Sentences, UnverifiedCacheIsACaution) {
  Record record = read_cell("disk", 4, "cold", 100);
  record.cache["client_data"] = "unverified";
  EXPECT_TRUE(has(only_sentence({record}, "unverified"), "Whether disk was cold is unverified in 1 cell"));
  EXPECT_FALSE(has(only_sentence({record}, "unverified"), "fio"));
  record.command = "fio";
  EXPECT_FALSE(has(only_sentence({record}, "unverified"), "this machine"));
}

TEST(Sentences, NoiseAboveTwentyPercentIsReported) {
  Record record = read_cell("disk", 4, "cold", 100);
  record.metrics["payload_bytes_per_s"].samples = {100, 100, 119};
  EXPECT_TRUE(sentence_texts({record}, "noise").empty());
  record.metrics["payload_bytes_per_s"].samples = {100, 100, 135};
  EXPECT_TRUE(has(only_sentence({record}, "noise"), "35%"));
  EXPECT_TRUE(has(only_sentence({record}, "noise"), "disk cold at 4 threads"));
}

TEST(Sentences, OlderRunsOfTheSameWorkAreOnlyCounted) {
  Record old = noisy(read_cell("disk", 1, "cold", 100), 0.5);
  old.started = "2026-11-19T00:00:00Z";
  old.verdict = Verdict::client_bound;
  const std::vector<Record> records{old, read_cell("disk", 1, "cold", 200)};
  EXPECT_EQ(only_sentence(records, "older"), "1 row of older runs of the same work is not shown.");
  EXPECT_TRUE(sentence_texts(records, "noise").empty());
  EXPECT_TRUE(sentence_texts(records, "verdict.client_bound").empty());
}

TEST(Sentences, AnEmulatedTierIsReported) {
  Record slow = read_cell("slow", 1, "cold", 50);
  slow.tiers["data"]["spec"] = "slow=posix:/data/p,limit=50MB/s,latency=2ms";
  EXPECT_EQ(
      only_sentence({slow}, "emulated"),
      "slow is emulated (limit=50MB/s, latency=2ms): its figures show the requested limits, not a device.");
  slow.tiers["data"]["spec"] = "slow=posix:/data/p,direct=1";
  EXPECT_TRUE(sentence_texts({slow}, "emulated").empty());
}

TEST(Sentences, CellsWithoutANumberAreListedAndNotCompared) {
  Record failed = read_cell("fast", 1, "cold", 900);
  failed.verdict = Verdict::failed;
  failed.reason = "cannot read 'x'";
  const std::vector<Record> records{read_cell("disk", 1, "cold", 100), failed};
  EXPECT_TRUE(sentence_texts(records, "tiers").empty());
  EXPECT_EQ(only_sentence(records, "verdict.failed"),
            "1 cell failed: fast cold at 1 thread (cannot read 'x').");
  const auto all = sentences(records, {});
  EXPECT_EQ(all.back().tone, Tone::failure);
}

TEST(Sentences, AReasonIsPrintedInOneLine) {
  Record failed = read_cell("disk", 1, "cold", 100);
  failed.verdict = Verdict::failed;
  failed.reason = "cannot read 'x\n\x1b[31m'";
  EXPECT_EQ(only_sentence({failed}, "verdict.failed"),
            "1 cell failed: disk cold at 1 thread (cannot read 'x\\n\\x1b[31m').");
}

TEST(Sentences, NoRecordsGiveNoSentences) {
  EXPECT_TRUE(sentences({}, {}).empty());
  Record bare;
  bare.command = "read";
  EXPECT_TRUE(sentences(std::vector<Record>{bare}, {}).empty());
}

}  // namespace
}  // namespace penstock
