#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/read/view/read_cells.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/cells/verdicts_testing.hpp"

namespace penstock {
namespace {

TEST(Scaling, StopsAtTheFirstCountAfterWhichNothingBringsTenPercent) {
  const ScalingPoint curve[] = {{1, 100}, {2, 190}, {4, 300}, {8, 310}};
  const Scaling scaling = measure_scaling(curve);
  EXPECT_EQ(scaling.useful_count, 4U);
  EXPECT_FALSE(scaling.still_gains);
  EXPECT_EQ(scaling.loss_after_peak, 0);
}

TEST(Scaling, ALaterGainCountsAsGain) {
  const ScalingPoint curve[] = {{1, 100}, {2, 100}, {4, 150}};
  EXPECT_EQ(measure_scaling(curve).useful_count, 4U);
  EXPECT_TRUE(measure_scaling(curve).still_gains);
}

TEST(Scaling, ALossAfterThePeakIsMeasured) {
  const ScalingPoint curve[] = {{1, 100}, {2, 180}, {4, 120}};
  const Scaling scaling = measure_scaling(curve);
  EXPECT_EQ(scaling.peak_count, 2U);
  EXPECT_NEAR(scaling.loss_after_peak, 1.0 / 3, 1e-12);
}

TEST(Scaling, OnePointOrNoRateHasNoScaling) {
  const ScalingPoint one[] = {{1, 100}};
  EXPECT_EQ(measure_scaling(one).useful_count, 0U);
  const ScalingPoint zero[] = {{1, 0}, {2, 0}};
  EXPECT_EQ(measure_scaling(zero).useful_count, 0U);
  EXPECT_EQ(measure_scaling({}).useful_count, 0U);
}

TEST(Sentences, RanksWithDifferentRatesAreReported) {
  const auto over_ranks = [](double least, double most) {
    Record record = read_cell("pfs", 2, "warm", 400);
    for (const auto& [name, mib] :
         {std::pair{"rank_min_bytes_per_s", least}, std::pair{"rank_median_bytes_per_s", 100.0},
          std::pair{"rank_max_bytes_per_s", most}})
      record.metrics[name] = {"B/s", Better::higher, "repeat", {mib * 1048576}};
    return record;
  };
  EXPECT_TRUE(
      has(only_sentence({over_ranks(80, 110)}, "ranks"),
          "At 2 threads the ranks on pfs differ by 30%: the slowest at 80.0 MiB/s, the fastest at 110.0"));
  EXPECT_TRUE(sentence_texts({over_ranks(96, 105)}, "ranks").empty());
  Record uneven = over_ranks(80, 110);
  uneven.parameters["rank_bytes_least"] = 1 << 20;
  uneven.parameters["rank_bytes_most"] = (1 << 20) + 1000;
  EXPECT_FALSE(has(only_sentence({uneven}, "ranks"), "Penstock's own split"));
  uneven.parameters["rank_bytes_most"] = 64 << 20;
  EXPECT_TRUE(has(only_sentence({uneven}, "ranks"), "Penstock's own split"));
  EXPECT_TRUE(has(only_sentence({uneven}, "ranks"), "1.0 MiB to 64 MiB")) << only_sentence({uneven}, "ranks");
}

TEST(Sentences, ScalingAndTiers) {
  const std::vector<Record> records{read_cell("disk", 1, "cold", 100), read_cell("disk", 2, "cold", 190),
                                    read_cell("disk", 4, "cold", 300), read_cell("disk", 8, "cold", 300),
                                    read_cell("fast", 1, "cold", 500), read_cell("fast", 8, "cold", 930)};
  const auto scaling = sentence_texts(records, "scaling");
  ASSERT_EQ(scaling.size(), 2U);
  EXPECT_EQ(scaling[0], "disk stops scaling at 4 threads, 3.00x of 1 thread (cold).");
  EXPECT_EQ(scaling[1],
            "fast still gains at 8 threads, the most that were measured: 1.86x of 1 thread (cold).");
  EXPECT_EQ(only_sentence(records, "tiers"),
            "fast delivers 3.1x the rate of disk, each at its best thread count (930.0 MiB/s at 8 threads, "
            "300.0 MiB/s at 4 threads); at equal "
            "threads 5.0x at 1 and 3.1x at 8 (cold).");
}

TEST(Sentences, TiersAreComparedAtTheirBestAndAtEveryCommonThreadCount) {
  std::vector<Record> records;
  for (const auto& [threads, fast, root] :
       {std::tuple{1, 500.0, 260.0}, {4, 1200.0, 300.0}, {8, 2285.0, 300.0}, {16, 400.0, 1012.0}}) {
    records.push_back(read_cell("fast", threads, "warm", fast));
    records.push_back(read_cell("root", threads, "warm", root));
  }
  records.back() = noisy(records.back(), 0.08);
  records[6] = noisy(read_cell("fast", 16, "warm", 1000), 0.9);
  const std::string text = only_sentence(records, "tiers");
  EXPECT_TRUE(has(text,
                  "fast delivers 2.3x the rate of root, each at its best thread count (2285 MiB/s at 8 "
                  "threads, 1012 MiB/s at 16"));
  EXPECT_TRUE(has(text, "1.9x at 1, 4.0x at 4, 7.6x at 8 and no clear difference at 16")) << text;
}

TEST(Sentences, AnOpenLoopReportsWhetherTheTierKeptUp) {
  const auto offered = [](int threads, double rate) {
    Record record = read_cell("disk", threads, "warm", 100);
    record.parameters["rate"] = "1000/s";
    record.metrics["samples_per_s"].samples = {rate};
    for (const auto& [name, value] :
         {std::pair{"offered_samples_per_s", 1000.0}, std::pair{"kept_up", rate / 1000},
          std::pair{"latency_ns_p50", 2e6}, std::pair{"latency_ns_p99", 9e6}})
      record.metrics[name] = {"", Better::lower, "repeat", {value}};
    return record;
  };
  const std::vector<Record> records{offered(1, 700), offered(4, 999)};
  const auto texts = sentence_texts(records, "offered");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_TRUE(has(texts[0], "At 1000 samples/s disk kept up with 4 threads: 2 ms from when")) << texts[0];
  EXPECT_TRUE(has(texts[1], "At 1000 samples/s disk did not keep up with 1 thread: 700.0 samples/s came"))
      << texts[1];
  EXPECT_TRUE(sentence_texts(records, "scaling").empty()) << "a rate that was given is no limit";
  EXPECT_TRUE(sentence_texts(records, "accelerators").empty());
}

TEST(Sentences, ScalingIsPairedRepeatByRepeat) {
  Record one = read_cell("disk", 1, "warm", 100);
  Record two = read_cell("disk", 2, "warm", 100);
  one.metrics["samples_per_s"].samples = {100, 1000, 10000};  // the same drift as in the other row
  two.metrics["samples_per_s"].samples = {150, 1500, 20000};
  const std::vector<Record> records{one, two};
  EXPECT_TRUE(has(only_sentence(records, "scaling"),
                  "disk still gains at 2 threads, the most that were measured: 1.50x"));
  const auto groups = read_groups(records);
  EXPECT_DOUBLE_EQ(scaling_ratio(groups[0].curves[0], records[1])->middle, 1.5);
}

TEST(Sentences, WhatIsInMemoryIsNeverCalledCold) {
  Record fast = read_cell("fast", 1, "cold", 500);
  fast.cache["client_data"] = "memory";
  EXPECT_EQ(only_sentence({read_cell("disk", 1, "cold", 100), fast}, "tiers"),
            "fast delivers 5.0x the rate of disk at 1 thread (cold; fast is in memory).");
  EXPECT_TRUE(has(only_sentence({fast}, "accelerators"), "(in memory;"));
  fast.parameters["cache"] = "warm";
  EXPECT_TRUE(has(only_sentence({fast}, "accelerators"), "(in memory;"));
}

TEST(Sentences, ABypassedOrUnverifiedCacheIsReported) {
  Record direct = read_cell("direct", 1, "warm", 500);
  direct.cache["client_data"] = "bypassed";
  EXPECT_TRUE(has(only_sentence({direct}, "accelerators"), "(cache bypassed;"));
  Record root = read_cell("root", 1, "cold", 100);
  root.cache["client_data"] = "unverified";
  EXPECT_TRUE(has(only_sentence({root}, "accelerators"), "(cold unverified;"));
  EXPECT_EQ(only_sentence({root, read_cell("disk", 1, "cold", 50)}, "tiers"),
            "root delivers 2.0x the rate of disk at 1 thread (cold; root is cold unverified).");
  Record object = read_cell("s3", 1, "cold", 500);
  object.cache["client_data"] = "none";
  EXPECT_EQ(only_sentence({read_cell("disk", 1, "cold", 100), object}, "tiers"),
            "s3 delivers 5.0x the rate of disk at 1 thread (cold; s3 has no client cache).");
  Record memory = read_cell("fast", 1, "warm", 1000);
  memory.cache["client_data"] = "memory";
  EXPECT_EQ(
      only_sentence({direct, memory}, "tiers"),
      "fast delivers 2.0x the rate of direct at 1 thread (direct bypasses the cache; fast is in memory).");
  Record cold = direct;
  cold.parameters["cache"] = "cold";
  cold.metrics["payload_bytes_per_s"].samples = {1, 1, 1};
  EXPECT_TRUE(sentence_texts({direct, cold}, "cold_warm").empty()) << "the same measurement twice";
}

TEST(Sentences, NothingIsComparedWithinTheSpreadOfTheRepeats) {
  const Record disk = noisy(read_cell("disk", 4, "cold", 100), 0.32);
  EXPECT_EQ(only_sentence({disk, read_cell("fast", 4, "cold", 120)}, "tiers"),
            "fast and disk cannot be distinguished at 4 threads: repeats differ by up to 32% (cold).");
  EXPECT_EQ(only_sentence({disk, read_cell("fast", 4, "cold", 150)}, "tiers"),
            "fast delivers 1.3x to 1.8x the rate of disk at 4 threads (cold).");
  EXPECT_EQ(only_sentence({disk, read_cell("fast", 4, "cold", 102)}, "tiers"),
            "fast and disk cannot be distinguished at 4 threads: repeats differ by up to 32% (cold).");
  EXPECT_EQ(only_sentence({disk, read_cell("disk", 4, "warm", 120)}, "cold_warm"),
            "disk cold and warm cannot be distinguished at 4 threads: repeats differ by up to 32%.");
}

TEST(Sentences, ScalingWithinTheSpreadCannotBeTold) {
  const Record four = noisy(read_cell("disk", 4, "cold", 100), 0.32);
  EXPECT_EQ(only_sentence({read_cell("disk", 1, "cold", 120), four}, "scaling"),
            "More than 1 thread may or may not help disk: repeats differ by up to 32% (cold).");
  EXPECT_EQ(only_sentence({read_cell("disk", 1, "cold", 200), four}, "scaling"),
            "disk is fastest at 1 thread and loses 50% of that at 4 threads (cold).");
  EXPECT_EQ(
      only_sentence({read_cell("disk", 1, "cold", 20), four, read_cell("disk", 8, "cold", 120)}, "scaling"),
      "disk gains up to 4 threads, 5.00x of 1 thread; more than 4 threads may or may not help: repeats "
      "differ by up to 32% (cold).");
}

TEST(Sentences, ASingleRepeatIsReported) {
  Record once = read_cell("disk", 1, "cold", 100);
  once.metrics["payload_bytes_per_s"].samples.resize(1);
  EXPECT_EQ(only_sentence({once, read_cell("fast", 1, "cold", 300)}, "tiers"),
            "fast delivers 3.0x the rate of disk at 1 thread (cold; from one repeat).");
  EXPECT_EQ(only_sentence({once, read_cell("disk", 1, "warm", 300)}, "cold_warm"),
            "disk is 3.0x faster warm than cold at 1 thread (from one repeat).");
  const std::vector<Record> records{once, read_cell("fast", 1, "cold", 300),
                                    read_cell("disk", 1, "warm", 300)};
  std::map<std::string, int> cautions;
  for (const Sentence& sentence : sentences(records, {}))
    if (sentence.tone == Tone::caution) ++cautions[sentence.kind];
  EXPECT_EQ(cautions["tiers"], 1);
  EXPECT_EQ(cautions["cold_warm"], 1);
}

Record with_ceiling(Record record, double mib_per_s) {
  const double rate = record.metrics["payload_bytes_per_s"].samples[0];
  record.metrics["ceiling_bytes_per_s"] = {"B/s", Better::neither, "run", {mib_per_s * 1048576}};
  record.metrics["ceiling_fraction"] = {"1", Better::higher, "run", {rate / (mib_per_s * 1048576)}};
  return record;
}

TEST(Sentences, TheFastestRowIsComparedWithTheHighestCeilingOfTheTier) {
  EXPECT_EQ(only_sentence({with_ceiling(read_cell("root", 1, "cold", 1000), 1000),
                           with_ceiling(read_cell("root", 4, "cold", 1500), 2000)},
                          "ceiling"),
            "root reaches 75% of its ceiling of 2000 MiB/s at 4 threads (cold).");
  EXPECT_TRUE(has(only_sentence({with_ceiling(read_cell("root", 1, "cold", 1500), 2000),
                                 with_ceiling(read_cell("root", 4, "cold", 1000), 1000)},
                                "ceiling"),
                  "75% of its ceiling of 2000 MiB/s at 1 thread"));
  EXPECT_EQ(
      only_sentence({with_ceiling(read_cell("root", 1, "cold", 1000), 2000),
                     with_ceiling(read_cell("root", 4, "cold", 1500), 1800)},
                    "ceiling"),
      "root reaches 75% of its ceiling of 2000 MiB/s at 4 threads; the ceiling is that of 1 thread (cold).");
}

TEST(Sentences, DecodingIsNotBlamedOnTheTier) {
  Record one = with_ceiling(read_cell("root", 1, "cold", 50), 6000);
  Record two = with_ceiling(read_cell("root", 2, "cold", 100), 6000);
  for (Record* record : {&one, &two}) record->parameters["decode"] = "full";
  EXPECT_EQ(
      only_sentence({one, two}, "ceiling"),
      "Decoding limits, not root: 100.0 MiB/s at 2 threads; the tier's ceiling of 6000 MiB/s is 60x that "
      "(cold; decoding included).");
  EXPECT_TRUE(has(only_sentence({one, two}, "scaling"), "decoding from root still gains"));
  EXPECT_TRUE(sentence_texts({one, two}, "accelerators").empty());
  two.metrics["ceiling_bytes_per_s"].samples = {130 * 1048576.0};
  EXPECT_TRUE(
      has(only_sentence({two}, "ceiling"), "Reading root and decoding come to 100.0 MiB/s at 2 threads"));
}

TEST(Sentences, ColdAndWarmAreComparedForEachWorkload) {
  std::vector<Record> records;
  for (const char* order : {"shuffled", "sequential"})
    for (const char* cache : {"cold", "warm"}) {
      records.push_back(read_cell("disk", 4, cache, *cache == 'c' ? 100 : 2000));
      records.back().parameters["order"] = order;
    }
  const auto texts = sentence_texts(records, "cold_warm");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0], "disk is 20x faster warm than cold at 4 threads (order shuffled).");
  EXPECT_TRUE(has(texts[1], "(order sequential)"));
}

TEST(Sentences, TiersWithinFivePercentFeedTheSame) {
  EXPECT_TRUE(has(only_sentence({read_cell("a", 2, "warm", 100), read_cell("b", 2, "warm", 103)}, "tiers"),
                  "deliver the same rate at 2 threads"));
}

TEST(Sentences, TiersWithoutACommonThreadCountAreComparedAtTheirBest) {
  EXPECT_EQ(only_sentence({read_cell("a", 1, "warm", 100), read_cell("b", 2, "warm", 300)}, "tiers"),
            "b delivers 3.0x the rate of a, each at its best thread count (300.0 MiB/s at 2 threads, 100.0 "
            "MiB/s at 1 thread) (warm).");
}

TEST(Sentences, RecordsThatDifferOnlyInALabelAreCompared) {
  Record old = read_cell("disk", 4, "cold", 100);
  old.label["disk"] = "old";
  Record fresh = read_cell("disk", 4, "cold", 150);
  fresh.label["disk"] = "new";
  EXPECT_EQ(only_sentence({old, fresh}, "labels"),
            "disk is 1.5x faster with disk=new than with disk=old at 4 threads (cold).");
  EXPECT_EQ(only_sentence({old, noisy(fresh, 0.6)}, "labels"),
            "disk with disk=old and with disk=new cannot be distinguished at 4 threads: repeats differ by up "
            "to 60% "
            "(cold).");
  fresh.parameters["order"] = "sequential";
  EXPECT_TRUE(sentence_texts({old, fresh}, "labels").empty());
}

Record with_samples_per_s(Record record, std::vector<double> rates) {
  record.metrics["samples_per_s"].samples = std::move(rates);
  return record;
}

TEST(Sentences, AcceleratorsAreCalculatedFromTheSlowestAndTheFastestRepeat) {
  const Record disk = with_samples_per_s(read_cell("disk", 1, "cold", 100), {1070});
  const Record slow = with_samples_per_s(read_cell("slow", 2, "cold", 10), {199});
  EXPECT_EQ(only_sentence({disk, slow}, "accelerators"),
            "At an assumed 200 images/s per accelerator, disk could feed at most 5 at 1 thread and slow less "
            "than one at 2 threads (cold; calculated, not measured).");
  EXPECT_TRUE(has(only_sentence({with_samples_per_s(disk, {610, 1070, 1900})}, "accelerators"),
                  "disk could feed 3 to 9 at 1 thread"));
  EXPECT_TRUE(has(only_sentence({with_samples_per_s(disk, {1010, 1070, 1190})}, "accelerators"),
                  "disk could feed at most 5 at 1 thread"));
  EXPECT_TRUE(has(only_sentence({with_samples_per_s(disk, {150, 190, 450})}, "accelerators"),
                  "disk could feed at most 2 at 1 thread"));
}

TEST(Sentences, TheRateOfAnAcceleratorIsThatOfTheLatestRun) {
  Record one = with_samples_per_s(read_cell("disk", 1, "cold", 100), {1070});
  Record two = with_samples_per_s(read_cell("disk", 2, "cold", 100), {1900});
  for (Record* const record : {&one, &two}) record->work = {"cache", "order"};
  one.parameters["accelerator_rate"] = 50.5;
  two.started = "2026-11-21T09:30:00Z";
  two.parameters["accelerator_rate"] = 900.0;
  EXPECT_TRUE(has(only_sentence({one, two}, "accelerators"),
                  "At 900 images/s per accelerator, disk could feed at most 2 at 2 threads"));
  EXPECT_TRUE(has(only_sentence({one}, "accelerators"), "At 50.5 images/s per accelerator, disk could"));
  two.parameters["accelerator_rate"] = 0.0;
  EXPECT_TRUE(sentence_texts({two}, "accelerators").empty());
}

TEST(Sentences, OnlyPicturesThatAreNotDecodedAreCountedForAccelerators) {
  const Record pictures = read_cell("disk", 1, "cold", 100);
  for (const char* const codec : {"jpeg", "png", "jpeg.tfrecord.gz"}) {
    Record record = pictures;
    record.corpus["codec"] = codec;
    EXPECT_FALSE(sentence_texts({record}, "accelerators").empty()) << codec;
  }
  // Samples of these types may have any number of pictures; of older records the type is unknown.
  for (const char* const codec : {"raw", "mixed", ""}) {
    Record record = pictures;
    record.corpus["codec"] = codec;
    EXPECT_TRUE(sentence_texts({record}, "accelerators").empty()) << codec;
  }
  for (const char* const codec : {"raw", "mixed", ""}) {
    Record record = pictures;
    record.corpus["codec"] = codec;
    record.parameters["accelerator_rate"] = 1000.0;
    EXPECT_TRUE(has(only_sentence({record}, "accelerators"), "No figure for --accelerator-rate 1000"))
        << codec;
  }
  Record older = pictures;
  older.corpus.erase("codec");
  EXPECT_TRUE(sentence_texts({older}, "accelerators").empty());
  Record blocks = pictures;
  blocks.parameters["block"] = 4096;
  EXPECT_TRUE(sentence_texts({blocks}, "accelerators").empty());
  Record decoded = pictures;
  decoded.parameters["decode"] = "full";
  EXPECT_TRUE(sentence_texts({decoded}, "accelerators").empty()) << "the client may limit this rate";
  decoded.parameters["accelerator_rate"] = 1000.0;
  EXPECT_TRUE(has(only_sentence({decoded}, "accelerators"), "--decode"));
}

TEST(Sentences, ARatioOfNoisyRepeatsIsARange) {
  const Record one = with_rates(read_cell("root", 1, "warm", 1), {107, 120, 326});
  const Record four = with_rates(read_cell("root", 4, "warm", 1), {640, 713, 640});
  const Record steady = with_rates(read_cell("root", 4, "warm", 1), {640, 640, 640, 640});
  const auto range = rate_ratio(four, one);
  ASSERT_TRUE(range.has_value());
  EXPECT_TRUE(
      has(only_sentence({with_samples_per_s(one, {107, 120, 326}), with_samples_per_s(four, {640, 713, 640})},
                        "scaling"),
          "root still gains at 4 threads, the most that were measured: 1.96x to 5.98x of 1 thread"));
  EXPECT_TRUE(has(only_sentence({with_samples_per_s(one, {107, 120, 326}),
                                 with_samples_per_s(steady, {640, 640, 640, 640})},
                                "scaling"),
                  "1.96x to 5.98x of 1 thread"));
  Record fast = with_rates(read_cell("fast", 1, "warm", 1), {640, 713, 640});
  EXPECT_EQ(only_sentence({one, fast}, "tiers"),
            "fast delivers 2.0x to 6.7x the rate of root at 1 thread (warm).");
  Record cold = with_rates(read_cell("root", 1, "cold", 1), {20, 20, 21});
  EXPECT_EQ(only_sentence({cold, one}, "cold_warm"),
            "root is 5.1x to 16x faster warm than cold at 1 thread.");
}

TEST(Sentences, ADifferenceThatOnePairOfRepeatsContradictsIsNone) {
  const Record one =
      with_samples_per_s(with_rates(read_cell("root", 1, "warm", 1), {100, 100, 139}), {100, 100, 139});
  const Record two =
      with_samples_per_s(with_rates(read_cell("root", 2, "warm", 1), {145, 145, 130}), {145, 145, 130});
  EXPECT_TRUE(
      only_sentence({one, two}, "scaling").starts_with("More than 1 thread may or may not help root:"));
  Record other = two;
  other.parameters["threads"] = 1;
  other.tiers["data"]["name"] = "other";
  EXPECT_TRUE(
      has(only_sentence({one, other}, "tiers"), "other and root cannot be distinguished at 1 thread"));
}

TEST(Sentences, APeakIsNotCalledFastestIfAnotherCountIsAsFast) {
  std::vector<Record> records;
  for (const auto& [threads, rate] : {std::pair{1, 100.0}, {4, 300.0}, {8, 305.0}, {16, 200.0}})
    records.push_back(noisy(read_cell("disk", threads, "cold", rate), 0.04));
  EXPECT_EQ(only_sentence(records, "scaling"), "disk loses 34% from 8 threads to 16 threads (cold).");
  records[1] = read_cell("disk", 4, "cold", 200);
  EXPECT_EQ(only_sentence(records, "scaling"),
            "disk is fastest at 8 threads and loses 34% of that at 16 threads (cold).");
}

TEST(Sentences, BaselineIsPairedRepeatByRepeat) {
  Record record = read_cell("disk", 2, "warm", 100);
  record.metrics["samples_per_s"].samples = {98, 980, 9800};  // the same drift as in the other arm
  record.metrics["baseline_samples_per_s"] = {"1/s", Better::higher, "repeat", {100, 1000, 10000}};
  EXPECT_EQ(only_sentence({record}, "baseline"), "The client reached 98% of the baseline on disk (warm).");
}

TEST(Sentences, ABaselineOfAnotherDepthIsNotComparedAndAnImpossibleOneIsCalledSo) {
  Record deep = read_cell("disk", 2, "cold", 100);
  deep.parameters["depth"] = 32;
  deep.metrics["samples_per_s"].samples = {443};
  deep.metrics["baseline_samples_per_s"] = {"1/s", Better::higher, "repeat", {100}};
  EXPECT_TRUE(sentence_texts({deep}, "baseline").empty());
  deep.parameters["baseline_loop"] = "queued.2x32";
  EXPECT_TRUE(has(only_sentence({deep}, "baseline"), "443%"));
  deep.metrics["samples_per_s"].samples = {11502};
  EXPECT_TRUE(sentence_texts({deep}, "baseline").empty());
  EXPECT_TRUE(has(only_sentence({deep}, "baseline_invalid"), "is impossible"));
}

TEST(Sentences, CeilingAndInvalidCeiling) {
  Record good = read_cell("disk", 2, "cold", 84);
  good.metrics["ceiling_fraction"] = {"1", Better::higher, "run", {0.84}};
  good.metrics["ceiling_bytes_per_s"] = {"B/s", Better::higher, "run", {100 * 1048576.0}};
  EXPECT_EQ(only_sentence({good}, "ceiling"),
            "disk reaches 84% of its ceiling of 100.0 MiB/s at 2 threads (cold).");
  Output si;
  si.si_units = true;
  EXPECT_TRUE(has(only_sentence({good}, "ceiling", si), "104.9 MB/s"));
  Record bad = read_cell("disk", 4, "cold", 110);
  bad.metrics["ceiling_fraction"] = {"1", Better::higher, "run", {1.1}};
  EXPECT_TRUE(has(only_sentence({good, bad}, "ceiling_invalid"), "invalid at 4 threads"));
  EXPECT_EQ(sentence_texts({bad}, "ceiling").size(), 0U);
  bad.verdict = Verdict::ceiling_invalid;
  EXPECT_EQ(sentence_texts({bad}, "ceiling_invalid").size(), 0U);
  EXPECT_TRUE(has(only_sentence({bad}, "verdict.ceiling_invalid"), "disk cold at 4 threads"));
}

TEST(Sentences, ColdAndWarm) {
  const std::vector<Record> records{read_cell("disk", 4, "cold", 100), read_cell("disk", 4, "warm", 450)};
  EXPECT_EQ(only_sentence(records, "cold_warm"), "disk is 4.5x faster warm than cold at 4 threads.");
}

}  // namespace
}  // namespace penstock
