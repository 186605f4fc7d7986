#include "miniapps/staging/choose_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io_backends/core/random.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

// An item that is read in slow_s seconds on the slow tier and in fast_s on the fast one. In these tests, the
// first number of a demand is its seconds.
StagingItem item(uint64_t bytes, double slow_s, double fast_s, int64_t first_ns = 0) {
  StagingItem made{.bytes = bytes, .saved_s = slow_s - fast_s, .first_ns = first_ns};
  made.slow[0] = slow_s;
  made.fast[0] = fast_s;
  return made;
}

// Two models of an epoch. With one thread, its time is the sum of both tiers' times; with many threads, it is
// the time of the slower tier.
double sum_of(const ReadDemand& slow, const ReadDemand& fast) {
  return slow[0] + fast[0];
}
double most_of(const ReadDemand& slow, const ReadDemand& fast) {
  return std::max(slow[0], fast[0]);
}

double best_by_trying(const StagingProblem& problem) {
  double best = problem.epoch_with({});
  for (uint32_t set = 0; set < 1U << problem.items.size(); ++set) {
    Chosen chosen;
    uint64_t bytes = 0;
    for (size_t i = 0; i < problem.items.size(); ++i)
      if ((set >> i & 1U) != 0) {
        chosen.push_back(i);
        bytes += problem.items[i].bytes;
      }
    if (bytes <= problem.capacity) best = std::min(best, problem.epoch_with(chosen));
  }
  return best;
}

std::vector<StagingItem> random_items(const RandomStream& random, size_t count) {
  std::vector<StagingItem> items;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bytes = 1 + random.below(3 * i, 100);
    const double slow_s = 0.1 + 2 * random.uniform(3 * i + 1) + double(bytes) / 20;
    items.push_back(item(bytes, slow_s, slow_s * 0.5 * random.uniform(3 * i + 2), int64_t(i)));
  }
  return items;
}

Chosen choose_files(const StagingProblem& problem, std::string_view policy) {
  return parse_policy(policy).value()(problem);
}

uint64_t bytes_of(const StagingProblem& problem, const Chosen& chosen) {
  uint64_t bytes = 0;
  for (const size_t i : chosen) bytes += problem.items[i].bytes;
  return bytes;
}

TEST(ChooseFiles, ExactIsAsGoodAsTryingAll) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, "exact");
    const std::vector<StagingItem> items = random_items(random, 12);
    const StagingProblem problem{items, 50 + random.below(99, 400), sum_of};
    const Chosen chosen = best_fit(problem);
    EXPECT_LE(bytes_of(problem, chosen), problem.capacity);
    EXPECT_NEAR(problem.epoch_with(chosen), best_by_trying(problem), 1e-9) << seed;
  }
}

TEST(ChooseFiles, DensityIsAsGoodAsTryingAllWhereSavingsAdd) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, "density");
    const std::vector<StagingItem> items = random_items(random, 12);
    const StagingProblem problem{items, 50 + random.below(99, 400), sum_of};
    const Chosen chosen = choose_files(problem, "density");
    EXPECT_LE(bytes_of(problem, chosen), problem.capacity);
    EXPECT_LE(problem.epoch_with(chosen), best_by_trying(problem) * 1.01) << seed;
  }
}

TEST(ChooseFiles, DensityIsNearTheBestWhereTheTiersOverlap) {
  double worst = 1;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, "overlap");
    const std::vector<StagingItem> items = random_items(random, 12);
    const StagingProblem problem{items, 100 + random.below(99, 600), most_of};
    const Chosen chosen = choose_files(problem, "density");
    EXPECT_LE(bytes_of(problem, chosen), problem.capacity);
    worst = std::max(worst, problem.epoch_with(chosen) / best_by_trying(problem));
  }
  EXPECT_LE(worst, 1.25) << "a greedy list cut at one place";
}

TEST(ChooseFiles, WithEqualReadsTheSmallestComeFirst) {
  std::vector<StagingItem> items;
  for (const uint64_t bytes : {800U, 100U, 400U, 200U})
    items.push_back(item(bytes, 1 + double(bytes) / 1000, double(bytes) / 10'000));
  const StagingProblem problem{items, 750, sum_of};
  EXPECT_EQ(by_density(problem), (Chosen{1, 2, 3}));
}

TEST(ChooseFiles, WhatDoesNotFitIsSkipped) {
  const std::vector<StagingItem> items{item(10, 10, 0), item(95, 20, 0), item(20, 2, 0)};
  const StagingProblem problem{items, 100, sum_of};
  EXPECT_EQ(by_density(problem), (Chosen{0, 2})) << "the second is denser than the third, and too large";
  EXPECT_EQ(choose_files(problem, "density"), (Chosen{1})) << "but alone it saves more";
  EXPECT_EQ(choose_files(problem, "best-single"), (Chosen{1}));
}

TEST(ChooseFiles, WhatIsNoFasterThereStays) {
  const std::vector<StagingItem> items{item(10, 1, 1), item(10, 1, 2), item(10, 1, 0.5)};
  const StagingProblem problem{items, 100, sum_of};
  EXPECT_EQ(choose_files(problem, "density"), (Chosen{2}));
  const std::vector<StagingItem> none{item(10, 1, 1)};
  EXPECT_TRUE(choose_files({none, 100, sum_of}, "density").empty());
}

TEST(ChooseFiles, TheFastTierIsNotGivenMoreThanTheSlowOneHasLeft) {
  // Ten items, each of 1 s on the slow tier or 0.5 s on the fast tier. With seven on the fast tier and three
  // on the slow tier an epoch takes 3.5 s, with all on the fast tier 5 s.
  const std::vector<StagingItem> items(10, item(1, 1, 0.5));
  const StagingProblem problem{items, 1000, most_of};
  const Chosen chosen = choose_files(problem, "density");
  EXPECT_EQ(chosen.size(), 7U);
  EXPECT_DOUBLE_EQ(problem.epoch_with(chosen), 3.5);
  EXPECT_EQ(choose_files({items, 1000, sum_of}, "density").size(), 10U) << "one thread gains from all";
}

TEST(ChooseFiles, ThresholdTakesAllBelowTheSmallestFirst) {
  const std::vector<StagingItem> items{item(50, 1, 0), item(20, 1, 0), item(30, 1, 0), item(60, 1, 0)};
  const char* const below_60 = "threshold=60";
  EXPECT_EQ(choose_files({items, 1000, sum_of}, below_60), (Chosen{0, 1, 2}));
  EXPECT_EQ(choose_files({items, 60, sum_of}, below_60), (Chosen{1, 2}));
}

TEST(ChooseFiles, FirstComeInspectsNothingElse) {
  const std::vector<StagingItem> items{item(50, 9, 0, 3), item(60, 1, 0, 1), item(45, 9, 0, 2),
                                       item(40, 9, 0, 4)};
  EXPECT_EQ(choose_files({items, 100, sum_of}, "first-come"), (Chosen{1, 3}));
}

TEST(ChooseFiles, NothingIsChosenOfNothing) {
  for (const char* const policy : {"density", "threshold=10", "best-single", "first-come"})
    EXPECT_TRUE(choose_files({{}, 100, sum_of}, policy).empty()) << policy;
}

TEST(ChooseFiles, ManyItemsAreNoMatter) {
  const std::vector<StagingItem> items = random_items(RandomStream(1, "many"), 50'000);
  const StagingProblem problem{items, 500'000, sum_of};
  const Chosen chosen = choose_files(problem, "density");
  EXPECT_LE(bytes_of(problem, chosen), problem.capacity);
  EXPECT_GT(chosen.size(), 1000U);
  EXPECT_TRUE(best_fit(problem).empty());
}

TEST(ChooseFiles, PoliciesHaveNames) {
  const std::vector<StagingItem> items{{.bytes = 2'000'000}, {.bytes = 1'999'999}};
  EXPECT_EQ(choose_files({items, 4'000'000, sum_of}, "threshold=2MB"), (Chosen{1}));
  EXPECT_OK(parse_policy("first-come"));
  EXPECT_ERRC(Errc::invalid_argument, parse_policy("densty"), "density");
  EXPECT_ERRC(Errc::invalid_argument, parse_policy("threshold=much"));
}

}  // namespace
}  // namespace penstock
