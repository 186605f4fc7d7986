#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <vector>

#include "benchmarks/read/read_team.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kRepeatFiles = 20;

class ReadRepeat : public testing::Test {
 protected:
  ReadRepeat() {
    auto backend = std::make_unique<ScriptedBackend>();
    backend_ = backend.get();
    manifest_ = std::make_unique<Manifest>(scripted_files(*backend, kRepeatFiles));
    samples_ = std::make_unique<SampleList>(corpus_samples(*manifest_).value());
    tier_.name = "disk";
    tier_.backend = std::move(backend);
  }

  CacheControl control(CacheRequest requested, ColdMethod method = ColdMethod::evict) {
    PageCacheCalls calls;
    calls.residency = [this](const std::filesystem::path&) -> Result<Residency> {
      return Residency{.resident_bytes = resident_ ? 10U : 0U, .total_bytes = 10, .verified = true};
    };
    calls.evict = [this](const std::filesystem::path&) -> Result<void> {
      ++evictions_;
      return success();
    };
    calls.warm = [](const std::filesystem::path&) { return success(); };
    calls.drop = [this] {
      ++drops_;
      return success();
    };
    return CacheControl(tier_, *manifest_, *samples_, requested, method, 1, calls);
  }

  // A plan for a repeat. Each of its passes reports that it took 0.4 s, and adds its spec to passes_.
  RepeatPlan plan() {
    RepeatPlan plan;
    plan.spec = {.threads = 3, .end = Passes{1s}};
    plan.run = [this](const ReadSpec& pass, const ReadObserver& observer) {
      passes_.push_back(pass);
      RunTally so_far;
      so_far.elapsed_s = 0.1;
      if (observer) observer(so_far);
      RunTally tally;
      tally.samples = kRepeatFiles;
      tally.bytes = 100;
      tally.passes = 1;
      tally.wall_s = 0.4;
      tally.elapsed_s = 0.4;
      return tally;
    };
    return plan;
  }

  std::optional<RepeatFigures> run(CacheControl& cache, const RepeatPlan& plan) {
    return run_repeat(team_, tier_, cache, plan);
  }

  const std::unique_ptr<Communicator> single_ = single_process();
  ReadTeam team_{*single_};
  Tier tier_;
  ScriptedBackend* backend_ = nullptr;
  std::unique_ptr<Manifest> manifest_;
  std::unique_ptr<SampleList> samples_;
  bool resident_ = false;
  int evictions_ = 0;
  int drops_ = 0;
  std::vector<ReadSpec> passes_;
};

TEST_F(ReadRepeat, EvictsBetweenColdPassesUntilTheyHaveLastedLongEnough) {
  CacheControl cache = control(CacheRequest::cold);
  std::vector<double> seen;
  RepeatPlan wanted = plan();
  wanted.observer = [&](const RunTally& so_far) { seen.push_back(so_far.elapsed_s); };
  const auto figures = run(cache, wanted);
  ASSERT_TRUE(figures);
  EXPECT_EQ(passes_.size(), 3U);
  EXPECT_EQ(evictions_, 3 * int(kRepeatFiles));
  EXPECT_DOUBLE_EQ(figures->tally.wall_s, 1.2);
  EXPECT_EQ(figures->tally.samples, 3 * kRepeatFiles);
  EXPECT_EQ(figures->cache.client_data, "cold");
  for (const ReadSpec& pass : passes_) {
    EXPECT_EQ(pass.max_passes, 1U);
    EXPECT_EQ(pass.threads, 3U);
  }
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_DOUBLE_EQ(seen[2], 0.9) << "the watcher counts from the start of the repeat";
}

TEST_F(ReadRepeat, DropsBetweenColdPassesOfDirectReadsToo) {
  backend_->change_caps().bypasses_cache = true;
  CacheControl cache = control(CacheRequest::cold, ColdMethod::drop);
  const auto figures = run(cache, plan());
  ASSERT_TRUE(figures);
  ASSERT_EQ(passes_.size(), 3U);
  for (const ReadSpec& pass : passes_) EXPECT_EQ(pass.max_passes, 1U);
  EXPECT_EQ(drops_, 3);
  EXPECT_EQ(figures->cache.client_data, "bypassed");
  EXPECT_EQ(figures->cache.client_metadata, "cold");
}

TEST_F(ReadRepeat, WarmPassesAreReadInOneRun) {
  resident_ = true;
  CacheControl cache = control(CacheRequest::warm);
  const auto figures = run(cache, plan());
  ASSERT_TRUE(figures);
  ASSERT_EQ(passes_.size(), 1U);
  EXPECT_EQ(passes_[0].max_passes, 0U);
  EXPECT_EQ(shortest_time(passes_[0].end), 1s);
}

TEST_F(ReadRepeat, DurationAndRampGoOnFromPassToPass) {
  CacheControl cache = control(CacheRequest::cold);
  RepeatPlan wanted = plan();
  wanted.spec.end = Duration{1s};
  wanted.spec.ramp = 500ms;
  ASSERT_TRUE(run(cache, wanted));
  ASSERT_EQ(passes_.size(), 3U);
  EXPECT_EQ(time_limit(passes_[0].end), 1500ms);
  EXPECT_EQ(passes_[0].ramp, 500ms);
  EXPECT_EQ(time_limit(passes_[1].end), 1100ms);
  EXPECT_EQ(passes_[1].time_measured_before, 400ms);
  EXPECT_EQ(passes_[1].ramp, 100ms);
  EXPECT_EQ(passes_[2].ramp, 0ms);
}

TEST_F(ReadRepeat, MeasuresAndReportsWhatDidNotGetCold) {
  resident_ = true;
  CacheControl cache = control(CacheRequest::cold);
  const auto figures = run(cache, plan());
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->verdict, Verdict::not_cold);
  EXPECT_EQ(figures->tally.samples, 3 * kRepeatFiles);
}

TEST_F(ReadRepeat, AFailureEndsTheRepeatAndIsReturned) {
  CacheControl cache = control(CacheRequest::cold);
  RepeatPlan wanted = plan();
  wanted.run = [](const ReadSpec&, const ReadObserver&) {
    RunTally tally;
    tally.failure = make_error(Errc::io, "cannot read 'x'");
    return tally;
  };
  const auto figures = run(cache, wanted);
  ASSERT_TRUE(figures);
  ASSERT_TRUE(figures->tally.failure);
  EXPECT_EQ(figures->tally.failure->what, "cannot read 'x'");
}

TEST_F(ReadRepeat, AnInterruptBeforeTheFirstPassReturnsNothing) {
  CacheControl cache = control(CacheRequest::cold);
  simulate_interrupt(SIGINT);
  const auto figures = run(cache, plan());
  simulate_interrupt(0);
  EXPECT_FALSE(figures);
  EXPECT_TRUE(passes_.empty());
}

}  // namespace
}  // namespace penstock
