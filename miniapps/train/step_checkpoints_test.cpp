#include "miniapps/train/step_checkpoints.hpp"

#include <csignal>
#include <fstream>
#include <sstream>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/restart.hpp"
#include "miniapps/train/resume.hpp"

namespace penstock {
namespace {

constexpr uint64_t kSeed = 11;

StepSaving saving_to(const std::filesystem::path& folder, const std::string& options = "") {
  StepSaving saving;
  saving.every_steps = 2;
  saving.slow = open_tier("slow=posix:" + (folder / "slow").string() + options, kNoNamedTiers).value();
  saving.fast = open_tier("fast=posix:" + (folder / "fast").string(), kNoNamedTiers).value();
  saving.payload = find_payload("1MiB").value();
  saving.ack_log = (folder / "acks").string();
  return saving;
}

Batch batch_of(uint64_t epoch, size_t samples) {
  Batch batch;
  batch.epoch = epoch;
  batch.index.resize(samples);
  return batch;
}

// Makes the steps of a training, as run_training() does: `of_first` steps of epoch 0, then `of_second` steps
// of epoch 1.
Result<void> make_steps(StepCheckpoints& saves, uint64_t of_first, uint64_t of_second) {
  for (uint64_t step = 1; step <= of_first + of_second; ++step) {
    PENSTOCK_TRY(saves.after_step(step - 1, batch_of(step <= of_first ? 0 : 1, 4)));
    if (saves.collective_work_due(step)) PENSTOCK_TRY(saves.do_collective_work(step));
  }
  return success();
}

std::string text_at(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(StepCheckpoints, ContainThePositionOfTheTraining) {
  const ScratchFolder folder;
  const auto ranks = single_process();
  const StepSaving saving = saving_to(folder.path());
  {
    const auto saves = StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value();
    ASSERT_OK(make_steps(*saves, 3, 4));
    ASSERT_OK(saves->drain());
  }
  for (const char* level : {"2 fast\n", "2 durable\n", "6 fast\n", "6 durable\n"})
    EXPECT_NE(text_at(saving.ack_log).find(level), std::string::npos) << level;
  EXPECT_EQ(seed_of_run(saving, *ranks).value(), kSeed);
  const ResumePoint resumed = resume_run(saving, *ranks).value();
  EXPECT_EQ(resumed.manifest.id.step, 6U);
  EXPECT_EQ(resumed.manifest.trainer,
            (TrainerState{.epoch = 1, .step_of_epoch = 3, .consumed = 12, .seed = kSeed}));
  EXPECT_EQ(resumed.start(), (PlanStart{.batches = 6, .epoch = 1, .used_samples = 12}));
}

TEST(StepCheckpoints, GoOnCounting) {
  const ScratchFolder folder;
  const auto ranks = single_process();
  const StepSaving saving = saving_to(folder.path());
  ASSERT_OK(make_steps(*StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value(), 3, 1));
  const ResumePoint first = resume_run(saving, *ranks).value();
  ASSERT_EQ(first.manifest.id.step, 4U);
  {
    const auto saves = StepCheckpoints::open(saving, 4, first.manifest.trainer, *ranks).value();
    EXPECT_FALSE(saves->collective_work_due(1));
    EXPECT_TRUE(saves->collective_work_due(2));
    ASSERT_OK(saves->after_step(0, batch_of(1, 4)));
    ASSERT_OK(saves->after_step(1, batch_of(1, 4)));
    ASSERT_OK(saves->do_collective_work(2));
    ASSERT_OK(saves->drain());
  }
  const ResumePoint second = resume_run(saving, *ranks).value();
  EXPECT_EQ(second.start(), (PlanStart{.batches = 6, .epoch = 1, .used_samples = 12}));
  EXPECT_EQ(second.manifest.trainer.step_of_epoch, 3U);
}

TEST(StepCheckpoints, RanksEachSaveAndProveTheirPart) {
  const ScratchFolder folder;
  const StepSaving saving = saving_to(folder.path());
  RankThreads::run(3, [&](Communicator& ranks) {
    {
      const auto saves = StepCheckpoints::open(saving, 0, {.seed = kSeed}, ranks).value();
      EXPECT_OK(make_steps(*saves, 2, 0));
      EXPECT_OK(saves->drain());
    }
    const Result<ResumePoint> resumed = resume_run(saving, ranks);
    ASSERT_OK(resumed);
    EXPECT_EQ(resumed->manifest.ranks, 3U);
    EXPECT_EQ(resumed->manifest.trainer.consumed, 2U * 4 * 3) << "over all ranks";
  });
  // A single rank also reads and verifies the files of all three ranks.
  EXPECT_OK(resume_run(saving, *single_process()));
}

TEST(StepCheckpoints, AfterASignalTheDrainHasItsGrace) {
  for (const bool grace : {false, true}) {
    const ScratchFolder folder;
    const auto ranks = single_process();
    StepSaving saving = saving_to(folder.path(), ",write_limit=2MiB/s");
    if (grace) saving.grace = std::chrono::minutes(5);
    {
      const auto saves = StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value();
      ASSERT_OK(make_steps(*saves, 2, 0));
      simulate_interrupt(SIGTERM);
      const Result<void> drained = saves->drain();
      if (grace) {
        EXPECT_OK(drained);
      } else {
        EXPECT_ERRC(Errc::timed_out, drained, "durable");
      }
      EXPECT_OK(saves->drain_or_leave()) << "who wants to go may";
    }
    simulate_interrupt(0);
    EXPECT_EQ(text_at(saving.ack_log), grace ? "2 fast\n2 durable\n" : "2 fast\n");
    EXPECT_EQ(resume_run(saving, *ranks).value().manifest.id.step, 2U);
  }
}

TEST(StepCheckpoints, ADrainThatDoesNotMoveIsGivenUp) {
  const ScratchFolder folder;
  const auto ranks = single_process();
  StepSaving saving = saving_to(folder.path(), ",fail=publish/rank-0.bin:eio@#1..");
  saving.policy.block_for = std::chrono::milliseconds(300);
  const auto saves = StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value();
  ASSERT_OK(make_steps(*saves, 2, 0));
  EXPECT_ERRC(Errc::timed_out, saves->drain(), "durable");
  EXPECT_ERRC(Errc::timed_out, saves->drain_or_leave(), "durable");
}

TEST(Resume, AsksForArguments) {
  const ScratchFolder folder;
  const auto ranks = single_process();
  const StepSaving saving = saving_to(folder.path());
  EXPECT_OK(check_unused(saving, *ranks));
  EXPECT_ERRC(Errc::not_found, resume_run(saving, *ranks), "there is none");
  const auto saves = StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value();
  EXPECT_ERRC(Errc::busy, check_unused(saving, *ranks));
  EXPECT_ERRC(Errc::busy, resume_run(saving, *ranks));
}

TEST(Resume, AnOldRunIsNamed) {
  const ScratchFolder folder;
  const auto ranks = single_process();
  StepSaving saving = saving_to(folder.path());
  ASSERT_OK(make_steps(*StepCheckpoints::open(saving, 0, {.seed = kSeed}, *ranks).value(), 2, 0));
  EXPECT_ERRC(Errc::invalid_argument, check_unused(saving, *ranks), "--resume");
  EXPECT_ERRC(Errc::invalid_argument, check_unused(saving, *ranks), "--run");
  saving.policy.run = "another";
  EXPECT_OK(check_unused(saving, *ranks));
}

}  // namespace
}  // namespace penstock
