#include "benchmarks/read/read_engine.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/throttled.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kEngineFiles = 300;

struct EngineBench {
  ScriptedBackend backend;
  Manifest manifest;
  SampleList samples;
  ReadOptions options;  // of the last call of engine(), whose engine keeps a reference to them

  explicit EngineBench(uint64_t files = kEngineFiles)
      : manifest(scripted_files(backend, files)), samples(corpus_samples(manifest).value()) {}
  explicit EngineBench(Manifest (*make)(ScriptedBackend&, uint64_t), uint64_t count)
      : manifest(make(backend, count)), samples(corpus_samples(manifest).value()) {}

  std::unique_ptr<ReadEngine> engine(const ReadOptions& asked) {
    options = asked;
    return ReadEngine::make({.manifest = &manifest, .samples = &samples, .backend = &backend}, options)
        .value();
  }
};

std::map<std::string, int> counted(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  return counts;
}

struct Shape {
  unsigned threads;
  unsigned depth;
  SampleOrder order;
};

TEST(ReadEngine, AnOpenLoopCountsFromWhenSamplesWereDue) {
  EngineBench bench;
  const auto engine = bench.engine({.threads = {3},
                                    .order = SampleOrder::sequential,
                                    .open_loop = OpenLoop{.per_second = 2000},
                                    .seed = 3});
  const auto begin = std::chrono::steady_clock::now();
  const RunTally tally = engine->run({.threads = 3, .end = Duration{200ms}, .measured_repeat = 0});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 190ms) << "nothing is read before it is due";
  EXPECT_LE(tally.samples, 400U) << "of those due before the deadline";
  EXPECT_GE(tally.samples, 1U);
  EXPECT_EQ(tally.late_ns.count(), tally.samples);
  EXPECT_EQ(tally.latency_ns.count(), tally.samples);
  EXPECT_GE(tally.latency_ns.percentile(50), tally.late_ns.percentile(50));
  const RunTally closed = engine->run({.threads = 3, .max_passes = 1});
  EXPECT_EQ(closed.samples, kEngineFiles) << "a closed loop has no late reads";
  EXPECT_EQ(closed.late_ns.count(), 0U);
}

TEST(ReadEngine, TheLatencyOfAnOpenLoopIncludesTheWaitForTheTier) {
  auto scripted = std::make_unique<ScriptedBackend>();
  const Manifest manifest = scripted_files(*scripted, kEngineFiles);
  const SampleList samples = corpus_samples(manifest).value();
  const auto slow = throttled(std::move(scripted), {.latency = 10ms});
  const ReadOptions options{.open_loop = OpenLoop{.per_second = 200}};
  const auto engine =
      ReadEngine::make({.manifest = &manifest, .samples = &samples, .backend = slow.get()}, options).value();
  const RunTally tally = engine->run({.end = Duration{200ms}, .measured_repeat = 0});
  ASSERT_GE(tally.samples, 2U);
  EXPECT_LE(tally.samples, 20U) << "it takes 10 ms of each";
  // The n-th sample is due after 5n ms, and ends after 10n ms at the earliest.
  EXPECT_GE(tally.latency_ns.percentile(100), 4.5e6 * double(tally.samples));
  EXPECT_GE(tally.late_ns.percentile(100), 4.5e6 * double(tally.samples - 1));
}

TEST(ReadEngine, AnOpenLoopNoticesAnInterruptWhileItWaits) {
  EngineBench bench;
  const auto engine = bench.engine({.open_loop = OpenLoop{.per_second = 0.001}});
  const std::jthread user([] {
    std::this_thread::sleep_for(20ms);
    simulate_interrupt(SIGINT);
  });
  const auto begin = std::chrono::steady_clock::now();
  const RunTally tally = engine->run({.max_passes = 1, .measured_repeat = 0});
  simulate_interrupt(0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s) << "the first sample is due after 1000 s";
  EXPECT_EQ(tally.samples, 0U);
}

class EngineShapes : public testing::TestWithParam<Shape> {};

TEST_P(EngineShapes, ReadsEverySampleOnceAPass) {
  const Shape shape = GetParam();
  EngineBench bench;
  const auto engine =
      bench.engine({.threads = {shape.threads}, .depth = shape.depth, .order = shape.order, .seed = 3});
  const RunTally tally = engine->run({.threads = shape.threads, .max_passes = 3, .end = Passes{1h}});
  EXPECT_FALSE(tally.failure);
  EXPECT_EQ(tally.samples, 3 * kEngineFiles);
  EXPECT_EQ(tally.bytes, 3 * bench.manifest.payload_bytes());
  EXPECT_EQ(tally.passes, 3U);
  EXPECT_EQ(tally.latency_ns.count(), tally.samples)
      << "every thread's latencies are in the merged histogram";
  const auto counts = counted(bench.backend.reads());
  EXPECT_EQ(counts.size(), kEngineFiles);
  for (const auto& [name, count] : counts) EXPECT_EQ(count, 3) << name;
  uint64_t in_series = 0;
  for (const uint64_t bytes : tally.bytes_by_second) in_series += bytes;
  EXPECT_EQ(in_series, tally.bytes);
  EXPECT_GE(tally.wall_s, tally.first_done_bytes == tally.bytes ? 0.0 : tally.first_done_s - 1e-3);
  EXPECT_LE(tally.first_done_bytes, tally.bytes);
}

INSTANTIATE_TEST_SUITE_P(All, EngineShapes,
                         testing::Values(Shape{1, 1, SampleOrder::sequential},
                                         Shape{4, 1, SampleOrder::shuffled},
                                         Shape{1, 8, SampleOrder::shuffled},
                                         Shape{3, 4, SampleOrder::sequential}));

TEST(ReadEngine, OneThreadReadsInTheOrderOfTheManifest) {
  EngineBench bench(20);
  bench.engine({})->run({.max_passes = 1});
  const std::vector<std::string> reads = bench.backend.reads();
  EXPECT_TRUE(std::is_sorted(reads.begin(), reads.end()));
}

TEST(ReadEngine, EveryRunContinuesTheShuffle) {
  EngineBench bench(20);
  const auto engine = bench.engine({.order = SampleOrder::shuffled, .seed = 5});
  std::set<std::vector<std::string>> orders;
  for (int run = 0; run < 3; ++run) {
    bench.backend.forget_reads();
    engine->run({.max_passes = 1});
    orders.insert(bench.backend.reads());
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(ReadEngine, ASingleReadUsesTheQueueIfThatIsCheaper) {
  for (const bool asked : {false, true}) {
    EngineBench bench;
    bench.backend.change_caps().queue_is_cheaper = asked;
    const RunTally tally = bench.engine({})->run({.max_passes = 1});
    EXPECT_EQ(tally.samples, kEngineFiles);
    EXPECT_EQ(bench.backend.queues(), asked ? 1 : 0);
  }
}

TEST(ReadEngine, UsesNoMoreThreadsThanTheSpecAllows) {
  EngineBench bench;
  const auto engine = bench.engine({.threads = {4}});
  EXPECT_EQ(engine->run({.threads = 2, .max_passes = 1}).samples, kEngineFiles);
  EXPECT_EQ(engine->run({.threads = 4, .max_passes = 1}).samples, kEngineFiles);
}

TEST(ReadEngine, FailsByDefaultAndNamesTheObject) {
  for (const unsigned depth : {1U, 4U}) {
    EngineBench bench;
    bench.backend.fail_on("s0123");
    const RunTally tally =
        bench.engine({.threads = {2}, .depth = depth})->run({.threads = 2, .end = Passes{1h}});
    ASSERT_TRUE(tally.failure);
    EXPECT_EQ(tally.failure->code, Errc::io);
    EXPECT_NE(tally.failure->message().find("s0123"), std::string::npos);
  }
}

TEST(ReadEngine, WhatWasReadBeforeAFailureIsKept) {
  EngineBench bench;
  bench.backend.fail_on("s0123");
  EXPECT_EQ(bench.engine({})->run({.end = Passes{1h}}).samples, 123U);
}

TEST(ReadEngine, SkipsCountsAndNamesTheFirstFew) {
  for (const unsigned depth : {1U, 4U}) {
    EngineBench bench;
    for (int i = 10; i < 20; ++i) bench.backend.fail_on("s00" + std::to_string(i));
    const RunTally tally = bench.engine({.threads = {3}, .depth = depth, .skip_errors = true})
                               ->run({.threads = 3, .max_passes = 1});
    EXPECT_FALSE(tally.failure);
    EXPECT_EQ(tally.errors, 10U);
    EXPECT_EQ(tally.samples, kEngineFiles - 10);
    ASSERT_EQ(tally.first_errors.size(), RunTally::kMostErrorsNamed);
    EXPECT_NE(tally.first_errors[0].find("s001"), std::string::npos);
  }
}

TEST(ReadEngine, AnObjectThatShrankOrVanishedIsNamed) {
  EngineBench bench;
  bench.backend.put("s0050", {});
  const RunTally shrunk = bench.engine({})->run({.max_passes = 1});
  ASSERT_TRUE(shrunk.failure);
  EXPECT_EQ(shrunk.failure->code, Errc::truncated);
  EXPECT_NE(shrunk.failure->message().find("s0050"), std::string::npos);
}

TEST(ReadEngine, VerifyFindsWrongBytes) {
  EngineBench bench;
  bench.backend.put("s0007", std::vector<std::byte>(8));
  EXPECT_FALSE(bench.engine({})->run({.max_passes = 1}).failure) << "not asked, not told";
  const RunTally tally = bench.engine({})->run({.max_passes = 1, .verify = true});
  EXPECT_EQ(tally.wrong_samples, 1U);
  ASSERT_TRUE(tally.failure);
  EXPECT_NE(tally.failure->message().find("s0007"), std::string::npos);
}

TEST(ReadEngine, DecodingWhatIsNoJpegNamesTheSample) {
  EngineBench bench(3);
  const RunTally tally = bench.engine({.decode = true})->run({.max_passes = 1});
  ASSERT_TRUE(tally.failure);
  EXPECT_EQ(tally.failure->code, Errc::corrupt);
  EXPECT_NE(tally.failure->message().find("s0000"), std::string::npos);
}

TEST(ReadEngine, ReadsSamplesInsideShards) {
  for (const unsigned depth : {1U, 3U}) {
    EngineBench bench(scripted_shards, 3);
    const RunTally tally =
        bench.engine({.threads = {2}, .depth = depth})->run({.threads = 2, .max_passes = 1});
    EXPECT_FALSE(tally.failure);
    EXPECT_EQ(tally.samples, 30U);
    const auto counts = counted(bench.backend.reads());
    EXPECT_EQ(counts.size(), 30U);
    EXPECT_EQ(counts.at("shardb+90"), 1);
  }
}

TEST(ReadEngine, ADeadlineEndsARunInTheMiddleOfAPass) {
  EngineBench bench;
  const RunTally tally = bench.engine({})->run({.end = Duration{20ms}});
  EXPECT_GE(tally.elapsed_s, 0.019);
  EXPECT_GT(tally.samples, 0U);
}

TEST(ReadEngine, TheRampIsNotCounted) {
  EngineBench bench;
  const RunTally tally = bench.engine({})->run({.end = Duration{200ms}, .ramp = 100ms});
  EXPECT_NEAR(tally.elapsed_s - tally.wall_s, 0.1, 1e-6);
  EXPECT_LT(tally.samples, bench.backend.reads().size());
  EXPECT_EQ(tally.latency_ns.count(), tally.samples);
}

TEST(ReadEngine, WrongBytesOfTheRampAreErrorsToo) {
  EngineBench bench(3);
  bench.backend.put("s0001", std::vector<std::byte>(bench.manifest.sample(1).length));
  const RunTally tally =
      bench.engine({.skip_errors = true})->run({.end = Duration{60ms}, .ramp = 50ms, .verify = true});
  EXPECT_GT(tally.wrong_samples, 0U);
  EXPECT_EQ(tally.errors, tally.wrong_samples);
}

TEST(ReadEngine, StopsWhenInterrupted) {
  EngineBench bench;
  const auto engine = bench.engine({.threads = {2}, .depth = 2});
  simulate_interrupt(SIGINT);
  const RunTally tally = engine->run({.threads = 2, .end = Passes{1h}});
  simulate_interrupt(0);
  EXPECT_EQ(tally.samples, 0U);
  EXPECT_FALSE(tally.failure);
}

TEST(ReadEngine, AReadThatAnInterruptCutsShortIsNoError) {
  for (const bool skip_errors : {false, true}) {
    auto scripted = std::make_unique<ScriptedBackend>();
    ScriptedBackend& below = *scripted;
    const Manifest manifest = scripted_files(below, kEngineFiles);
    const SampleList samples = corpus_samples(manifest).value();
    const auto slow = throttled(std::move(scripted), {.latency = 1h});
    const ReadOptions options{.threads = {2}, .skip_errors = skip_errors};
    const auto engine =
        ReadEngine::make({.manifest = &manifest, .samples = &samples, .backend = slow.get()}, options)
            .value();
    const std::jthread user([&below] {
      while (below.reads().empty()) std::this_thread::yield();
      simulate_interrupt(SIGINT);
    });
    const RunTally tally = engine->run({.threads = 2, .max_passes = 1});
    simulate_interrupt(0);
    EXPECT_FALSE(tally.failure);
    EXPECT_EQ(tally.errors, 0U);
    EXPECT_TRUE(tally.first_errors.empty());
  }
}

TEST(RunTally, AppendingAddsTimesAndMergesLatencies) {
  EngineBench bench(10);
  const auto engine = bench.engine({});
  RunTally sum = engine->run({.max_passes = 1});
  const RunTally second = engine->run({.max_passes = 2, .end = Passes{1h}});
  const double wall_s = sum.wall_s + second.wall_s;
  sum.append(second);
  EXPECT_EQ(sum.samples, 30U);
  EXPECT_EQ(sum.passes, 3U);
  EXPECT_EQ(sum.latency_ns.count(), 30U);
  EXPECT_DOUBLE_EQ(sum.wall_s, wall_s);
}

TEST(CorpusSamples, HoldWhatTheManifestSays) {
  EngineBench bench(100);
  ASSERT_EQ(bench.samples.size(), 100U);
  EXPECT_EQ(bench.samples.name(42), "s0042");
  EXPECT_EQ(bench.samples[42].length, bench.manifest.sample(42).length);
}

}  // namespace
}  // namespace penstock
