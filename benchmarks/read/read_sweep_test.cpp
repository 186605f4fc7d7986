#include "benchmarks/read/read_sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr uint64_t kFiles = 50;

// Two tiers in memory with the same objects.
class Sweep : public testing::Test {
 protected:
  Sweep() {
    for (int i = 0; i < 2; ++i) {
      auto backend = std::make_unique<ScriptedBackend>();
      backend->change_caps().emulated = true;  // so that the loops use the back end and do not bypass it
      manifests_.push_back(scripted_files(*backend, kFiles));
      backends_.push_back(backend.get());
      tiers_[i].name = i == 0 ? "one" : "two";
      tiers_[i].facts.memory = true;
      tiers_[i].backend = std::move(backend);
    }
    samples_ = std::make_unique<SampleList>(corpus_samples(manifests_[0]).value());
    options_.threads = {1, 3};
    options_.repeats = 2;
    options_.seed = 5;
    options_.measure_ceiling = false;  // its probes take too long for a test
  }

  ReadSweep sweep() {
    return ReadSweep({&tiers_[0], &tiers_[1]}, manifests_[0], *samples_, options_, *single_);
  }

  Tier tiers_[2];
  std::vector<ScriptedBackend*> backends_;
  std::vector<Manifest> manifests_;
  std::unique_ptr<SampleList> samples_;
  ReadOptions options_;
  std::unique_ptr<Communicator> single_ = single_process();
};

TEST_F(Sweep, MeasuresEveryCellWithABaselineForEachRepeatAndACeiling) {
  options_.measure_ceiling = true;
  options_.threads = {2};
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  ASSERT_EQ(all.cells().size(), 2U);
  for (const ReadCell& cell : all.cells()) {
    EXPECT_EQ(cell.repeats.size(), 2U);
    EXPECT_EQ(cell.baseline_samples_per_s.size(), 2U);
    EXPECT_GT(cell.ceiling_bytes_per_s, 0);
    EXPECT_FALSE(cell.ceiling_probe.empty());
    for (const RepeatFigures& repeat : cell.repeats) {
      EXPECT_EQ(repeat.tally.samples % kFiles, 0U) << "whole passes";
      EXPECT_EQ(repeat.read_call_bytes, repeat.tally.bytes);
      EXPECT_EQ(repeat.cache.client_data, "memory");
    }
  }
}

TEST_F(Sweep, TheBaselineHasTheReadersDepthAndNoCeilingOfShuffledRangesStreams) {
  options_.threads = {2};
  options_.depth = 8;
  ReadSweep deep = sweep();
  ASSERT_TRUE(deep.run().ok());
  for (const ReadCell& cell : deep.cells()) {
    EXPECT_EQ(cell.baseline_loop, "queued.2x8");
    EXPECT_EQ(cell.baseline_samples_per_s.size(), 2U);
    for (const double rate : cell.baseline_samples_per_s) EXPECT_GT(rate, 0);
  }
  ScriptedBackend backend;
  const Manifest shards = scripted_shards(backend, 3);
  const SampleList samples = corpus_samples(shards).value();
  const std::vector<uint64_t> offsets;
  const ReadWork work{
      .manifest = &shards, .samples = &samples, .backend = &backend, .offsets = &offsets, .share = {}};
  for (const auto& [order, streams] :
       {std::pair{SampleOrder::sequential, true}, std::pair{SampleOrder::shuffled, false}}) {
    ReadOptions options;
    options.order = order;
    const std::vector<LoopShape> probes = Yardsticks(work, options).probe_series(2);
    EXPECT_EQ(std::any_of(probes.begin(), probes.end(),
                          [](const LoopShape& probe) { return probe.kind == LoopKind::streamed; }),
              streams);
    EXPECT_EQ(Yardsticks(work, options).baseline_shape(2).name(), "blocking.2");
  }
}

TEST_F(Sweep, CountsAllThatIsReadFromATier) {
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  for (size_t tier = 0; tier < 2; ++tier) {
    EXPECT_EQ(all.tier(tier).bytes_read(), backends_[tier]->moved_bytes().read)
        << "the baseline went through the back end, and must not be counted twice";
    uint64_t repeats = 0;
    for (const ReadCell& cell : all.cells())
      for (const RepeatFigures& repeat : cell.repeats)
        if (cell.tier == tier) repeats += repeat.tally.bytes;
    EXPECT_GE(all.tier(tier).bytes_read(), 2 * repeats / 3 + manifests_[0].payload_bytes());
  }
}

TEST_F(Sweep, ATierThatFailsEndsWithItsReasonAndTheOthersGoOn) {
  backends_[1]->fail_on("s0033");
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  for (const ReadCell& cell : all.cells()) {
    if (cell.tier == 0) {
      EXPECT_LT(cell.verdict, Verdict::failed) << cell.reason;
      EXPECT_EQ(cell.repeats.size(), 2U);
    } else {
      EXPECT_EQ(cell.verdict, Verdict::failed);
      EXPECT_NE(cell.reason.find("s0033"), std::string::npos);
      EXPECT_TRUE(cell.repeats.empty());
    }
  }
}

TEST_F(Sweep, SkippedSamplesDegradeAndAreNamed) {
  backends_[1]->fail_on("s0033");
  options_.skip_errors = true;
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  for (const ReadCell& cell : all.cells()) {
    if (cell.tier == 0) continue;
    EXPECT_EQ(cell.verdict, Verdict::degraded);
    ASSERT_EQ(cell.first_errors.size(), 1U);
    EXPECT_NE(cell.first_errors[0].find("s0033"), std::string::npos);
    EXPECT_GE(cell.errors, 2U);
    ASSERT_EQ(cell.repeats.size(), 2U);
    for (const double rate : cell.baseline_samples_per_s)
      EXPECT_TRUE(std::isnan(rate)) << "the simplest loop skips nothing, so there is no baseline";
  }
}

TEST_F(Sweep, WrongBytesAreTheVerdictInsteadOfARate) {
  backends_[0]->put("s0010", std::vector<std::byte>(11));
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  EXPECT_EQ(all.cells()[0].verdict, Verdict::wrong_bytes);
  EXPECT_NE(all.cells()[0].reason.find("s0010"), std::string::npos);
  EXPECT_TRUE(all.cells()[0].repeats.empty());
  EXPECT_EQ(all.cells()[2].repeats.size(), 2U);
}

TEST_F(Sweep, SkippedWrongBytesDegradeAndAreNamedAlsoWhereOtherSamplesFailedBeforeThem) {
  for (uint32_t i = 0; i < 10; ++i) backends_[0]->fail_on(std::string(samples_->name(i)));
  backends_[0]->put("s0010", std::vector<std::byte>(11));
  options_.skip_errors = true;
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  EXPECT_EQ(all.cells()[0].verdict, Verdict::degraded);
  EXPECT_EQ(all.cells()[0].repeats.size(), 2U);
  EXPECT_NE(all.cells()[0].reason.find("wrong bytes in"), std::string::npos) << all.cells()[0].reason;
  EXPECT_NE(all.cells()[0].reason.find("s0010"), std::string::npos) << all.cells()[0].reason;
}

TEST_F(Sweep, OnlyWrongBytesFailEvenWhenSkipping) {
  for (uint32_t i = 0; i < kFiles; ++i)
    backends_[0]->put(std::string(samples_->name(i)),
                      std::vector<std::byte>(samples_->largest_bytes(), std::byte{0xff}));
  options_.skip_errors = true;
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  EXPECT_EQ(verdict_exit_code(all.cells()[0].verdict), 1);
  EXPECT_EQ(all.cells()[2].verdict, Verdict::ok);
}

TEST_F(Sweep, NothingCanBeReadIsAFailureEvenWhenSkipping) {
  for (uint32_t i = 0; i < kFiles; ++i) backends_[0]->fail_on(std::string(samples_->name(i)));
  options_.skip_errors = true;
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  EXPECT_EQ(all.cells()[0].verdict, Verdict::failed);
}

TEST_F(Sweep, InterruptedCellsGetThatVerdict) {
  simulate_interrupt(SIGINT);
  ReadSweep all = sweep();
  ASSERT_TRUE(all.run().ok());
  simulate_interrupt(0);
  for (const ReadCell& cell : all.cells()) EXPECT_EQ(cell.verdict, Verdict::interrupted);
}

TEST_F(Sweep, TheSeedDecidesTheOrderOfReads) {
  options_.measure_baseline = false;
  options_.threads = {1};
  options_.order = SampleOrder::shuffled;
  std::map<uint64_t, std::vector<std::string>> reads;
  for (const uint64_t seed : {5U, 5U, 6U}) {
    options_.seed = seed;
    backends_[0]->forget_reads();
    ReadSweep all = sweep();
    ASSERT_TRUE(all.run().ok());
    if (reads.contains(seed)) {
      EXPECT_EQ(reads[seed], backends_[0]->reads());
    }
    reads[seed] = backends_[0]->reads();
  }
  EXPECT_NE(reads[5], reads[6]);
}

}  // namespace
}  // namespace penstock
