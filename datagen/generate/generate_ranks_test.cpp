// Tests generate() with several ranks: the files must be the same as from one process, whatever happens to a
// rank.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generate_share.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

Generation pictures() {
  return plan_generation("imagenet", "files", {{"median", "4KB"}, {"classes", "3"}}, {.samples = 17}, 7)
      .value();
}

Generation shards() {
  return plan_generation("imagenet", "tfrecord", {{"median", "4KB"}, {"classes", "3"}, {"shards", "5"}},
                         {.samples = 17}, 7)
      .value();
}

Generation weather_files() {  // one sample per file, and a companion
  return plan_generation("climate", "", {{"shape", "2,8,8"}}, {.samples = 7}, 7).value();
}

struct Outcome {
  Result<void> done;
  GenerateResult made;
};

// Runs generate() on all ranks and returns each rank's outcome. `options`, such as faults, apply only to the
// tier of the rank `failing_rank`.
std::vector<Outcome> make_on_ranks(int ranks, const std::string& path, const Generation& generation,
                                   bool resume = false, int failing_rank = -1,
                                   const std::string& options = "") {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  RankThreads::run(ranks, [&](Communicator& job) {
    Tier target = tier(path, job.rank() == failing_rank ? options : "");
    Outcome& mine = outcomes[size_t(job.rank())];
    Progress progress(false, "", 0, "");
    mine.done = generate(generation, target, 2, resume, job, progress, mine.made);
  });
  return outcomes;
}

Tree tree_of_one_process(const std::string& path, const Generation& generation) {
  Tier target = tier(path);
  EXPECT_TRUE(make(target, generation, 1).ok());
  return tree_of(target);
}

TEST(GenerateRanks, SharesAreConsecutiveAndCoverAllObjects) {
  for (const auto& recipe : {&pictures, &shards}) {
    const Generation generation = recipe();
    for (const int ranks : {1, 2, 3, 5, 17, 40}) {
      GenerateShare before;
      for (int rank = 0; rank < ranks; ++rank) {
        const GenerateShare share = share_of(generation, rank, ranks);
        EXPECT_EQ(share.first_object, before.end_object);
        EXPECT_EQ(share.first_sample, before.end_sample);
        EXPECT_LE(share.objects(), generation.objects / uint64_t(ranks) + 1);
        before = share;
      }
      EXPECT_EQ(before.end_object, generation.objects);
      EXPECT_EQ(before.end_sample, 17U);
    }
  }
}

TEST(GenerateRanks, TheirNumberDoesNotMatter) {
  int n = 0;
  for (const auto& recipe : {&pictures, &shards, &weather_files}) {
    const Generation generation = recipe();
    const std::string name = "ranks-number-" + std::to_string(n++);
    const Tree expected = tree_of_one_process(name, generation);
    for (const int ranks : {2, 3, 7}) {
      const std::string path = name + "-" + std::to_string(ranks);
      for (const Outcome& outcome : make_on_ranks(ranks, path, generation)) {
        ASSERT_TRUE(outcome.done.ok()) << outcome.done.error().message();
        EXPECT_EQ(outcome.made.samples_made, generation.state.samples) << "the job's, on every rank";
        EXPECT_FALSE(outcome.made.can_resume);
      }
      Tier target = tier(path);
      expect_same(tree_of(target), expected);
    }
  }
}

TEST(GenerateRanks, FiguresOfEachRankAreKnownOnRank0) {
  const std::vector<Outcome> outcomes = make_on_ranks(3, "ranks-figures", pictures());
  const GenerateResult& made = outcomes[0].made;
  ASSERT_EQ(made.rank_figures.size(), 3U);
  uint64_t bytes = 0;
  for (const RankFigures& rank : made.rank_figures) {
    bytes += rank.bytes;
    EXPECT_GT(rank.bytes, 0U);
    EXPECT_LE(rank.wall_s, made.seconds);
  }
  EXPECT_EQ(bytes, made.bytes_made);
  EXPECT_TRUE(outcomes[1].made.rank_figures.empty());
}

// In one rank, all operations fail from operation number `at` on. Then a job with another number of ranks
// resumes. The test repeats this for every third number.
TEST(GenerateRanks, AFailedRankLeavesSomethingToResume) {
  const Generation generation = shards();
  const Tree expected = tree_of_one_process("ranks-fault", generation);
  uint64_t failed = 0;
  for (const int failing_rank : {0, 1}) {
    for (int at = 1;; at += 3) {
      const std::string path = "ranks-fault-" + std::to_string(failing_rank) + "-" + std::to_string(at);
      const auto outcomes = make_on_ranks(2, path, generation, false, failing_rank,
                                          ",fail=any:enospc@#" + std::to_string(at) + "..");
      if (outcomes[0].done.ok()) break;
      ++failed;
      EXPECT_EQ(outcomes[0].done.error().code, Errc::no_space) << outcomes[0].done.error().message();
      EXPECT_EQ(outcomes[1].done.error().message(), outcomes[0].done.error().message());
      const auto resumed = make_on_ranks(at % 2 == 0 ? 1 : 3, path, generation, true);
      ASSERT_TRUE(resumed[0].done.ok()) << resumed[0].done.error().message();
      Tier target = tier(path);
      expect_same(tree_of(target), expected);
    }
  }
  EXPECT_GT(failed, 10U);
}

TEST(GenerateRanks, ResumeKeepsWhatAnyNumberOfRanksMade) {
  const Generation generation = weather_files();
  const Tree expected = tree_of_one_process("ranks-kept", generation);
  const auto stopped = make_on_ranks(3, "ranks-kept-3", generation, false, 0, ",fail=publish:enospc@#5..");
  ASSERT_FALSE(stopped[0].done.ok());
  EXPECT_GT(stopped[0].made.samples_journaled, 0U);
  const auto resumed = make_on_ranks(2, "ranks-kept-3", generation, true);
  ASSERT_TRUE(resumed[0].done.ok()) << resumed[0].done.error().message();
  EXPECT_EQ(resumed[0].made.samples_kept, stopped[0].made.samples_journaled);
  EXPECT_EQ(resumed[0].made.samples_kept + resumed[0].made.samples_made, generation.state.samples);
  Tier target = tier("ranks-kept-3");
  expect_same(tree_of(target), expected);
}

TEST(GenerateRanks, ASignalToOneStopsAll) {
  std::vector<Outcome> outcomes(2);
  const Generation generation = pictures();
  RankThreads::run(2, [&](Communicator& job) {
    Tier target = tier("ranks-signal", ",latency=20ms");
    Outcome& mine = outcomes[size_t(job.rank())];
    Progress progress(false, "", 0, "");
    std::jthread signal;
    if (!job.root())
      signal = std::jthread([] {
        Tier watched = tier("ranks-signal");
        bool made = false;  // true once there is a folder of a class, which has pictures
        while (!made) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          static_cast<void>(watched.backend->names().list("", [&](const Entry& entry) {
            made = made || !entry.name.starts_with(".penstock");
            return true;
          }));
        }
        simulate_interrupt(SIGTERM);
      });
    mine.done = generate(generation, target, 1, false, job, progress, mine.made);
  });
  simulate_interrupt(0);
  for (const Outcome& outcome : outcomes) {
    ASSERT_FALSE(outcome.done.ok());
    EXPECT_EQ(outcome.done.error().code, Errc::interrupted);
    EXPECT_TRUE(outcome.made.can_resume);
  }
  ASSERT_TRUE(make_on_ranks(3, "ranks-signal", generation, true)[0].done.ok());
  Tier target = tier("ranks-signal");
  expect_same(tree_of(target), tree_of_one_process("ranks-signal-whole", generation));
}

TEST(GenerateRanks, ASignalAtTheStartSaysWhetherResumeIsPossible) {
  std::vector<Outcome> outcomes(2);
  RankThreads::run(2, [&](Communicator& job) {
    Tier target = tier("ranks-early-signal", job.root() ? "" : ",latency=100ms");
    Outcome& mine = outcomes[size_t(job.rank())];
    Progress progress(false, "", 0, "");
    std::jthread signal;
    if (job.root())
      signal = std::jthread([] {
        Tier watched = tier("ranks-early-signal");
        while (!watched.backend->names().stat(kGenerationStateName).ok())
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        simulate_interrupt(SIGTERM);
      });
    mine.done = generate(pictures(), target, 1, false, job, progress, mine.made);
  });
  simulate_interrupt(0);
  Tier target = tier("ranks-early-signal");
  const bool left = target.backend->names().stat(kGenerationStateName).ok();
  for (const Outcome& outcome : outcomes) {
    ASSERT_FALSE(outcome.done.ok());
    EXPECT_EQ(outcome.done.error().code, Errc::interrupted);
    EXPECT_EQ(outcome.made.can_resume, left) << "started exactly where there is something to resume";
  }
}

TEST(GenerateRanks, AllRanksRepairAFinishedDataSet) {
  const Generation generation = weather_files();
  const Tree expected = tree_of_one_process("ranks-mend", generation);
  Tier target = tier("ranks-mend");
  for (const auto& [name, bytes] : expected) {
    if (name.front() == '.') continue;
    const auto removed = target.backend->names().remove(name);
    ASSERT_TRUE(removed.ok()) << name;
  }
  const auto repaired = make_on_ranks(3, "ranks-mend", generation, true);
  for (const Outcome& outcome : repaired) ASSERT_TRUE(outcome.done.ok()) << outcome.done.error().message();
  EXPECT_EQ(repaired[0].made.damaged_objects, expected.size() - 1);
  EXPECT_EQ(repaired[0].made.samples_made, generation.state.samples);
  expect_same(tree_of(target), expected);
}

TEST(GenerateRanks, WithAManifestNoRankMakesAnythingAgain) {
  const Generation generation = weather_files();
  const Tree expected = tree_of_one_process("ranks-behind", generation);
  uint64_t failures_after_manifest = 0;
  for (int at = 1;; ++at) {
    const std::string path = "ranks-behind-" + std::to_string(at);
    const auto stopped =
        make_on_ranks(2, path, generation, false, 0, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (stopped[0].done.ok()) break;
    Tier target = tier(path);
    if (!target.backend->open(kManifestName).ok()) continue;
    ++failures_after_manifest;
    for (const Outcome& outcome : make_on_ranks(3, path, generation, true)) {
      ASSERT_TRUE(outcome.done.ok()) << outcome.done.error().message();
      EXPECT_EQ(outcome.made.samples_made, 0U) << at;
    }
    expect_same(tree_of(target), expected);
  }
  EXPECT_GE(failures_after_manifest, 4U);
}

// A recipe that throws std::bad_alloc instead of returning its labels.
class WithoutMemory final : public Recipe {
 public:
  explicit WithoutMemory(std::unique_ptr<Recipe> recipe) : recipe_(std::move(recipe)) {}

  uint64_t samples() const override { return recipe_->samples(); }
  void plan(uint64_t index, SamplePlan& out) const override { recipe_->plan(index, out); }
  uint64_t bytes_expected(uint64_t index) const override { return recipe_->bytes_expected(index); }
  std::vector<std::string> label_names() const override { throw std::bad_alloc(); }
  std::span<const Field> fields() const override { return recipe_->fields(); }
  Result<std::unique_ptr<SampleMaker>> maker() const override { return recipe_->maker(); }
  std::vector<Companion> companions() const override { return recipe_->companions(); }

 private:
  const std::unique_ptr<Recipe> recipe_;
};

// No rank may return alone, because the others would wait for it for ever.
TEST(GenerateRanks, ARankWithoutMemoryMakesAllRanksFail) {
  const Generation generation = weather_files();
  const Tree expected = tree_of_one_process("ranks-memory", generation);
  Tier target = tier("ranks-memory");
  ASSERT_TRUE(target.backend->names().remove(expected.rbegin()->first).ok());
  // The first data set is to be repaired, the second to be made.
  for (const std::string path : {"ranks-memory", "ranks-memory-fresh"})
    for (const int failing_rank : {0, 1}) {
      std::vector<Outcome> outcomes(2);
      RankThreads::run(2, [&](Communicator& job) {
        Generation mine = weather_files();
        if (job.rank() == failing_rank) mine.recipe = std::make_unique<WithoutMemory>(std::move(mine.recipe));
        Tier there = tier(path);
        Progress progress(false, "", 0, "");
        Outcome& outcome = outcomes[size_t(job.rank())];
        outcome.done = generate(mine, there, 1, true, job, progress, outcome.made);
      });
      for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.done.ok());
        EXPECT_EQ(outcome.done.error().code, Errc::exhausted) << outcome.done.error().message();
      }
    }
  for (const std::string path : {"ranks-memory", "ranks-memory-fresh"}) {
    ASSERT_TRUE(make_on_ranks(2, path, generation, true)[0].done.ok());
    Tier whole = tier(path);
    expect_same(tree_of(whole), expected);
  }
}

TEST(GenerateRanks, ATargetThatNotAllRanksSeeIsRefused) {
  std::vector<Outcome> outcomes(2);
  const Generation generation = weather_files();
  RankThreads::run(2, [&](Communicator& job) {
    Tier target = tier("ranks-place-" + std::to_string(job.rank()));
    Outcome& mine = outcomes[size_t(job.rank())];
    Progress progress(false, "", 0, "");
    mine.done = generate(generation, target, 1, false, job, progress, mine.made);
  });
  for (const Outcome& outcome : outcomes) {
    ASSERT_FALSE(outcome.done.ok());
    EXPECT_EQ(outcome.done.error().code, Errc::not_found);
    EXPECT_NE(outcome.done.error().what.find("on rank 1 of 2"), std::string::npos);
  }
  Tier elsewhere = tier("ranks-place-1");
  EXPECT_TRUE(tree_of(elsewhere).empty());
}

}  // namespace
}  // namespace penstock
