#include "results/compare/pooled_rounds.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

StoredRecord round_of(int threads, double rate, const std::string& started, const std::string& sweep = "s") {
  StoredRecord stored;
  Record& record = stored.record;
  record.id = started;
  record.started = started;
  record.command = "read";
  record.parameters["threads"] = threads;
  record.seed = uint64_t(rate);
  if (!sweep.empty()) record.label["sweep"] = sweep;
  record.metrics["samples_per_s"] = {"1/s", Better::higher, "repeat", {rate}};
  return stored;
}

TEST(PoolRounds, PutsTheSamplesOfACellInOrderOfTime) {
  std::vector<StoredRecord> records{round_of(1, 10, "2"), round_of(2, 20, "3"), round_of(1, 11, "1"),
                                    round_of(1, 12, "4")};
  EXPECT_EQ(pool_rounds(records), 2U);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].record.metrics.at("samples_per_s").samples, std::vector<double>{20});
  EXPECT_EQ(records[1].record.metrics.at("samples_per_s").samples, (std::vector<double>{11, 10, 12}));
  EXPECT_EQ(records[1].record.id, "4");
}

TEST(PoolRounds, DoesNotPoolOtherSweepsCorporaOrCommandsWithoutASweep) {
  std::vector<StoredRecord> records{round_of(1, 10, "1", ""),  round_of(1, 11, "2", ""),
                                    round_of(1, 12, "3", "s"), round_of(1, 13, "4", "t"),
                                    round_of(1, 14, "5", ""),  round_of(1, 15, "6", "")};
  records[0].record.corpus["checksum"] = "another";
  for (const size_t i : {4U, 5U}) records[i].record.command = "train";
  EXPECT_EQ(pool_rounds(records), 0U);
  EXPECT_EQ(records.size(), 6U);
}

TEST(PoolRounds, PoolsRepeatedRunsOfReadAndCountsThem) {
  std::vector<StoredRecord> records{round_of(1, 150, "1", ""), round_of(1, 141, "3", ""),
                                    round_of(1, 149, "2", ""), round_of(2, 90, "4", "")};
  records.push_back(round_of(1, 10, "5", ""));
  records.back().record.label["disk"] = "old";
  EXPECT_EQ(pool_rounds(records), 2U);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].record.metrics.at("samples_per_s").value(), 149);
  EXPECT_EQ(records[0].runs, 3U);
  EXPECT_EQ(records[1].runs, 1U);
}

TEST(PoolRounds, DoesNotPoolArmsOrFailuresAndKeepsTheWorstVerdict) {
  std::vector<StoredRecord> records{round_of(1, 10, "1"), round_of(1, 11, "2"), round_of(1, 12, "3"),
                                    round_of(1, 13, "4"), round_of(1, 14, "5")};
  records[0].record.pair = {{"suite", "s"}, {"index", 0}, {"arm", "base"}};
  records[1].record.verdict = Verdict::failed;
  records[2].record.verdict = Verdict::short_time;
  records[2].record.reason = "took 1 s";
  EXPECT_EQ(pool_rounds(records), 2U);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].record.id, "1");
  EXPECT_EQ(records[1].record.verdict, Verdict::failed);
  EXPECT_EQ(records[2].record.metrics.at("samples_per_s").samples, (std::vector<double>{12, 13, 14}));
  EXPECT_EQ(records[2].record.verdict, Verdict::short_time);
  EXPECT_EQ(records[2].record.reason, "took 1 s");
}

}  // namespace
}  // namespace penstock
