#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"

namespace penstock {
namespace {

// A tally in which every member has a different value.
RunTally tally(uint64_t first_value) {
  RunTally one;
  uint64_t next = first_value;
  RunTally::figures([&](const char*, auto member, const RunFigure&) {
    using T = std::remove_reference_t<decltype(one.*member)>;
    if constexpr (std::is_arithmetic_v<T>) one.*member = static_cast<T>(next++);
  });
  one.latency_ns.add(first_value);
  one.late_ns.add(first_value + 1);
  one.bytes_by_second = {first_value, first_value + 1};
  one.first_errors = {"a" + std::to_string(first_value), "b"};
  one.first_wrong_text = "wrong" + std::to_string(first_value);
  one.failure = Error{Errc::io, 5, "read"};
  one.calls[CallKind::read].ns.add(first_value);
  one.calls[CallKind::read].bytes = first_value;
  return one;
}

TEST(RunTally, AppendContinuesTheSeconds) {
  RunTally cell;
  cell.wall_s = 1.4;
  cell.bytes = 14;
  cell.bytes_by_second = {10, 4};
  RunTally pass;  // starts 0.4 s after a full second
  pass.wall_s = 1.2;
  pass.bytes = 12;
  pass.bytes_by_second = {6, 6};
  cell.append(pass);
  EXPECT_EQ(cell.bytes_by_second, (std::vector<uint64_t>{10, 10, 6}));
  RunTally first;
  first.append(cell);
  EXPECT_EQ(first.bytes_by_second, cell.bytes_by_second);
}

TEST(RunTally, EveryFigureIsSentBetweenRanks) {
  RunTally sent = tally(100);
  sent.ranks = {{7, 1.5}, {8, 2.5}};
  const RunTally received = tally_from_json(tally_json(sent));
  EXPECT_EQ(tally_json(received), tally_json(sent));
  EXPECT_EQ(received.samples, 100U);
  EXPECT_EQ(received.latency_ns.count(), 1U);
  EXPECT_EQ(received.calls.at(CallKind::read).bytes, 100U);
  ASSERT_TRUE(received.failure);
  EXPECT_EQ(received.failure->what, "read");
  EXPECT_EQ(received.ranks.at(1).bytes, 8U);
}

TEST(RunTally, JoiningRanksAddsAmountsAndKeepsTheLongestTime) {
  RunTally fast = tally(100);
  RunTally slow = tally(200);
  fast.failure.reset();
  fast.first_done_s = 2;
  fast.first_done_bytes = 50;
  slow.first_done_s = 4;
  slow.first_done_bytes = 100;
  const RunTally all = join_over_ranks(std::vector<RunTally>{fast, slow});
  EXPECT_EQ(all.samples, 300U);
  EXPECT_EQ(all.passes, slow.passes);
  EXPECT_EQ(all.wall_s, slow.wall_s);
  EXPECT_EQ(all.due_within_s, slow.due_within_s);
  EXPECT_EQ(all.first_done_s, 2);
  EXPECT_EQ(all.first_done_bytes, 100U) << "the slow one had read half of its bytes by then";
  EXPECT_EQ(all.latency_ns.count(), 2U);
  EXPECT_EQ(all.bytes_by_second, (std::vector<uint64_t>{300, 302}));
  EXPECT_EQ(all.first_errors.size(), 4U);
  EXPECT_EQ(all.first_wrong_text, "wrong100");
  ASSERT_TRUE(all.failure);
  ASSERT_EQ(all.ranks.size(), 2U);
  EXPECT_EQ(all.ranks[0].bytes, fast.bytes);
}

TEST(RunTally, AppendingRunsAddsTimesToo) {
  RunTally cell = tally(1);
  const RunTally later = tally(10);
  const double wall_s = cell.wall_s + later.wall_s;
  const uint64_t passes = cell.passes + later.passes;
  cell.append(later);
  EXPECT_EQ(cell.wall_s, wall_s);
  EXPECT_EQ(cell.passes, passes);
  EXPECT_EQ(cell.calls.at(CallKind::read).ns.count(), 2U);
  EXPECT_EQ(cell.first_errors.size(), 4U);
}

}  // namespace
}  // namespace penstock
