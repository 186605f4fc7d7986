#include "results/compare/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "results/compare/compare_testing.hpp"

namespace penstock {
namespace {

Comparison compare(const RecordSet& base, const RecordSet& candidate, CompareSettings settings = {}) {
  settings.commands = known_commands();
  auto comparison = compare_records(base, candidate, settings);
  EXPECT_TRUE(comparison.ok()) << (comparison.ok() ? "" : comparison.error().message());
  return comparison.ok() ? *comparison : Comparison();
}

ComparedMetric only_row(const Comparison& comparison) {
  EXPECT_EQ(comparison.rows.size(), 1U);
  return comparison.rows.empty() ? ComparedMetric() : comparison.rows[0];
}

std::vector<double> multiplied(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

Record with_count(Record record, const std::string& name, Better better, std::vector<double> samples) {
  record.metrics[name] = {"1", better, "repeat", std::move(samples)};
  return record;
}

TEST(Comparison, APairedRegressionIsFoundWithItsSize) {
  const Comparison comparison =
      compare(arm_of_suite("base", noise(20, 100, 1)), arm_of_suite("candidate", noise(20, 90, 2)));
  const ComparedMetric row = only_row(comparison);
  EXPECT_EQ(row.outcome, GateOutcome::regression);
  EXPECT_TRUE(row.paired);
  EXPECT_EQ(row.base_samples, 20U);
  EXPECT_NEAR(*row.change, -0.1, 0.02);
  EXPECT_LT(row.interval->low, *row.change);
  EXPECT_GT(row.interval->high, *row.change);
  EXPECT_LT(*row.p, 0.001);
  EXPECT_EQ(comparison.tested_metrics, 1U);
  EXPECT_EQ(comparison.least_samples, 7U);
  EXPECT_EQ(comparison.exit_code(), 1);
  EXPECT_TRUE(comparison.remarks.empty());
}

TEST(Comparison, AnImprovementIsFoundLikeARegression) {
  const Comparison comparison =
      compare(arm_of_suite("base", noise(20, 90, 1)), arm_of_suite("candidate", noise(20, 100, 2)));
  EXPECT_EQ(only_row(comparison).outcome, GateOutcome::better);
  EXPECT_EQ(comparison.exit_code(), 0);
}

TEST(Comparison, WithoutAChangeTheDetectableChangeIsReported) {
  const ComparedMetric row = only_row(
      compare(arm_of_suite("base", noise(20, 100, 1)), arm_of_suite("candidate", noise(20, 100, 2))));
  EXPECT_EQ(row.outcome, GateOutcome::same);
  ASSERT_TRUE(row.detectable);
  EXPECT_GT(*row.detectable, 0.05);
  EXPECT_LT(*row.detectable, 0.09);
}

TEST(Comparison, SmallChangesDoNotCount) {
  const std::vector<double> rates = noise(20, 100, 1);
  const ComparedMetric row =
      only_row(compare(arm_of_suite("base", rates), arm_of_suite("candidate", multiplied(rates, 0.97))));
  EXPECT_EQ(row.outcome, GateOutcome::same);
  EXPECT_NEAR(*row.change, -0.03, 1e-9);
  EXPECT_EQ(row.reason, "a change of less than 5%");
  EXPECT_EQ(only_row(compare(arm_of_suite("base", rates), arm_of_suite("candidate", multiplied(rates, 0.97)),
                             {.least_effect = 0.02}))
                .outcome,
            GateOutcome::regression);
}

TEST(Comparison, LessTimeIsBetterAndMoreIsWorse) {
  const CompareSettings tails{.metrics = {"latency*"}};
  const auto waits = [](const std::string& arm, const std::vector<double>& values) {
    RecordSet set = arm_of_suite(arm, values);
    for (StoredRecord& stored : set.records)
      stored.record.metrics = {
          {"latency_ns_p99", {"ns", Better::lower, "repeat", stored.record.metrics.begin()->second.samples}}};
    return set;
  };
  EXPECT_EQ(only_row(compare(waits("base", noise(20, 100, 1)), waits("candidate", noise(20, 120, 2)), tails))
                .outcome,
            GateOutcome::regression);
  EXPECT_EQ(only_row(compare(waits("base", noise(20, 120, 1)), waits("candidate", noise(20, 100, 2)), tails))
                .outcome,
            GateOutcome::better);
}

TEST(Comparison, PairingRemovesDrift) {
  std::vector<double> base;
  std::vector<double> candidate;
  for (int i = 0; i < 20; ++i) {
    const double drift = 100.0 * std::pow(0.9, i);
    base.push_back(drift);
    candidate.push_back(drift * (0.90 - 0.001 * i));
  }
  EXPECT_EQ(only_row(compare(arm_of_suite("base", base), arm_of_suite("candidate", candidate))).outcome,
            GateOutcome::regression);
  const Comparison unpaired = compare(runs_with(base), runs_with(candidate));
  EXPECT_EQ(only_row(unpaired).outcome, GateOutcome::same);
  ASSERT_EQ(unpaired.remarks.size(), 1U);
  EXPECT_NE(unpaired.remarks[0].find("unpaired: drift not excluded"), std::string::npos);
}

TEST(Comparison, UnpairedRunsAreComparedByRanks) {
  const ComparedMetric row = only_row(compare(runs_with(noise(12, 100, 1)), runs_with(noise(14, 80, 2))));
  EXPECT_EQ(row.outcome, GateOutcome::regression);
  EXPECT_FALSE(row.paired);
  EXPECT_EQ(row.base_samples, 12U);
  EXPECT_EQ(row.candidate_samples, 14U);
  EXPECT_NEAR(*row.change, -0.2, 0.03);
}

TEST(Comparison, SingleRepeatsAreComparedOnlyIfThereAreTooFewRuns) {
  RecordSet one = runs_with({100});
  one.records[0].record.metrics["payload_bytes_per_s"].samples = noise(10, 1e8, 1);
  EXPECT_EQ(only_row(compare(one, one)).base_samples, 10U);
  RecordSet many = runs_with(noise(9, 100, 1));
  for (StoredRecord& stored : many.records)
    for (int i = 0; i < 4; ++i) {
      std::vector<double>& samples = stored.record.metrics["payload_bytes_per_s"].samples;
      samples.push_back(samples[0] * (1 + 0.001 * i));
    }
  EXPECT_EQ(only_row(compare(many, many)).base_samples, 9U);
}

TEST(Comparison, TheSameArmOfTwoSuitesIsNotPaired) {
  const Comparison comparison =
      compare(arm_of_suite("base", noise(20, 100, 1)), arm_of_suite("base", noise(20, 100, 2)));
  EXPECT_FALSE(only_row(comparison).paired);
}

TEST(Comparison, TooFewPairsAreInconclusiveWhateverTheirValues) {
  for (size_t n = 1; n < 7; ++n) {
    const Comparison comparison =
        compare(arm_of_suite("base", noise(n, 100, 1)), arm_of_suite("candidate", noise(n, 1, 2)));
    const ComparedMetric row = only_row(comparison);
    EXPECT_EQ(row.outcome, GateOutcome::inconclusive) << n;
    EXPECT_FALSE(row.p) << n;
    EXPECT_EQ(comparison.exit_code(), 3);
    EXPECT_EQ(row.reason, std::to_string(n) + (n == 1 ? " pair" : " pairs") + " where 7 are needed");
  }
  EXPECT_EQ(
      only_row(compare(arm_of_suite("base", noise(7, 100, 1)), arm_of_suite("candidate", noise(7, 1, 2))))
          .outcome,
      GateOutcome::regression);
}

TEST(Comparison, ManyMetricsNeedMorePairs) {
  const auto cells = [](const std::string& arm, size_t n, double rate) {
    std::vector<Record> records;
    for (int threads = 1; threads <= 30; ++threads)
      for (size_t i = 0; i < n; ++i) {
        Record record = turn_of(arm, i, rate + double(i));
        record.parameters["threads"] = threads;
        records.push_back(record);
      }
    return set_of(records);
  };
  const Comparison few = compare(cells("base", 11, 100), cells("candidate", 11, 50));
  EXPECT_EQ(few.tested_metrics, 30U);
  EXPECT_EQ(few.least_samples, 12U);
  EXPECT_EQ(few.count(GateOutcome::inconclusive), 30U);
  EXPECT_EQ(compare(cells("base", 12, 100), cells("candidate", 12, 50)).count(GateOutcome::regression), 30U);
}

TEST(Comparison, RunsWithoutAPartnerAreLeftOut) {
  const ComparedMetric row = only_row(
      compare(arm_of_suite("base", noise(20, 100, 1)), arm_of_suite("candidate", noise(17, 100, 2))));
  EXPECT_EQ(row.base_samples, 17U);
  EXPECT_EQ(row.reason, "3 runs without a partner left out");
}

TEST(Comparison, MissingAndAddedCells) {
  const Comparison comparison =
      compare(set_of({read_cell("disk", 1, "cold", 100), read_cell("disk", 2, "cold", 100)}),
              set_of({read_cell("disk", 2, "cold", 100), read_cell("disk", 4, "cold", 100)}));
  EXPECT_EQ(comparison.count(GateOutcome::missing), 1U);
  EXPECT_EQ(comparison.count(GateOutcome::added), 1U);
  EXPECT_EQ(comparison.rows[0].cell, "read imagenet, disk, threads 1, cache cold");
  EXPECT_EQ(comparison.exit_code(), 4);
}

TEST(Comparison, WithoutACommonCellAllCellsAreMissing) {
  const Comparison comparison =
      compare(set_of({read_cell("disk", 1, "cold", 100)}), set_of({read_cell("fast", 1, "cold", 100)}));
  EXPECT_EQ(comparison.exit_code(), 4);
  ASSERT_FALSE(comparison.remarks.empty());
  EXPECT_EQ(comparison.remarks[0], "base and candidate have no cell in common");
}

TEST(Comparison, AFailedRunIsReportedWithItsReason) {
  RecordSet candidate = runs_with(noise(10, 100, 2));
  candidate.records[3].record.verdict = Verdict::wrong_bytes;
  candidate.records[3].record.reason = "sample 7";
  const Comparison comparison = compare(runs_with(noise(10, 100, 1)), candidate);
  EXPECT_EQ(comparison.exit_code(), 4);
  EXPECT_EQ(comparison.rows[0].outcome, GateOutcome::failed);
  EXPECT_EQ(comparison.rows[0].reason, "1 of 10 runs: wrong_bytes: sample 7");
  EXPECT_EQ(comparison.rows[1].candidate_samples, 9U);  // the other samples are still compared
  const Comparison turned = compare(candidate, runs_with(noise(10, 100, 1)));
  EXPECT_EQ(turned.exit_code(), 0);
}

TEST(Comparison, AFailedBaseIsInconclusive) {
  RecordSet base = runs_with({100});
  base.records[0].record.verdict = Verdict::failed;
  const Comparison comparison = compare(base, runs_with({100}));
  EXPECT_EQ(only_row(comparison).outcome, GateOutcome::inconclusive);
  EXPECT_EQ(comparison.exit_code(), 3);
}

TEST(Comparison, ACandidateWithoutFiniteNumbersHasFailed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(only_row(compare(runs_with(noise(8, 100, 1)), runs_with(std::vector<double>(8, nan)))).outcome,
            GateOutcome::failed);
  EXPECT_EQ(only_row(compare(runs_with(std::vector<double>(8, nan)), runs_with(noise(8, 100, 1)))).outcome,
            GateOutcome::inconclusive);
}

TEST(Comparison, AMetricThatIsGoneIsMissing) {
  RecordSet candidate = runs_with({100});
  candidate.records[0].record.metrics.clear();
  const ComparedMetric row = only_row(compare(runs_with({100}), candidate));
  EXPECT_EQ(row.outcome, GateOutcome::missing);
  EXPECT_EQ(row.metric, "payload_bytes_per_s");
}

TEST(Comparison, ZeroIsLessThanAnyNumberAndEqualToZero) {
  const std::vector<double> zeros(8, 0.0);
  const std::vector<double> rates = noise(8, 100, 1);
  const ComparedMetric stopped =
      only_row(compare(arm_of_suite("base", rates), arm_of_suite("candidate", zeros)));
  EXPECT_EQ(stopped.outcome, GateOutcome::regression);
  EXPECT_EQ(*stopped.change, -1);
  const ComparedMetric started =
      only_row(compare(arm_of_suite("base", zeros), arm_of_suite("candidate", rates)));
  EXPECT_EQ(started.outcome, GateOutcome::better);
  EXPECT_FALSE(started.change);
  const ComparedMetric still =
      only_row(compare(arm_of_suite("base", zeros), arm_of_suite("candidate", zeros)));
  EXPECT_EQ(still.outcome, GateOutcome::same);
  EXPECT_EQ(*still.change, 0);
  EXPECT_EQ(only_row(compare(runs_with(rates), runs_with(zeros))).outcome, GateOutcome::regression);
  EXPECT_EQ(only_row(compare(runs_with(zeros), runs_with(zeros))).outcome, GateOutcome::same);
}

TEST(Comparison, EqualSamplesAreNoChange) {
  const std::vector<double> equal(20, 100.0);
  const ComparedMetric row = only_row(compare(arm_of_suite("base", equal), arm_of_suite("candidate", equal)));
  EXPECT_EQ(row.outcome, GateOutcome::same);
  EXPECT_EQ(*row.p, 1);
  EXPECT_EQ(*row.change, 0);
}

TEST(Comparison, OtherUnitsAndDirectionsAreIncomparable) {
  RecordSet unit = runs_with({100});
  unit.records[0].record.metrics["payload_bytes_per_s"].unit = "MB/s";
  const Comparison comparison = compare(runs_with({100}), unit);
  EXPECT_EQ(only_row(comparison).reason, "the unit is 'B/s' here and 'MB/s' there");
  EXPECT_EQ(comparison.exit_code(), 5);
  RecordSet direction = runs_with({100});
  direction.records[0].record.metrics["payload_bytes_per_s"].better = Better::lower;
  EXPECT_EQ(only_row(compare(runs_with({100}), direction)).reason, "better is higher here and lower there");
}

TEST(Comparison, OtherMachinesDataAndCacheStatesAreIncomparable) {
  RecordSet host = runs_with(noise(8, 100, 2));
  for (StoredRecord& stored : host.records) stored.record.environment["host"] = "elsewhere";
  const Comparison comparison = compare(runs_with(noise(8, 100, 1)), host);
  EXPECT_EQ(only_row(comparison).reason, "different host: h in the base, elsewhere in the candidate");
  EXPECT_EQ(comparison.exit_code(), 5);
  EXPECT_EQ(only_row(compare(runs_with(noise(8, 100, 1)), host, {.allow_other_machines = true})).outcome,
            GateOutcome::same);

  RecordSet data = runs_with({100});
  data.records[0].record.corpus["checksum"] = "other";
  EXPECT_EQ(only_row(compare(runs_with({100}), data, {.allow_other_machines = true})).outcome,
            GateOutcome::incomparable);
  RecordSet cache = runs_with({100});
  cache.records[0].record.cache["client_data"] = "unverified";
  EXPECT_EQ(only_row(compare(runs_with({100}), cache)).reason,
            "different cache state: cold in the base, unverified in the candidate");
  RecordSet memory = runs_with({100});
  memory.records[0].record.environment["memory_bytes"] = 2e9;
  RecordSet little_more = memory;
  little_more.records[0].record.environment["memory_bytes"] = 2.05e9;
  RecordSet twice = memory;
  twice.records[0].record.environment["memory_bytes"] = 4e9;
  EXPECT_EQ(compare(memory, little_more).exit_code(), 3);  // inconclusive: each side has one run
  EXPECT_EQ(compare(memory, twice).exit_code(), 5);
}

TEST(Comparison, OtherKernelsAreARemark) {
  RecordSet candidate = runs_with({100});
  candidate.records[0].record.environment["kernel"] = "6.2";
  RecordSet base = runs_with({100});
  base.records[0].record.environment["kernel"] = "6.1";
  const Comparison comparison = compare(base, candidate);
  EXPECT_EQ(comparison.remarks.back(), "the kernel: 6.1 in the base, 6.2 in the candidate");
}

TEST(Comparison, CountsAreComparedExactly) {
  const auto calls = [](Better better, std::vector<double> samples) {
    Record record = run_of(100);
    record.metrics.clear();
    return set_of({with_count(record, "calls.open", better, std::move(samples))});
  };
  const Comparison more = compare(calls(Better::lower, {12, 12}), calls(Better::lower, {12, 13}));
  EXPECT_EQ(only_row(more).outcome, GateOutcome::regression);
  EXPECT_EQ(only_row(more).reason, "1 of 2 samples differ: 13 instead of 12");
  EXPECT_TRUE(only_row(more).is_exact_count);
  EXPECT_EQ(more.tested_metrics, 0U);
  EXPECT_EQ(more.exit_code(), 1);  // a count needs no minimum of runs
  EXPECT_EQ(only_row(compare(calls(Better::lower, {12, 12}), calls(Better::lower, {11, 11}))).outcome,
            GateOutcome::better);
  EXPECT_EQ(only_row(compare(calls(Better::higher, {12, 12}), calls(Better::higher, {11, 11}))).outcome,
            GateOutcome::regression);
  const Comparison neither = compare(calls(Better::neither, {12, 12}), calls(Better::neither, {11, 11}));
  EXPECT_EQ(only_row(neither).outcome, GateOutcome::differs);
  EXPECT_EQ(neither.exit_code(), 0);
  EXPECT_EQ(only_row(compare(calls(Better::lower, {12, 12}), calls(Better::lower, {12}))).outcome,
            GateOutcome::same);
  // A number that varies in the base, or that is not whole, is not a count.
  EXPECT_EQ(only_row(compare(calls(Better::lower, {12, 13}), calls(Better::lower, {12, 14}))).outcome,
            GateOutcome::inconclusive);
  EXPECT_FALSE(
      only_row(compare(calls(Better::lower, {1, 1}), calls(Better::lower, {0.999, 0.999}))).is_exact_count);
}

TEST(Comparison, TheMostSeriousOutcomeDecidesTheExitCode) {
  const auto code = [](std::vector<GateOutcome> outcomes) {
    Comparison comparison;
    for (const GateOutcome outcome : outcomes) comparison.rows.emplace_back().outcome = outcome;
    return comparison.exit_code();
  };
  using enum GateOutcome;
  EXPECT_EQ(code({}), 0);
  EXPECT_EQ(code({same, better, added, differs}), 0);
  EXPECT_EQ(code({same, inconclusive}), 3);
  EXPECT_EQ(code({inconclusive, regression}), 1);
  EXPECT_EQ(code({regression, missing}), 4);
  EXPECT_EQ(code({failed, regression, inconclusive}), 4);
  EXPECT_EQ(code({missing, incomparable, regression}), 5);
}

TEST(Comparison, TheMetricsCanBeChosen) {
  const RecordSet base = set_of({read_cell("disk", 1, "cold", 100)});
  const Comparison comparison = compare(base, base, {.metrics = {"samples*"}});
  EXPECT_EQ(only_row(comparison).metric, "samples_per_s");
  const auto none = compare_records(base, base, {.metrics = {"nothing"}});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().what.find("the base has payload_bytes_per_s, samples_per_s"), std::string::npos)
      << none.error().what;
}

TEST(Comparison, RefusesEmptySidesAndInvalidSettings) {
  const RecordSet one = runs_with({100});
  EXPECT_FALSE(compare_records(set_of({}), one, {}).ok());
  EXPECT_FALSE(compare_records(one, set_of({}), {}).ok());
  EXPECT_FALSE(compare_records(one, one, {.alpha = 0}).ok());
  EXPECT_FALSE(compare_records(one, one, {.alpha = 0.7}).ok());
  EXPECT_FALSE(compare_records(one, one, {.least_effect = -0.1}).ok());
  EXPECT_FALSE(compare_records(one, one, {.least_effect = std::nan("")}).ok());
}

}  // namespace
}  // namespace penstock
