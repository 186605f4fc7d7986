#include "miniapps/pipeline/batch_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace penstock {
namespace {

struct Outcome {
  std::vector<std::vector<uint64_t>> batches;  // manifest indices, in the order of slots
  std::vector<uint64_t> epochs;                // the epoch of each batch
  BatchPlan::Head end = BatchPlan::Head::pending;
  uint64_t skipped = 0;
  uint64_t dropped_tail = 0;
  std::map<uint64_t, int> tries;  // how often each index was tried
};

struct PlanSetup {
  uint64_t samples = 0;
  uint32_t batch = 4;
  uint64_t prefetch = 0;
  PlanLimits limits{0, 1};
  Shuffle shuffle = Shuffle::none;
};

void ignore_move(const Ticket& /*from*/, const Ticket& /*to*/) {
  ADD_FAILURE() << "without holes nothing is moved";
}

// Executes a plan to its end with up to `workers` tickets at a time. `timing` decides in which order they
// finish.
Outcome run_plan(const PlanSetup& setup, const std::set<uint64_t>& bad, unsigned timing, size_t workers) {
  std::vector<Ticket> taken;
  std::map<size_t, std::vector<uint64_t>> pool;
  BatchPlan plan(Sampler(setup.samples, setup.shuffle, 3), setup.batch, setup.prefetch, setup.limits,
                 [&](const Ticket& from, const Ticket& to) {
                   for (const Ticket& ticket : taken)
                     EXPECT_TRUE(ticket.pool_index != from.pool_index && ticket.pool_index != to.pool_index)
                         << "a batch is changed that is being loaded";
                   pool[to.pool_index][to.slot] = pool[from.pool_index][from.slot];
                 });
  std::mt19937 random(timing);
  Outcome result;
  std::optional<size_t> held;
  while (true) {
    plan.request();
    held.reset();
    while (plan.head() == BatchPlan::Head::pending || (random() % 3 == 0 && plan.can_take())) {
      if (taken.size() < workers && plan.can_take()) {
        taken.push_back(*plan.take());
        EXPECT_NE(held, taken.back().pool_index) << "a batch that the accelerator has is written to";
        ++result.tries[taken.back().index];
        continue;
      }
      if (taken.empty()) {
        ADD_FAILURE() << "nothing in hand, nothing to take, and the head is not ready";
        return result;
      }
      const size_t which = random() % taken.size();
      const Ticket ticket = taken[which];
      taken.erase(taken.begin() + ptrdiff_t(which));
      std::vector<uint64_t>& slots = pool[ticket.pool_index];
      slots.resize(setup.batch);
      slots[ticket.slot] = ticket.index;
      if (bad.contains(ticket.index)) {
        plan.record_failed(ticket);
      } else {
        plan.record_filled(ticket);
      }
    }
    if (plan.head() != BatchPlan::Head::ready) break;
    result.epochs.push_back(plan.head_epoch());
    held = plan.hand_over();
    EXPECT_LE(*held, setup.prefetch);
    result.batches.push_back(pool.at(*held));
  }
  result.end = plan.head();
  result.skipped = plan.skipped();
  result.dropped_tail = plan.dropped_tail();
  return result;
}

TEST(BatchPlan, PutsPositionIIntoSlotIModuloB) {
  for (const uint64_t prefetch : {0U, 1U, 4U, 50U}) {
    const Outcome result = run_plan({.samples = 22, .prefetch = prefetch}, {}, 1, 3);
    ASSERT_EQ(result.batches.size(), 5U);
    for (uint64_t b = 0; b < 5; ++b)
      for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(result.batches[b][i], b * 4 + i);
    EXPECT_EQ(result.end, BatchPlan::Head::ended);
    EXPECT_EQ(result.dropped_tail, 2U);
    EXPECT_EQ(result.skipped, 0U);
  }
}

TEST(BatchPlan, UsesEverySampleOnceAnEpoch) {
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::buffer(10)}) {
    const Outcome result =
        run_plan({.samples = 103, .prefetch = 2, .limits = {0, 3}, .shuffle = shuffle}, {}, 5, 4);
    ASSERT_EQ(result.batches.size(), 3U * 25U);
    std::vector<std::vector<uint64_t>> orders(3);
    for (size_t b = 0; b < result.batches.size(); ++b) {
      EXPECT_EQ(result.epochs[b], b / 25);
      for (const uint64_t index : result.batches[b]) orders[result.epochs[b]].push_back(index);
    }
    for (const std::vector<uint64_t>& order : orders) {
      EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), 100U);
      EXPECT_LT(*std::max_element(order.begin(), order.end()), 103U);
    }
    EXPECT_NE(orders[0], orders[1]) << "an epoch is shuffled anew";
    EXPECT_EQ(result.dropped_tail, 9U);
  }
}

TEST(BatchPlan, StepsGoOnIntoTheNextEpochs) {
  const Outcome result = run_plan({.samples = 10, .prefetch = 3, .limits = {7, 0}}, {}, 9, 2);
  EXPECT_EQ(result.batches.size(), 7U);
  EXPECT_EQ(result.epochs, (std::vector<uint64_t>{0, 0, 1, 1, 2, 2, 3}));
}

TEST(BatchPlan, TakesOnlySamplesThatTheStepsNeed) {
  const Outcome result = run_plan({.samples = 100, .prefetch = 8, .limits = {3, 0}}, {}, 9, 2);
  uint64_t tried = 0;
  for (const auto& [index, times] : result.tries) tried += uint64_t(times);
  EXPECT_EQ(tried, 12U);
}

TEST(BatchPlan, OpensNoBatchBeforeARequestWithoutPrefetch) {
  BatchPlan plan(Sampler(100, Shuffle::none, 0), 2, 0, {}, ignore_move);
  EXPECT_FALSE(plan.can_take());
  for (int step = 0; step < 5; ++step) {
    plan.request();
    for (int i = 0; i < 2; ++i) plan.record_filled(*plan.take());
    EXPECT_FALSE(plan.take().has_value());
    ASSERT_EQ(plan.head(), BatchPlan::Head::ready);
    plan.hand_over();
    EXPECT_FALSE(plan.can_take()) << "step " << step << " has not ended";
  }
}

TEST(BatchPlan, OpensAtMostTheDepthAhead) {
  BatchPlan plan(Sampler(1000, Shuffle::none, 0), 2, 3, {}, ignore_move);
  uint64_t handed = 0;
  uint64_t newest = 0;
  for (int step = 0; step < 10; ++step) {
    while (const std::optional<Ticket> ticket = plan.take()) {
      newest = ticket->batch;
      plan.record_filled(*ticket);
    }
    EXPECT_EQ(newest, handed + 2) << "three batches that are not handed over, and no more";
    plan.request();
    EXPECT_FALSE(plan.can_take()) << "asking opens nothing";
    plan.hand_over();
    ++handed;
  }
}

// Checks a plan with bad samples: batches contain none of them and no sample twice in an epoch, and every
// sample is accounted for.
void check_holes(const PlanSetup& setup, const std::set<uint64_t>& bad, const Outcome& outcome) {
  std::map<uint64_t, std::multiset<uint64_t>> used;
  for (size_t b = 0; b < outcome.batches.size(); ++b)
    for (const uint64_t index : outcome.batches[b]) {
      EXPECT_FALSE(bad.contains(index));
      used[outcome.epochs[b]].insert(index);
    }
  for (const auto& [epoch, indices] : used)
    EXPECT_EQ(std::set<uint64_t>(indices.begin(), indices.end()).size(), indices.size());
  for (const auto& [index, times] : outcome.tries) EXPECT_LE(times, 2) << "once an epoch";
  const uint64_t consumed = outcome.batches.size() * setup.batch;
  EXPECT_EQ(consumed + outcome.skipped + outcome.dropped_tail, 2U * setup.samples);
}

TEST(BatchPlan, FillsHolesTheSameWayWhateverTheTiming) {
  std::set<uint64_t> bad;
  for (uint64_t i = 0; i < 211; i += 7) bad.insert(i);
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::buffer(20)}) {
    for (const uint64_t prefetch : {0U, 1U, 3U, 20U}) {
      const PlanSetup setup{
          .samples = 211, .batch = 5, .prefetch = prefetch, .limits = {0, 2}, .shuffle = shuffle};
      const Outcome alone = run_plan(setup, bad, 0, 1);
      for (unsigned timing = 1; timing < 40; ++timing) {
        const Outcome other = run_plan(setup, bad, timing, 1 + timing % 7);
        ASSERT_EQ(other.batches, alone.batches) << "prefetch " << prefetch << " timing " << timing;
        EXPECT_EQ(other.skipped, alone.skipped);
        EXPECT_EQ(other.dropped_tail, alone.dropped_tail);
      }
      check_holes(setup, bad, alone);
    }
  }
}

TEST(BatchPlan, ReplacesABadSampleInItsSlotByTheNextOneThatHasNoBatch) {
  const Outcome result = run_plan({.samples = 14, .batch = 4, .prefetch = 2}, {1, 12}, 1, 1);
  ASSERT_EQ(result.batches.size(), 3U);
  EXPECT_EQ(result.batches[0], (std::vector<uint64_t>{0, 8, 2, 3}))
      << "batches 0 and 1 were open: 8 comes next";
  EXPECT_EQ(result.batches[1], (std::vector<uint64_t>{4, 5, 6, 7}));
  EXPECT_EQ(result.batches[2], (std::vector<uint64_t>{9, 10, 11, 13}))
      << "12 is bad: the tail's 13 takes its slot";
  EXPECT_EQ(result.skipped, 2U);
  EXPECT_EQ(result.dropped_tail, 0U);
}

TEST(BatchPlan, AnEpochHasTheBatchesThatItsGoodSamplesFill) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 200; ++round) {
    std::set<uint64_t> bad;
    while (bad.size() < round % 60) bad.insert(random() % 200);
    for (const uint64_t prefetch : {0U, 1U, 3U, 10U, 50U}) {
      const PlanSetup setup{.samples = 200, .batch = 20, .prefetch = prefetch, .shuffle = Shuffle::global};
      const Outcome result = run_plan(setup, bad, round, 1 + round % 5);
      EXPECT_EQ(result.batches.size(), (200 - bad.size()) / 20) << "prefetch " << prefetch;
      EXPECT_LE(result.skipped, bad.size()) << "what is not tried is tail, bad or not";
      EXPECT_EQ(result.batches.size() * 20 + result.skipped + result.dropped_tail, 200U);
    }
  }
}

TEST(BatchPlan, TheLastOpenBatchGivesItsLastSamples) {
  const Outcome result = run_plan({.samples = 16, .batch = 4, .prefetch = 4}, {1, 2, 15}, 1, 1);
  ASSERT_EQ(result.batches.size(), 3U);
  EXPECT_EQ(result.batches[0], (std::vector<uint64_t>{0, 14, 13, 3})) << "15 is bad";
  EXPECT_EQ(result.batches[1], (std::vector<uint64_t>{4, 5, 6, 7}));
  EXPECT_EQ(result.batches[2], (std::vector<uint64_t>{8, 9, 10, 11}));
  EXPECT_EQ(result.dropped_tail, 1U);
}

TEST(BatchPlan, ABatchOfAnotherEpochGivesNothing) {
  const Outcome result = run_plan({.samples = 4, .batch = 4, .prefetch = 3, .limits = {0, 2}}, {2}, 1, 1);
  EXPECT_TRUE(result.batches.empty());
  EXPECT_EQ(result.end, BatchPlan::Head::empty_epoch);
}

TEST(BatchPlan, GivesUpABatchThatCannotBeFilled) {
  const Outcome result = run_plan({.samples = 8, .batch = 4, .prefetch = 2}, {2}, 1, 1);
  ASSERT_EQ(result.batches.size(), 1U);
  EXPECT_EQ(result.batches[0], (std::vector<uint64_t>{0, 1, 7, 3}));
  EXPECT_EQ(result.dropped_tail, 3U);
  EXPECT_EQ(result.end, BatchPlan::Head::ended);
}

TEST(BatchPlan, EndsWhenAWholeEpochIsBad) {
  std::set<uint64_t> all;
  for (uint64_t i = 0; i < 50; ++i) all.insert(i);
  for (const uint64_t prefetch : {0U, 1U, 4U, 30U}) {
    const Outcome result = run_plan({.samples = 50, .prefetch = prefetch, .limits = {1000, 0}}, all, 4, 3);
    EXPECT_EQ(result.end, BatchPlan::Head::empty_epoch);
    EXPECT_TRUE(result.batches.empty());
    EXPECT_GE(result.skipped, 47U);
  }
}

TEST(BatchPlan, GoodEpochsThatLackASampleGoOn) {
  const Outcome result = run_plan({.samples = 9, .batch = 4, .prefetch = 5, .limits = {6, 0}}, {0, 5}, 2, 2);
  EXPECT_EQ(result.batches.size(), 6U) << "one batch an epoch is left";
}

// A run of 3 epochs that is stopped after any number of batches gives the same remaining batches when it
// continues.
TEST(BatchPlan, ContinuesWithTheSameBatches) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::buffer(5), Shuffle::global}) {
    const PlanSetup setup{.samples = 22, .prefetch = 2, .limits = {0, 3}, .shuffle = shuffle};
    const Outcome whole = run_plan(setup, {}, 1, 3);
    ASSERT_EQ(whole.batches.size(), 15U);
    for (uint64_t made = 0; made <= 15; ++made) {
      PlanSetup rest = setup;
      rest.limits.start = {.batches = made, .epoch = made / 5, .used_samples = made % 5 * 4};
      if (made > 0 && made % 5 == 0)  // also the position after the last step of an epoch
        rest.limits.start = {.batches = made, .epoch = made / 5 - 1, .used_samples = 20};
      const Outcome result = run_plan(rest, {}, 2, 3);
      EXPECT_EQ(result.end, BatchPlan::Head::ended);
      const auto from = ptrdiff_t(made);
      EXPECT_EQ(result.batches, std::vector(whole.batches.begin() + from, whole.batches.end())) << made;
      EXPECT_EQ(result.epochs, std::vector(whole.epochs.begin() + from, whole.epochs.end())) << made;
    }
  }
}

TEST(BatchPlan, LimitsCountFromTheStartOfTheWholeRun) {
  PlanSetup setup{.samples = 22, .prefetch = 2, .limits = {12, 0}};
  setup.limits.start = {.batches = 10, .epoch = 2, .used_samples = 0};
  const Outcome rest = run_plan(setup, {}, 1, 2);
  EXPECT_EQ(rest.epochs, (std::vector<uint64_t>{2, 2}));
  setup.limits.start.batches = 12;
  EXPECT_TRUE(run_plan(setup, {}, 1, 2).batches.empty());
  setup.limits = {0, 2, {.batches = 10, .epoch = 2}};
  EXPECT_TRUE(run_plan(setup, {}, 1, 2).batches.empty());
}

TEST(BatchPlan, SkipsSamplesThatOnlyOneRankHasUsed) {
  PlanSetup setup{.samples = 22, .batch = 1, .limits = {0, 1}};
  setup.limits.start = {.own_extra_samples = 20};
  EXPECT_EQ(run_plan(setup, {}, 1, 2).batches, (std::vector<std::vector<uint64_t>>{{20}, {21}}));
}

}  // namespace
}  // namespace penstock
