#include "miniapps/staging/speed.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

// The speed table of a tier with a fixed latency per read, a shared bandwidth, and no limit on parallel
// reads.
SpeedTable speed_table(double latency_s, double bytes_per_s, std::vector<unsigned> threads = {1, 4, 16}) {
  SpeedTable table;
  table.sizes = {1e5, 1e6, 1e7};
  table.threads = std::move(threads);
  for (const unsigned count : table.threads) {
    auto& row = table.read_s.emplace_back();
    for (const double size : table.sizes)
      row.push_back({std::max((latency_s + size / bytes_per_s) / count, size / bytes_per_s)});
  }
  return table;
}

DemandTime time_of(const SpeedTable& table, double reads, double bytes) {
  ReadDemand demand{};
  add(demand, table.reads_of(bytes), reads);
  return DemandTime(table, median_times(table), demand);
}

TEST(Speed, InterpolatesBetweenSizesAndExtrapolatesAboveThem) {
  const SpeedTable table = speed_table(0.01, 1e8);
  EXPECT_NEAR(time_of(table, 1, 1e5).seconds(1), 0.011, 1e-12);
  EXPECT_NEAR(time_of(table, 1, 5e6).seconds(1), 0.06, 1e-12);
  EXPECT_NEAR(time_of(table, 1, 1e9).seconds(1), 10.01, 1e-9);
  EXPECT_NEAR(time_of(table, 1, 10).seconds(1), 0.011, 1e-12) << "less is no slower";
  EXPECT_NEAR(time_of(table, 1000, 5e6).seconds(1), 60, 1e-9);
}

TEST(Speed, OneSizeAloneIsItself) {
  SpeedTable table;
  table.sizes = {1000};
  table.threads = {1};
  table.read_s = {{{0.5}}};
  EXPECT_DOUBLE_EQ(time_of(table, 2, 1).seconds(1), 1);
  EXPECT_DOUBLE_EQ(time_of(table, 2, 1e6).seconds(1), 1);
}

TEST(Speed, ALineIsFound) {
  const SpeedTable table = speed_table(0.012, 163e6);
  const LineFit fit = fit_line(table, median_times(table), 0);
  EXPECT_NEAR(fit.latency_s, 0.012, 1e-9);
  EXPECT_NEAR(fit.bytes_per_s, 163e6, 1);
}

TEST(Speed, OfOneSizeNoLineIsDrawn) {
  SpeedTable table;
  table.sizes = {1000};
  table.threads = {1};
  table.read_s = {{{0.5}}};
  const LineFit fit = fit_line(table, median_times(table), 0);
  EXPECT_DOUBLE_EQ(fit.only_size, 1000);
  EXPECT_DOUBLE_EQ(fit.bytes_per_s, 2000);
}

TEST(Speed, TimesAreTakenToTheMeanOfAllFiles) {
  // In this model a read takes 1 ms plus 1 us per byte. The measured files are smaller than the second size
  // and larger than the third.
  const std::vector<double> times =
      times_at({1'000, 10'000, 50'000}, {{1'000, 2e-3}, {8'000, 9e-3}, {90'000, 91e-3}});
  EXPECT_NEAR(times[0], 2e-3, 1e-9);
  EXPECT_NEAR(times[1], 11e-3, 1e-9);
  EXPECT_NEAR(times[2], 51e-3, 1e-9);
  EXPECT_EQ(times_at({5}, {{4, 1}}), std::vector<double>{1}) << "nothing to compare with";
  EXPECT_EQ(times_at({10, 20}, {{10, 2}, {16, 1}}).back(), 1) << "more bytes are not taken for less time";
  EXPECT_EQ(times_at({10, 20}, {{10, 1}, {40, 40}}).back(), 20) << "no further than in proportion";
}

TEST(Speed, OneThreadAddsUpWhatItDoes) {
  const SpeedTable slow = speed_table(0.01, 1e8);
  const SpeedTable fast = speed_table(0.001, 1e9);
  const double a = time_of(slow, 100, 5e6).seconds(1);
  const double b = time_of(fast, 50, 1e6).seconds(1);
  EXPECT_NEAR(epoch_seconds(time_of(slow, 100, 5e6), time_of(fast, 50, 1e6), {1, 0}), a + b, 1e-6 * a);
  EXPECT_NEAR(epoch_seconds(time_of(slow, 100, 5e6), time_of(fast, 50, 1e6), {1, 3}), a + b + 3, 1e-6 * a);
  EXPECT_NEAR(epoch_seconds_without_overlap(time_of(slow, 100, 5e6), time_of(fast, 50, 1e6), {1, 3}),
              a + b + 3, 1e-9);
}

TEST(Speed, ManyThreadsTakeAsLongAsTheTierWithMoreToDo) {
  const SpeedTable slow = speed_table(0.0001, 1e8);
  const SpeedTable fast = speed_table(0.0001, 3e8);
  const DemandTime on_slow = time_of(slow, 100, 1e7);  // 10 s
  EXPECT_NEAR(epoch_seconds(on_slow, time_of(fast, 100, 1e7), {16, 0}), 10, 0.01);
  EXPECT_NEAR(epoch_seconds(on_slow, time_of(fast, 600, 1e7), {16, 0}), 20, 0.01) << "the fast one has more";
  EXPECT_NEAR(epoch_seconds(on_slow, time_of(fast, 0, 1e7), {16, 0}), 10, 0.01);
  EXPECT_NEAR(epoch_seconds(on_slow, time_of(fast, 100, 1e7), {16, 160 * 3}), (480 + 10 + 10 / 3.0) / 16,
              0.01)
      << "neither has: threads are where there is work";
}

TEST(Speed, NoEpochIsLongerThanWithoutOverlapOrShorterThanItsParts) {
  const SpeedTable slow = speed_table(0.01, 1e8);
  const SpeedTable fast = speed_table(0.002, 8e8);
  for (const double threads : {1.0, 2.0, 3.0, 4.0, 7.0, 16.0})
    for (const double moved : {0.0, 10.0, 300.0, 990.0, 1000.0})
      for (const double think : {0.0, 1.0, 50.0}) {
        const DemandTime a = time_of(slow, 1000 - moved, 1e6);
        const DemandTime b = time_of(fast, moved, 1e6);
        const ProgramThreads program{threads, think};
        const double epoch = epoch_seconds(a, b, program);
        EXPECT_LE(epoch, epoch_seconds_without_overlap(a, b, program) * 1.0001)
            << threads << " " << moved << " " << think;
        EXPECT_GE(epoch, std::max({a.least_seconds(), b.least_seconds(), think / threads}) * 0.9999);
      }
}

TEST(Speed, ATierThatManyThreadsSlowDownIsTakenSo) {
  SpeedTable table = speed_table(0, 94e6, {1, 16});
  table.read_s[1] = {{1e5 / 77e6}, {1e6 / 77e6}, {1e7 / 77e6}};  // tf-Darshan's disk
  const DemandTime disk = time_of(table, 1000, 1e6);
  EXPECT_NEAR(epoch_seconds(disk, DemandTime(table, median_times(table), ReadDemand{}), {16, 0}), 1e9 / 77e6,
              0.01);
  EXPECT_NEAR(epoch_seconds(disk, DemandTime(table, median_times(table), ReadDemand{}), {1, 0}), 1e9 / 94e6,
              0.01);
}

TEST(Speed, ThreadsForIsTheWayBackOfSeconds) {
  const SpeedTable table = speed_table(0.01, 1e8);
  const DemandTime work = time_of(table, 100, 1e6);
  for (const double threads : {0.25, 1.0, 2.5})
    EXPECT_NEAR(work.threads_for(work.seconds(threads)), threads, 1e-9);
  EXPECT_TRUE(std::isinf(work.threads_for(work.least_seconds() / 2)));
}

TEST(Speed, ErrorsFollowFromTheSpreadOfTheRepeats) {
  SpeedTable table;
  table.sizes = {1, 2, 3};
  table.threads = {1};
  table.read_s = {{{0.9, 1, 1.1}, {1.8, 2, 2.2}, {3, 3, 3}}};
  const CellTimes even = time_errors(table);
  const double pooled = 2.447 * 1.2533 * 0.1 * std::sqrt(2.0 / 3 / 3);
  EXPECT_NEAR(even[0][2], pooled, 1e-4) << "one that happens to be alike is no better than the others";
  EXPECT_NEAR(even[0][0], pooled * std::sqrt(1.5), 1e-4) << "its own are farther apart";
  table.read_s = {{{1}, {2}, {3}}};
  EXPECT_DOUBLE_EQ(time_errors(table)[0][1], 0.1) << "no checksum of the copy";
  const CellTimes times{{10, 20}};
  EXPECT_EQ(shift_times(times, {{0.1, 0.5}}, -1), (CellTimes{{9, 10}}));
  EXPECT_EQ(shift_times(times, {{0.1, 3}}, -1), (CellTimes{{9, 2}})) << "something is left";
}

TEST(Speed, DrawnTimesAreWithinTheRepeats) {
  SpeedTable table = speed_table(0.01, 1e8, {1});
  table.read_s[0] = {{1, 3}, {2, 4}, {5, 5}};
  const CellTimes lows = drawn_times(table, [](size_t) { return size_t{0}; });
  EXPECT_EQ(lows[0], (std::vector<double>{1, 2, 5}));
  const CellTimes highs = drawn_times(table, [](size_t n) { return n - 1; });
  EXPECT_EQ(highs[0], (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(median_times(table)[0], (std::vector<double>{2, 3, 5}));
}

}  // namespace
}  // namespace penstock
