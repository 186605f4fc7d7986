#include "results/compare/matched_cells.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

MatchedCells match(const std::vector<Record>& base, const std::vector<Record>& candidate) {
  const auto pointers = [](const std::vector<Record>& records) {
    std::vector<const Record*> all;
    for (const Record& record : records) all.push_back(&record);
    return all;
  };
  return match_cells(pointers(base), pointers(candidate));
}

Record with(Record record, const std::string& name, Json value) {
  record.parameters[name] = std::move(value);
  return record;
}

Record on(Record record, const std::string& spec) {
  record.tiers["data"]["backend"] = "posix";
  record.tiers["data"]["spec"] = spec;
  return record;
}

Record arm(Record record, const std::string& name) {
  record.pair = Json{{"suite", "s"}, {"index", 0}, {"arm", name}};
  return record;
}

// Both sides have one cell, and it is the same.
void expect_same(const Record& base, const Record& candidate) {
  const MatchedCells matched = match({base}, {candidate});
  ASSERT_EQ(matched.cells.size(), 1U) << matched.cells[0].name << " | " << matched.cells.back().name;
  EXPECT_EQ(matched.cells[0].base.size(), 1U);
  EXPECT_EQ(matched.cells[0].candidate.size(), 1U);
}

void expect_different(const Record& base, const Record& candidate) {
  const MatchedCells matched = match({base}, {candidate});
  ASSERT_EQ(matched.cells.size(), 2U);
  EXPECT_NE(matched.cells[0].name, matched.cells[1].name);
}

TEST(MatchedCells, HostFoldersAndTimesDoNotDistinguishCells) {
  const Record base = on(read_cell("disk", 4, "cold", 100), "disk=posix:/monday");
  Record other = on(read_cell("disk", 4, "cold", 90), "disk=posix:/tuesday");
  other.tiers["data"]["root"] = "/tuesday";
  other.id = "another";
  other.started = "2027-01-01T00:00:00Z";
  other.seed = 8;
  other.argv = {"penstock", "read",        "/tuesday/corpus", "--results", "there",
                "--label",  "day=tuesday", "--seed",          "8"};
  other.label = {{"day", "tuesday"}};
  other.environment["host"] = "elsewhere";
  other.environment["results"] = "there";
  other.corpus["over_ram"] = 0.5;
  other.parameters["ceiling_rung"] = "twice";
  other.parameters["live_csv"] = "/tmp/x.csv";
  other.parameters["min_time_s"] = 30.0;
  other.parameters["repeat"] = 12;
  other.verdict = Verdict::short_time;
  expect_same(base, other);
}

TEST(MatchedCells, WorkParametersDistinguishCells) {
  const Record base = read_cell("disk", 4, "cold", 100);
  expect_different(base, read_cell("disk", 8, "cold", 100));
  expect_different(base, read_cell("disk", 4, "warm", 100));
  expect_different(base, read_cell("fast", 4, "cold", 100));
  expect_different(base, with(base, "order", "sequential"));
  expect_different(with(base, "ranks", 1), with(base, "ranks", 4));
  Record corpus = base;
  corpus.corpus["recipe"] = "cifar";
  expect_different(base, corpus);
  Record backend = on(base, "disk=uring:/p");
  backend.tiers["data"]["backend"] = "uring";
  expect_different(on(base, "disk=posix:/p"), backend);
  Record command = base;
  command.command = "train";
  expect_different(base, command);
}

TEST(MatchedCells, AParameterOfANewerProgramIsOnlyRemarked) {
  const Record base = read_cell("disk", 4, "cold", 100);
  const Record newer = with(base, "brand_new", 7);
  expect_same(base, newer);
  expect_same(newer, base);
  const MatchedCells matched = match({base}, {newer});
  ASSERT_EQ(matched.remarks.size(), 1U);
  EXPECT_EQ(matched.remarks[0],
            "only the candidate has the parameter brand_new (7): it does not distinguish cells");
}

TEST(MatchedCells, AParameterOfANewerProgramCountsIfItWasGivenOrVaries) {
  const Record base = read_cell("disk", 4, "cold", 100);
  Record asked = with(base, "rate_limit_s", 7);
  asked.argv = {"penstock", "read", "c", "--rate-limit=7s"};
  expect_different(base, asked);
  EXPECT_EQ(match({base}, {with(base, "brand_new", 7), with(base, "brand_new", 8)}).cells.size(), 3U);
}

TEST(MatchedCells, TierOptionsDistinguishCellsOnlyWithinOneSide) {
  const Record plain = on(read_cell("disk", 4, "cold", 100), "disk=posix:/p");
  const Record limited = on(plain, "disk=posix:/p,limit=9MB/s");
  expect_same(plain, limited);
  const MatchedCells matched = match({plain}, {limited});
  ASSERT_EQ(matched.remarks.size(), 1U);
  EXPECT_EQ(matched.remarks[0], "the options of disk: none in the base, limit=9MB/s in the candidate");
  EXPECT_EQ(match({plain, limited}, {plain, limited}).cells.size(), 2U);
  // The options of one tier do not affect the cells of another tier.
  const Record fast = on(read_cell("fast", 4, "cold", 100), "fast=posix:/f,direct=1");
  EXPECT_EQ(match({plain, fast}, {limited, fast}).cells.size(), 2U);
}

TEST(MatchedCells, AParameterInWhichArmsDifferDoesNotDistinguishCells) {
  const Record base = train_cell(0, 1.0);
  const Record ahead = train_cell(4, 1.0);
  expect_different(base, ahead);
  expect_different(arm(base, "base"), arm(ahead, "base"));  // two runs of one arm: not interleaved
  expect_same(arm(base, "base"), arm(ahead, "candidate"));
  const MatchedCells matched = match({arm(base, "base")}, {arm(ahead, "candidate")});
  ASSERT_EQ(matched.remarks.size(), 1U);
  EXPECT_EQ(matched.remarks[0], "the arms differ in prefetch: 0 in the base, 4 in the candidate");
}

TEST(MatchedCells, EverySuiteHasArmsOfItsOwn) {
  const auto in = [](Record record, const std::string& suite) {
    record.pair["suite"] = suite;
    return record;
  };
  const Record plain = train_cell(4, 1.0);
  const Record base_a = in(arm(train_cell(0, 1.0), "base"), "a");
  const Record candidate_a = in(arm(plain, "candidate"), "a");
  const Record base_b = in(arm(with(plain, "decode", "full"), "base"), "b");
  const Record candidate_b = in(arm(with(plain, "decode", "scaled"), "candidate"), "b");
  const Record* const base[] = {&base_a, &base_b};
  const Record* const candidate[] = {&candidate_a, &candidate_b};
  const MatchedCells matched = match_cells(base, candidate);
  ASSERT_EQ(matched.cells.size(), 2U);
  for (const Cell& cell : matched.cells) {
    EXPECT_EQ(cell.base.size(), 1U);
    EXPECT_EQ(cell.candidate.size(), 1U);
    EXPECT_EQ(suite_of(*cell.base[0]), suite_of(*cell.candidate[0]));
  }
  EXPECT_NE(matched.cells[0].name, matched.cells[1].name);
  EXPECT_EQ(matched.remarks.size(), 2U);
}

TEST(MatchedCells, ArmsOfTwoDaysAreNotInterleaved) {
  const Record base = arm(train_cell(0, 1.0), "base");
  Record later = arm(train_cell(0, 1.0), "candidate");
  const Record* const one[] = {&base};
  const Record* const other[] = {&later};
  EXPECT_TRUE(are_arms(one, other));
  later.started = "2026-11-21T09:30:00Z";
  EXPECT_FALSE(are_arms(one, other));
  const Record earlier = arm(train_cell(0, 1.0), "candidate");
  const Record* const both[] = {&earlier, &later};
  EXPECT_TRUE(are_arms(one, both));
  later.pair["suite"] = "t";
  EXPECT_FALSE(are_arms(one, other));
}

TEST(MatchedCells, AreNamedByTheFactsThatDistinguishThem) {
  const MatchedCells matched =
      match({read_cell("disk", 1, "cold", 1), read_cell("disk", 4, "cold", 1),
             with(read_cell("disk", 4, "cold", 1), "order", "sequential"), train_cell(2, 1.0)},
            {});
  ASSERT_EQ(matched.cells.size(), 4U);
  EXPECT_EQ(matched.cells[0].name, "read imagenet, disk, threads 1, cache cold, order shuffled");
  EXPECT_EQ(matched.cells[2].name, "read imagenet, disk, threads 4, cache cold, order sequential");
  EXPECT_EQ(matched.cells[3].name, "train alexnet, disk, threads 4");
}

}  // namespace
}  // namespace penstock
