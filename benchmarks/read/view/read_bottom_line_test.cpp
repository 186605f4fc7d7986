#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmarks/read/view/read_parts.hpp"
#include "results/record/records_testing.hpp"

namespace penstock::verdicts {
namespace {

Record under_ceiling(Record record, double mib_per_s) {
  record.metrics["ceiling_bytes_per_s"] = {"B/s", Better::neither, "run", {mib_per_s * 1048576}};
  return record;
}

std::vector<std::string> lines_of(const std::vector<Record>& records) {
  std::vector<std::string> lines = read_bottom_line(records, {});
  EXPECT_EQ(lines.size(), 3U);
  lines.resize(3);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReadBottomLine, IsEmptyWithoutUsableRates) {
  Record failed = read_cell("disk", 1, "cold", 100);
  failed.verdict = Verdict::failed;
  EXPECT_TRUE(read_bottom_line(std::vector{failed}, {}).empty());
}

TEST(ReadBottomLine, HasTheHighestRateOverAllRanks) {
  const auto lines =
      lines_of({of_ranks(1, {411.3, 411.3}), of_ranks(4, {602, 602}), of_ranks(2, {671.4, 671.4})});
  EXPECT_TRUE(contains(lines[1], "671.4 MiB/s (2 ranks of 2 threads")) << lines[1];
}

TEST(ReadBottomLine, NamesTheTierNearItsCeilingAndAFasterTier) {
  const auto lines = lines_of({under_ceiling(read_cell("disk", 4, "cold", 450), 500),
                               under_ceiling(read_cell("nvme", 4, "cold", 1350), 2000)});
  EXPECT_TRUE(contains(lines[0], "disk itself limits reading: 90%")) << lines[0];
  EXPECT_TRUE(contains(lines[1], "nvme delivers 3.0x that rate")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "nvme")) << lines[2];
}

TEST(ReadBottomLine, ATierAtACeilingThatDoesNotRiseIsTheLimit) {
  const auto lines = lines_of({under_ceiling(read_cell("disk", 2, "cold", 200), 420),
                               under_ceiling(read_cell("disk", 4, "cold", 410), 420)});
  EXPECT_TRUE(contains(lines[0], "disk itself limits reading: 98%")) << lines[0];
}

TEST(ReadBottomLine, ComparesNoTiersThatTheNoiseHides) {
  const auto lines =
      lines_of({under_ceiling(with_rates(read_cell("disk", 4, "cold", 1), {300, 450, 500}), 500),
                with_rates(read_cell("nvme", 4, "cold", 1), {400, 500, 600})});
  EXPECT_FALSE(contains(lines[1], "nvme")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "--repeat 9")) << lines[2];
}

TEST(ReadBottomLine, ComparesNoColdTierWithAPageCache) {
  const auto lines =
      lines_of({under_ceiling(read_cell("disk", 4, "cold", 450), 500), read_cell("nvme", 4, "warm", 9000)});
  EXPECT_FALSE(contains(lines[1], "nvme")) << lines[1];
}

TEST(ReadBottomLine, TellsNothingOfATierWhoseDataWereCached) {
  const auto lines = lines_of({under_ceiling(read_cell("disk", 4, "warm", 4500), 5000)});
  EXPECT_TRUE(contains(lines[0], "unknown")) << lines[0];
  EXPECT_TRUE(contains(lines[2], "--cache cold")) << lines[2];
}

TEST(ReadBottomLine, SaysWhatToMeasureIfTheLimitIsUnknown) {
  EXPECT_TRUE(contains(lines_of({read_cell("disk", 4, "cold", 450)})[2], "--no-ceiling"));
  EXPECT_TRUE(contains(lines_of({under_ceiling(read_cell("disk", 4, "cold", 450), 5000)})[2], "--depth 8"));
  const auto rising = lines_of({under_ceiling(read_cell("disk", 2, "cold", 200), 5000),
                                under_ceiling(read_cell("disk", 4, "cold", 400), 5000)});
  EXPECT_TRUE(contains(rising[0], "number of threads limits")) << rising[0];
  EXPECT_TRUE(contains(rising[2], "--threads 8,16")) << rising[2];
  const auto near_ceiling = lines_of({under_ceiling(read_cell("disk", 2, "cold", 200), 210),
                                      under_ceiling(read_cell("disk", 4, "cold", 400), 420)});
  EXPECT_TRUE(contains(near_ceiling[0], "number of threads limits")) << "the ceiling rises with the threads";
  const Record once = with_rates(under_ceiling(read_cell("disk", 2, "cold", 1), 110), {100});
  EXPECT_TRUE(contains(lines_of({once})[2], "--repeat 5"));
}

TEST(ReadBottomLine, NamesDecodingAndProcessorsBeforeTheTier) {
  Record decoded = under_ceiling(read_cell("disk", 2, "cold", 100), 900);
  decoded.parameters["decode"] = "full";
  EXPECT_TRUE(contains(lines_of({decoded})[0], "Decoding limits"));
  Record bound = under_ceiling(read_cell("disk", 2, "cold", 100), 110);
  bound.verdict = Verdict::client_bound;
  EXPECT_TRUE(contains(lines_of({bound})[0], "processors limit"));
}

TEST(ReadBottomLine, CountsAcceleratorsOfPicturesOnly) {
  Record record = under_ceiling(read_cell("disk", 4, "cold", 450), 500);
  record.metrics["samples_per_s"].samples = {4100, 4200};
  EXPECT_TRUE(contains(lines_of({record})[1], "enough for 20 to 21 accelerators of an assumed 200 images/s"));
  record.corpus["codec"] = "raw";
  EXPECT_FALSE(contains(lines_of({record})[1], "accelerator"));
}

TEST(ReadDepths, AreGroupedAndCompared) {
  std::vector<Record> records;
  for (const int depth : {1, 8, 32}) {
    records.push_back(read_cell("disk", 1, "cold", 100.0 * depth));
    records.back().parameters["depth"] = depth;
  }
  EXPECT_TRUE(depth_groups(std::span(records).first(1)).empty());
  const auto groups = depth_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].curves[0].by_count.size(), 3U);
  std::vector<Sentence> sentences;
  describe_rank_scaling(groups, "depth", sentences);
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_TRUE(contains(sentences[0].text, "still gains at depth 32")) << sentences[0].text;
  EXPECT_TRUE(rank_groups(records).empty());
}

}  // namespace
}  // namespace penstock::verdicts
