#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/cells/verdicts_testing.hpp"

namespace penstock {
namespace {

TEST(Sentences, PrefetchAgainstNone) {
  EXPECT_EQ(
      only_sentence({train_cell(0, 2.0), train_cell(4, 0.06)}, "prefetch"),
      "Prefetching removed 97% of the waiting (alexnet on disk, 4 batches ahead: the accelerator waited "
      "600 us a "
      "step instead of 20 ms).");
  EXPECT_TRUE(has(only_sentence({train_cell(0, 2.0), train_cell(4, 2.5)}, "prefetch"),
                  "removed none of the waiting"));
}

TEST(Sentences, PrefetchCountsStepsNotRuns) {
  EXPECT_TRUE(
      has(only_sentence({train_cell(0, 2.0, 100), train_cell(1, 0.2, 200)}, "prefetch"), "removed 95%"));
}

TEST(Sentences, PrefetchFromOverlapWhereZeroWasNotMeasured) {
  Record record = train_cell(4, 0.06);
  record.metrics["input_overlap"] = {"1", Better::higher, "run", {0.97}};
  EXPECT_TRUE(has(only_sentence({record}, "prefetch"), "Prefetching hid 97% of the input's own time"));
  EXPECT_TRUE(sentence_texts({train_cell(4, 0.06)}, "prefetch").empty());
  EXPECT_TRUE(sentence_texts({train_cell(0, 0.06)}, "prefetch").empty());
}

TEST(Sentences, UtilizationAndBottleneck) {
  Record record = train_cell(4, 0.06);
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {0.93}};
  for (const auto& [stage, busy] : {std::pair{"read", 1.0}, std::pair{"decode", 9.0}}) {
    record.metrics[std::string("stage_busy_s.") + stage] = {"s", Better::neither, "run", {busy}};
    record.metrics[std::string("stage_starved_s.") + stage] = {"s", Better::neither, "run", {10 - busy}};
  }
  EXPECT_EQ(only_sentence({record}, "utilization"),
            "The accelerator utilization (AU) of alexnet on disk was 93% with prefetch 4; AU leaves out the "
            "first step, "
            "checkpoints and validation.");
  EXPECT_TRUE(has(only_sentence({record}, "bottleneck"),
                  "With prefetch 4, decode is the bottleneck of alexnet on disk: its threads were busy 90%"));
  record.metrics["accelerator_utilization"].samples = {1};
  EXPECT_TRUE(sentence_texts({record}, "bottleneck").empty()) << "the accelerator waited for nothing";
}

TEST(Sentences, AStageIsTheBottleneckOnlyIfTheAcceleratorIsKnownToHaveWaitedForIt) {
  Record record = train_cell(4, 0.06);
  const auto set = [&](const std::string& name, double value) {
    record.metrics[name] = {"s", Better::neither, "run", {value}};
  };
  set("stage_busy_s.read", 9);
  set("stage_starved_s.read", 1);
  set("stage_busy_s.batch", 1);
  set("stage_starved_s.batch", 9);
  const auto named = [&] { return !sentence_texts({record}, "bottleneck").empty(); };
  EXPECT_TRUE(named()) << "nothing computes, so that the pipeline is always waited for";
  set("stage_busy_s.accelerator", 5);
  set("stage_starved_s.accelerator", 5);
  EXPECT_FALSE(named()) << "a single step has no utilization: unknown";
  set("accelerator_utilization", 0.5);
  EXPECT_TRUE(named());
  set("lost_s.barrier", 4);
  set("lost_s.read", 1);
  EXPECT_FALSE(named()) << "the accelerator lost its time to the barrier";
  set("lost_s.read", 4.5);
  EXPECT_TRUE(named());
  set("stage_busy_s.accelerator", 9.9);
  set("stage_starved_s.accelerator", 0.1);
  record.metrics.erase("accelerator_utilization");
  EXPECT_FALSE(named()) << "nor is the accelerator, as long as its utilization is unknown";
}

TEST(Sentences, AnAcceleratorIsBusyByOneDefinitionOnly) {
  Record record = train_cell(4, 0.06);
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {1}};
  for (const auto& [stage, busy] : {std::pair{"read", 1.0}, std::pair{"accelerator", 9.7}}) {
    record.metrics[std::string("stage_busy_s.") + stage] = {"s", Better::neither, "run", {busy}};
    record.metrics[std::string("stage_starved_s.") + stage] = {"s", Better::neither, "run", {10 - busy}};
  }
  EXPECT_EQ(only_sentence({record}, "bottleneck"),
            "With prefetch 4, the accelerator is the bottleneck of alexnet on disk.");
}

void run_metric(Record& record, const std::string& name, std::vector<double> samples) {
  record.metrics[name] = {"1", Better::neither, "run", std::move(samples)};
}

TEST(Sentences, WhatAnAcceleratorLostAndToWhom) {
  Record record = train_cell(4, 2.0);
  run_metric(record, "accelerator_utilization", {0.8});
  run_metric(record, "wall_s", {10});
  run_metric(record, "lost_s.read", {0.5});
  run_metric(record, "lost_s.straggler", {1.5});
  run_metric(record, "lost_s.queue", {0.01});
  EXPECT_EQ(only_sentence({record}, "lost"),
            "With prefetch 4, the accelerator of alexnet on disk lost 20% of the wall time, the first batch "
            "included: 15% to straggler and "
            "5% to read.");
  record.parameters["ranks"] = 4;
  run_metric(record, "steps", {100});
  run_metric(record, "straggler_rank", {2});
  run_metric(record, "straggler_steps", {90});
  EXPECT_TRUE(has(only_sentence({record}, "lost"),
                  "The others waited for rank 2, which was the last at 90% of its steps."));
  run_metric(record, "straggler_steps", {60});
  EXPECT_FALSE(has(only_sentence({record}, "lost"), "rank 2")) << "that may be chance";
}

TEST(Sentences, WhatStepsThatBurnProcessorsLostIsNotTheBarriers) {
  Record record = train_cell(4, 2.0);
  run_metric(record, "accelerator_utilization", {0.8});
  run_metric(record, "wall_s", {10});
  run_metric(record, "lost_s.decode", {1.5});
  run_metric(record, "lost_s.barrier", {0.5});
  record.parameters["accelerator"] = "emulated:step=10ms";
  EXPECT_TRUE(has(only_sentence({record}, "lost"), "15% to decode and 5% to barrier."));
  EXPECT_FALSE(has(only_sentence({record}, "lost"), "burn="));
  record.parameters["accelerator"] = "emulated:step=10ms,burn=cpu:0.5";
  EXPECT_TRUE(has(only_sentence({record}, "lost"),
                  "15% to decode and 5% to longer steps. Its steps and the workers share this machine's "
                  "processors (burn=)"));
  record.parameters["accelerators"] = 2;
  EXPECT_TRUE(has(only_sentence({record}, "lost"), "5% to barrier and longer steps."));
}

TEST(Sentences, CellsThatThisMachineLimitedAreNoFindings) {
  Record busy = train_cell(4, 2.5);
  busy.verdict = Verdict::client_bound;
  EXPECT_TRUE(has(only_sentence({train_cell(0, 2.0), busy}, "prefetch"), "client_bound"));
  EXPECT_FALSE(has(only_sentence({train_cell(0, 2.0), train_cell(4, 2.5)}, "prefetch"), "too busy"));
  Record alone = train_cell(4, 0.1);
  run_metric(alone, "input_overlap", {0.95});
  EXPECT_FALSE(has(only_sentence({alone}, "prefetch"), "too busy"));
  alone.verdict = Verdict::client_bound;
  EXPECT_TRUE(has(only_sentence({alone}, "prefetch"), "client_bound"));
  Record other = busy;
  EXPECT_TRUE(has(only_sentence({busy}, "verdict.client_bound"), "alexnet on disk with prefetch 4"));
  other.parameters["threads"] = 7;
  EXPECT_TRUE(has(only_sentence({busy, other}, "verdict.client_bound"),
                  "alexnet on disk at 7 threads with prefetch 4"));
}

TEST(Sentences, DlioNextToOursWhereTheyDiffer) {
  Record record = train_cell(4, 2.0);
  record.parameters["app"] = "dlio";
  record.parameters["au"] = 0.9;
  run_metric(record, "accelerator_utilization", {0.99});
  run_metric(record, "au_dlio", {0.985});
  EXPECT_FALSE(has(only_sentence({record}, "dlio"), "has a batch as soon"));
  run_metric(record, "au_dlio", {0.81});
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "counted from when a batch was ready, AU is 99%."));
}

TEST(Sentences, WhatGoesByBetweenSteps) {
  Record record = train_cell(4, 2.0);
  run_metric(record, "wall_s", {10});
  run_metric(record, "validation_passes", {4});
  run_metric(record, "validation_samples", {64});
  run_metric(record, "validation_s", {2.5});
  EXPECT_TRUE(has(only_sentence({record}, "validation"),
                  "validated 4 times, on 64 samples in all: 2.5 s between its steps (25%"));
  run_metric(record, "validation_passes", {1});
  EXPECT_TRUE(has(only_sentence({record}, "validation"), "validated once, on"));
  run_metric(record, "checkpoint_s", {1, 1, 2});
  run_metric(record, "checkpoint_bytes", {3 << 20});
  run_metric(record, "tier_bytes_read", {1 << 20});
  EXPECT_TRUE(has(only_sentence({record}, "checkpoints"),
                  "3 checkpoints: 4 s (40% of the wall), 1 s each. It wrote 3"));
  EXPECT_FALSE(has(only_sentence({record}, "checkpoints"), "runs without an accelerator"));
  run_metric(record, "input_alone_s", {3});
  EXPECT_TRUE(has(only_sentence({record}, "checkpoints"), ", the runs without an accelerator included."));
  run_metric(record, "file_reads", {37});
  run_metric(record, "file_reads.validation", {17});
  run_metric(record, "read_corrected_bytes_per_s", {4096});
  run_metric(record, "read_published_bytes_per_s", {1024});
  EXPECT_TRUE(has(only_sentence({record}, "file_reads"), "loaded 37 files, 17 of them to validate, at 4"));
  run_metric(record, "loss_first", {6.9});
  run_metric(record, "loss_last", {0.25});
  EXPECT_TRUE(has(only_sentence({record}, "loss"), "from 6.9 to 0.25"));
}

TEST(Sentences, HowLongReadingWentOnAndUnderSteps) {
  Record record = train_cell(4, 2.0);
  run_metric(record, "timeline_spans", {900});
  run_metric(record, "timeline_dropped_spans", {0});
  run_metric(record, "read_merged_s", {2});
  run_metric(record, "read_share", {0.25});
  run_metric(record, "read_train_overlap_s", {1.5});
  run_metric(record, "train_merged_s", {4});
  EXPECT_EQ(
      only_sentence({record}, "timeline"),
      "With prefetch 4, at least one worker of alexnet on disk was reading 25% of the time (2 s), 75% of it "
      "while the accelerator computed; that is not how long the device was busy, because a read that "
      "waits for a processor counts as one.");
  run_metric(record, "train_merged_s", {0});
  EXPECT_FALSE(has(only_sentence({record}, "timeline"), "computed")) << "nothing ever did";
  record = train_cell(4, 2.0);
  run_metric(record, "timeline_spans", {900});
  run_metric(record, "timeline_dropped_spans", {100});
  EXPECT_TRUE(has(only_sentence({record}, "timeline"), "lacks 10% of its spans"));
}

Record record_of_search(double fed) {
  Record record = train_cell(2, 0.06);
  record.parameters["au"] = 0.9;
  record.parameters["step_s"] = 0.05;
  run_metric(record, "accelerator_utilization", {0.95, 0.91, 0.99, 0.97, 0.98});
  run_metric(record, "accelerators_fed", {fed});
  return record;
}

TEST(Sentences, HowManyAcceleratorsAreFedAndWhatOneMoreCameTo) {
  Record record = record_of_search(7);
  EXPECT_EQ(only_sentence({record}, "fed"),
            "With prefetch 2, alexnet on disk feeds 7 accelerators with steps of 50 ms: AU was at least 90% "
            "in 5 runs in a row.");
  record.parameters["one_more_missed_by"] = "input";
  run_metric(record, "utilization_with_one_more", {0.83});
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "in a row; with one more it was 83%."));
  run_metric(record, "utilization_with_one_more", {0.8991});
  EXPECT_TRUE(
      has(only_sentence({record}, "fed"), "at least 90.0% in 5 runs in a row; with one more it was 89.9%."));
  record.parameters["one_more_missed_by"] = "client";
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "this machine was too busy"));
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "feeds at least 7 accelerators")) << "it could be more";
  record.parameters["one_more_missed_by"] = "memory";
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "no memory"));
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "feeds at least 7 accelerators"));
  record.parameters.erase("one_more_missed_by");
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "feeds 7 accelerators"));
  record.parameters["accelerators_at_most"] = 7;
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "feeds at least 7 accelerators"));
  record.metrics.erase("accelerator_utilization");
  EXPECT_TRUE(sentence_texts({record}, "fed").empty());
}

TEST(Sentences, NoneFedSaysWhy) {
  Record record = record_of_search(0);
  run_metric(record, "accelerator_utilization", {0.92, 0.89});
  record.parameters["one_more_missed_by"] = "input";
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "its AU was 89% where 90% was asked for"));
  run_metric(record, "accelerator_utilization", {0.92, 0.8975});
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "its AU was 89.8% where 90.0% was asked for"));
  record.parameters["one_more_missed_by"] = "client";
  EXPECT_TRUE(has(only_sentence({record}, "fed"), "this machine was too busy to emulate it"));
}

TEST(Sentences, EpochsThatCameFromMemoryAreNamed) {
  Record record = train_cell(2, 0.06);
  run_metric(record, "epoch_device_bytes_fraction", {1.0, 0.002, 0, 0.001, 0.5, 0});
  EXPECT_TRUE(has(only_sentence({record}, "cached_epochs"),
                  "Epochs 2 to 4 and 6 of alexnet on disk (prefetch 2) were served from"));
  run_metric(record, "epoch_device_bytes_fraction", {1.0, 0.9});
  EXPECT_TRUE(sentence_texts({record}, "cached_epochs").empty());
  run_metric(record, "epoch_device_bytes_fraction", {0});
  EXPECT_TRUE(has(only_sentence({record}, "cached_epochs"), "Epoch 1 of"));
  record.parameters["cache"] = "warm";
  EXPECT_TRUE(sentence_texts({record}, "cached_epochs").empty()) << "warm was requested";
}

TEST(Sentences, DlioIsHeldToItsOwnArithmetic) {
  Record record = train_cell(2, 0.06);
  run_metric(record, "au_dlio", {0.88});
  record.parameters["au"] = 0.9;
  EXPECT_TRUE(sentence_texts({record}, "dlio").empty());
  record.parameters["app"] = "dlio";
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "makes AU 88% of these steps, less than the 90%"));
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "not an MLPerf Storage result"));
  run_metric(record, "au_dlio", {0.896});
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "makes AU 89.6% of these steps, less than the 90.0%"));
  run_metric(record, "au_dlio", {0.9});
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "makes AU 90% of these steps, no less than the 90%"));
  record.metrics.erase("au_dlio");
  EXPECT_TRUE(sentence_texts({record}, "dlio").empty()) << "nothing was computed";
  run_metric(record, "accelerator_utilization", {1});
  EXPECT_TRUE(has(only_sentence({record}, "dlio"), "no AU for"));
}

TEST(Sentences, ALongTailIsSaid) {
  Record record = train_cell(2, 0.06);
  run_metric(record, "dropped_tail_samples", {20});
  run_metric(record, "samples_per_s", {18});
  run_metric(record, "wall_s", {10});
  EXPECT_TRUE(has(only_sentence({record}, "tail"), "10% of the samples of alexnet on disk were left out"));
  EXPECT_TRUE(has(only_sentence({record}, "tail"), "a --batch that divides an epoch"));
  run_metric(record, "skipped_samples", {3});
  EXPECT_FALSE(has(only_sentence({record}, "tail"), "--prefetch")) << "the number of epochs is unknown";
  // 200 good samples of an epoch leave 200 % batch. A smaller prefetch helps only if more were left out.
  record.parameters["epochs"] = 1;
  for (const unsigned batch : {180U, 60U, 7U, 19U}) {
    record.parameters["batch"] = batch;
    const bool is_rest = 20 <= 200 % batch;
    EXPECT_EQ(has(only_sentence({record}, "tail"), "a smaller --prefetch"), !is_rest) << batch;
    EXPECT_EQ(has(only_sentence({record}, "tail"),
                  "200 good samples make " + std::to_string(200 / batch) + " batch"),
              is_rest)
        << batch;
  }
  record.parameters["prefetch"] = 0;
  EXPECT_FALSE(has(only_sentence({record}, "tail"), "--prefetch "));
  run_metric(record, "dropped_tail_samples", {2});
  EXPECT_TRUE(sentence_texts({record}, "tail").empty());
}

// The start and the end of the workers are in none of a stage's three times, so they are no measure alone.
TEST(Sentences, AStageThatWasIdleForUncountedTimeIsNoBottleneck) {
  for (const double wall_s : {4.0, 5.0, 100.0}) {
    Record record = train_cell(4, 0.06);
    run_metric(record, "stage_busy_s.read", {4});
    run_metric(record, "stage_busy_s.accelerator", {0});
    run_metric(record, "wall_s", {wall_s});
    record.parameters["threads"] = 1;
    EXPECT_EQ(sentence_texts({record}, "bottleneck").empty(), wall_s > 8);
    if (wall_s < 5) {
      EXPECT_TRUE(has(only_sentence({record}, "bottleneck"), "busy 100%"));
    }
    record.parameters["threads"] = 2;
    EXPECT_EQ(sentence_texts({record}, "bottleneck").empty(), true) << "busy at most half of the time";
  }
}

}  // namespace
}  // namespace penstock
