#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

std::vector<std::string> texts_of(const std::vector<Record>& records, const std::string& kind) {
  std::vector<std::string> texts;
  for (const Sentence& sentence : sentences(records, Output{.si_units = true}))
    if (sentence.kind == kind) texts.push_back(sentence.text);
  return texts;
}

std::string only_text(const std::vector<Record>& records, const std::string& kind) {
  const auto texts = texts_of(records, kind);
  EXPECT_EQ(texts.size(), 1U) << kind;
  return texts.empty() ? "" : texts.front();
}

void set_samples(Record& record, const std::string& name, std::vector<double> samples) {
  record.metrics[name] = {"1", Better::neither, "run", std::move(samples)};
}

TEST(SavingSentences, ShorterIsByTheMedianOverThePairs) {
  // The pairs give 4x, 5x and 8x; the medians of all saves would give another ratio.
  const std::vector<Record> records{
      saving_cell("direct", 0, {2, 2, 9}), saving_cell("burst-buffer", 1, {0.4}),
      saving_cell("direct", 1, {2}),       saving_cell("burst-buffer", 0, {0.5}),
      saving_cell("direct", 2, {8}),       saving_cell("burst-buffer", 2, {1})};
  EXPECT_EQ(only_text(records, "saving.block"),
            "Saving alexnet-adam through shm (volatile) blocks the training 5.00x shorter than straight to "
            "disk: 500 ms instead of 2 s, median of 3 pairs, from 4.00x to 8.00x. The ceilings "
            "of the tiers (1000 and 100.0 MB/s) would allow 10.00x shorter.");
  const auto by = block_time_against_direct(saving_groups(records)[0], saving_groups(records)[0].arms[1]);
  ASSERT_TRUE(by);
  EXPECT_DOUBLE_EQ(by->ratio.median, 5);
  EXPECT_EQ(sentences(records, {}).front().tone, Tone::finding);
}

TEST(SavingSentences, ADurableFastTierIsNotCalledVolatile) {
  Record burst = saving_cell("burst-buffer", 0, {0.5});
  burst.tiers["burst_buffer"]["memory"] = false;
  const std::string text = only_text({saving_cell("direct", 0, {2}), burst}, "saving.block");
  EXPECT_NE(text.find("through shm blocks"), std::string::npos) << text;
  EXPECT_NE(text.find("from one pair"), std::string::npos) << text;
}

TEST(SavingSentences, PairsOnBothSidesOfOneCannotBeToldApart) {
  const std::vector<Record> records{saving_cell("direct", 0, {2}), saving_cell("burst-buffer", 0, {1}),
                                    saving_cell("direct", 1, {2}), saving_cell("burst-buffer", 1, {3})};
  EXPECT_NE(only_text(records, "saving.block").find("no clear difference"), std::string::npos);
}

TEST(SavingSentences, SlowerSavesAreReported) {
  const std::vector<Record> records{saving_cell("direct", 0, {1}), saving_cell("burst-buffer", 0, {2}),
                                    saving_cell("direct", 1, {1}), saving_cell("burst-buffer", 1, {2})};
  EXPECT_NE(only_text(records, "saving.block").find("blocks the training 2.00x longer than straight to disk"),
            std::string::npos);
}

TEST(SavingSentences, RunsWithoutAPairAreNotCompared) {
  EXPECT_TRUE(
      texts_of({saving_cell("direct", 0, {2}), saving_cell("burst-buffer", 1, {1})}, "saving.block").empty());
  Record other = saving_cell("burst-buffer", 0, {1});
  other.parameters["every"] = 10;
  EXPECT_TRUE(texts_of({saving_cell("direct", 0, {2}), other}, "saving.block").empty());
}

TEST(SavingSentences, ExceededCeilingsAreNotMentioned) {
  Record burst = saving_cell("burst-buffer", 0, {0.5});
  set_samples(burst, "drain_bytes_per_s", {9e7});
  set_samples(burst, "drain_of_ceiling", {0.9});
  set_samples(burst, "drain_overlap", {0.75});
  const Record direct = saving_cell("direct", 0, {2});
  EXPECT_EQ(only_text({direct, burst}, "saving.drain"),
            "Checkpoints of alexnet-adam through shm (volatile) drained to disk at 90.0 MB/s, 90% of its "
            "ceiling; for 75% of that time no save blocked the training.");
  EXPECT_TRUE(texts_of({direct, burst}, "saving.ceiling").empty());
  set_samples(burst, "drain_of_ceiling", {0.9, 1.5});
  EXPECT_EQ(only_text({direct, burst}, "saving.drain").find("ceiling"), std::string::npos);
  EXPECT_EQ(only_text({direct, burst}, "saving.block").find("ceilings"), std::string::npos);
  EXPECT_EQ(texts_of({direct, burst}, "saving.ceiling").size(), 1U);
  burst.verdict = Verdict::ceiling_invalid;
  EXPECT_TRUE(texts_of({direct, burst}, "saving.ceiling").empty()) << "its verdict says so already";
  EXPECT_EQ(texts_of({direct, burst}, "verdict.ceiling_invalid").size(), 1U);
}

TEST(SavingSentences, ASnapshotIsNotComparedWithACeiling) {
  Record copy = saving_cell("snapshot", 0, {0.01});
  set_samples(copy, "block_of_ceiling", {0.1});
  const std::string text = only_text({saving_cell("direct", 0, {2}), copy}, "saving.block");
  EXPECT_NE(text.find("by a copy in memory to shm (volatile) blocks the training 200.00x shorter"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("ceiling"), std::string::npos);
  EXPECT_TRUE(texts_of({copy}, "saving.ceiling").empty());
}

TEST(SavingSentences, SkippedSavesAndLowCeilingsAreMentioned) {
  const Record direct = saving_cell("direct", 0, {2});
  Record burst = saving_cell("burst-buffer", 0, {0.1});  // 20x, but the ceilings allow only 10x
  EXPECT_NE(only_text({direct, burst}, "saving.block").find("a ceiling was measured too low"),
            std::string::npos);
  burst = saving_cell("burst-buffer", 0, {0.5});
  EXPECT_EQ(only_text({direct, burst}, "saving.block").find("too low"), std::string::npos);
  EXPECT_EQ(only_text({direct, burst}, "saving.block").find("skipped"), std::string::npos);
  set_samples(burst, "checkpoint_skips", {3});
  set_samples(burst, "checkpoints", {5});
  EXPECT_NE(only_text({direct, burst}, "saving.block").find("(3 of 5 saves were skipped"), std::string::npos);
}

TEST(SavingSentences, SlowerStepsSkipsAndFailuresAreReported) {
  Record record = saving_cell("burst-buffer", 0, {1});
  set_samples(record, "step_inflation", {1.04});
  set_samples(record, "checkpoint_skips", {0});
  set_samples(record, "drain_failures", {0});
  set_samples(record, "checkpoints", {4});
  for (const char* kind : {"saving.inflation", "saving.skips", "saving.drain_failures"})
    EXPECT_TRUE(texts_of({record}, kind).empty()) << kind;
  set_samples(record, "step_inflation", {1.12});
  set_samples(record, "checkpoint_skips", {3});
  set_samples(record, "drain_failures", {1});
  EXPECT_NE(only_text({record}, "saving.inflation").find("a step took 12% longer"), std::string::npos);
  EXPECT_NE(only_text({record}, "saving.skips").find("3 of 4 saves"), std::string::npos);
  EXPECT_NE(only_text({record}, "saving.drain_failures").find("1 drain of"), std::string::npos);
}

TEST(SavingSentences, LostWorkAndAdvice) {
  Record record = saving_cell("burst-buffer", 0, {1});
  EXPECT_TRUE(texts_of({record}, "saving.lost").empty());
  EXPECT_TRUE(texts_of({record}, "saving.advice").empty());
  for (const auto& [kind, seconds] :
       {std::pair{"process", 1.0}, std::pair{"node", 2.0}, std::pair{"power", 3.0}})
    set_samples(record, std::string("lost_work_s.") + kind, {seconds});
  set_samples(record, "lost_work_most_s.power", {5});
  set_samples(record, "checkpoint_interval_s.young", {400});
  set_samples(record, "checkpoint_interval_s.daly", {399});
  const std::string lost = only_text({record}, "saving.lost");
  EXPECT_NE(
      lost.find("1 s when processes end, 2 s when the node is lost, 3 s when power fails (at most 5 s)"),
      std::string::npos)
      << lost;
  EXPECT_EQ(lost.find("a longer run"), std::string::npos);
  set_samples(record, "wall_s", {5});
  EXPECT_NE(only_text({record}, "saving.lost").find("a longer run"), std::string::npos);
  for (const double wall_s : {3.0, 20.0}) {  // the first loses work of an earlier process, too
    set_samples(record, "wall_s", {wall_s});
    EXPECT_EQ(only_text({record}, "saving.lost").find("a longer run"), std::string::npos) << wall_s;
  }
  EXPECT_NE(only_text({record}, "saving.advice").find("With one failure in 24.0 h"), std::string::npos);
}

TEST(SavingSentences, ReportsHowLongSavesBlockedATraining) {
  Record record = train_cell(4, 2.0);
  record.tiers["checkpoint"] = Json{{"name", "pfs"}};
  record.metrics["checkpoint_block_s"] = {"s", Better::lower, "checkpoint", {1, 1, 2}};
  set_samples(record, "wall_s", {40});
  EXPECT_EQ(
      only_text({record}, "saving.held"),
      "Saving straight to pfs blocked alexnet on disk with prefetch 4 for 4 s (10% of the wall): 3 saves, "
      "median 1 s, longest 2 s.");
}

Record single_save(double durable_s) {
  Record record = saving_cell("burst-buffer", 0, {0.5});
  record.parameters.erase("arm");
  set_samples(record, "checkpoint_bytes", {1e6});
  set_samples(record, "checkpoint_durable_s", {durable_s});
  return record;
}

TEST(SavingSentences, ReportsTheTimeToDurableOfASingleSave) {
  EXPECT_EQ(only_text({single_save(1), single_save(4), single_save(2)}, "saving.once"),
            "Saving alexnet-adam through shm (volatile) took 2 s until it was durable: 0.50 MB/s.");
}

TEST(SavingSentences, ReportsASkippedSingleSave) {
  Record record = single_save(1);
  record.metrics.clear();
  set_samples(record, "checkpoint_saves", {1});
  set_samples(record, "checkpoint_skips", {1});
  EXPECT_EQ(texts_of({record}, "saving.skips").size(), 1U);
  EXPECT_TRUE(texts_of({record}, "saving.once").empty());
}

TEST(SavingCells, SingleSavesOfOneWorkAreOneRow) {
  Record other = single_save(1);
  other.parameters["on_full"] = "skip";
  const auto saves = single_saves(std::vector<Record>{single_save(1), other, single_save(4)});
  ASSERT_EQ(saves.size(), 2U);
  EXPECT_EQ(saves[0].runs.size(), 2U);
  EXPECT_NE(saves[1].name.find("on_full skip"), std::string::npos) << saves[1].name;
}

TEST(SavingSentences, OnlyTheLatestInvocationOfTheSameWorkIsShown) {
  Record old = saving_cell("direct", 0, {9});
  old.id = "0ld-0";
  old.started = "2026-11-19T09:30:00Z";
  const std::vector<Record> records{old, saving_cell("direct", 0, {2}), saving_cell("burst-buffer", 0, {1})};
  ASSERT_EQ(saving_groups(records).size(), 1U);
  EXPECT_NE(only_text(records, "saving.block").find("2.00x shorter"), std::string::npos);
  EXPECT_EQ(texts_of(records, "older").size(), 1U);
}

TEST(SavingSentences, AnEmulatedSlowTierIsNamed) {
  Record record = saving_cell("direct", 0, {1});
  record.tiers["checkpoint"]["spec"] = "disk=posix:/x,limit=50MB/s";
  EXPECT_NE(only_text({record}, "emulated").find("disk is emulated (limit=50MB/s)"), std::string::npos);
}

TEST(SavingCells, GroupsAreNamedByWhatDiffers) {
  Record other = saving_cell("direct", 0, {1});
  other.parameters["steps"] = 40;
  const auto groups = saving_groups(
      std::vector<Record>{saving_cell("burst-buffer", 0, {1}), saving_cell("direct", 0, {1}), other});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "alexnet-adam, steps 20, to disk through shm (volatile)");
  EXPECT_EQ(groups[0].arms[0].arm, "direct");
  EXPECT_EQ(groups[1].title, "alexnet-adam, steps 40, to disk");
}

TEST(SavingCells, TrainingsThatSaveInDifferentWaysAreSeparate) {
  Record direct = train_cell(4, 2.0);
  direct.parameters["checkpoint_every"] = 5;
  Record burst = direct;
  burst.parameters["burst_buffer"] = "/dev/shm/x";
  EXPECT_EQ(train_groups(std::vector<Record>{direct, burst}).size(), 2U);
}

}  // namespace
}  // namespace penstock
