#include "miniapps/pipeline/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/faulty.hpp"
#include "miniapps/pipeline/loader_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

using Way = std::tuple<unsigned, uint64_t, size_t>;  // threads, prefetch, depth

std::vector<Way> every_way() {
  std::vector<Way> ways;
  for (const unsigned threads : {1U, 2U, 5U, 16U})
    for (const uint64_t prefetch : {0U, 1U, 4U})
      for (const size_t depth : {1U, 3U, 40U}) ways.emplace_back(threads, prefetch, depth);
  return ways;
}

TEST(BatchLoader, GivesTheSameBatchesWhateverTheThreads) {
  Indices first;
  for (const auto& [threads, prefetch, depth] : every_way()) {
    Pipe pipe(230, 16, prefetch);
    const auto loader = pipe.start({0, 2}, threads, BadSample::fail, Shuffle::global, depth);
    ASSERT_TRUE(loader.ok());
    const Indices batches = drain(**loader, pipe.manifest);
    EXPECT_EQ(batches.size(), 2U * 14U);
    if (first.empty()) first = batches;
    EXPECT_EQ(batches, first);
    EXPECT_EQ((*loader)->losses().dropped_tail, 2U * (230U - 14U * 16U));
  }
}

TEST(BatchLoader, UsesEverySampleAtMostOnceAnEpoch) {
  Pipe pipe(96, 8, 3);
  const auto loader = pipe.start({0, 2}, 4);
  ASSERT_TRUE(loader.ok());
  const Indices batches = drain(**loader, pipe.manifest);
  ASSERT_EQ(batches.size(), 24U);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    std::set<uint64_t> seen;
    for (size_t b = 0; b < 12; ++b)
      seen.insert(batches[epoch * 12 + b].begin(), batches[epoch * 12 + b].end());
    EXPECT_EQ(seen.size(), 96U);
  }
}

TEST(BatchLoader, ReadsRangesOfObjectsThatHoldManySamples) {
  ScriptedBackend scripted;
  const Manifest manifest = scripted_shards(scripted, 6);
  CopyingTransform app_transform;
  uint64_t read = 0;
  for (const size_t depth : {1U, 5U}) {
    BatchPool pool = BatchPool::make({7, kSlotBytes}, 2).value();
    const auto loader = BatchLoader::make({&manifest, &scripted, &app_transform, &pool,
                                           Sampler(manifest.samples(), Shuffle::global, 1), PlanLimits{0, 1},
                                           3, BadSample::fail, depth});
    ASSERT_TRUE(loader.ok());
    int batches = 0;
    while (true) {
      const Result<const Batch*> batch = (*loader)->next();
      ASSERT_TRUE(batch.ok());
      if (*batch == nullptr) break;
      ++batches;
    }
    EXPECT_EQ(batches, 8);
    EXPECT_EQ(scripted.moved_bytes().read - read, 8U * 7U * 10U);
    read = scripted.moved_bytes().read;
  }
}

TEST(BatchLoader, LeavesSamplesAsTheyAreStoredWithoutATransform) {
  for (const size_t depth : {1U, 5U}) {
    Pipe pipe(100, 8, 2);
    const auto as_stored = leave_as_stored();
    for (const char* name : {"s0004", "s0050", "s0095"}) pipe.scripted.fail_on(name);
    BatchPool pool = BatchPool::make({.samples = 8, .slot_bytes = 0, .stored_bytes = 50}, 2).value();
    const auto loader =
        BatchLoader::make({&pipe.manifest, &pipe.scripted, &as_stored, &pool,
                           Sampler(100, Shuffle::global, 1), PlanLimits{0, 3}, 3, BadSample::skip, depth});
    ASSERT_TRUE(loader.ok());
    uint64_t batches = 0;
    while (true) {
      const Result<const Batch*> batch = (*loader)->next();
      ASSERT_TRUE(batch.ok());
      if (*batch == nullptr) break;
      ++batches;
      for (size_t i = 0; i < 8; ++i) {
        const std::span<const std::byte> got = (*batch)->slot(i);
        const SampleEntry& entry = pipe.manifest.sample((*batch)->index[i]);
        ASSERT_EQ(got.size(), entry.length);
        EXPECT_EQ(crc32c(got), entry.crc32c);
      }
    }
    EXPECT_EQ(batches, 36U);
    ASSERT_EQ((*loader)->times().size(), 1U);
    EXPECT_EQ((*loader)->times().front().stage, "read");
  }
}

TEST(BatchLoader, OpensCompressedSamples) {
  if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
  const Field field{.name = "x", .codec = "raw", .extension = ".bin", .shape = {20}};
  const std::vector<TestSample> samples = test_samples({&field, 1}, 8);
  const Tier tier = open_tier("mem:loader-test", kNoNamedTiers).value();
  const auto format = format_of("tfrecord", {{"compression", "gzip"}});
  const MadeObject made = make_object(*tier.backend, *format, "shard", {&field, 1}, samples).value();
  ScriptedBackend scripted;
  const auto load = [&](std::vector<std::byte> bytes, BadSample bad) {
    scripted.put("shard", std::move(bytes));
    ManifestBuilder builder(ManifestFacts{.recipe = "scripted",
                                          .format = "tfrecord",
                                          .codec = "raw.tfrecord.gz",
                                          .settings = {},
                                          .label_names = {}});
    builder.add_object("shard", made.bytes);
    for (const Placement& at : made.placed) builder.add_sample({.offset = at.offset, .length = at.length});
    const Manifest manifest = Manifest::from_bytes(builder.finish().value()).value();
    CopyingTransform app_transform;
    BatchPool pool = BatchPool::make({8, kSlotBytes}, 0).value();
    const auto loader =
        BatchLoader::make({&manifest, &scripted, &app_transform, &pool,
                           Sampler(manifest.samples(), Shuffle::none, 1), PlanLimits{1, 0}, 2, bad});
    const Result<const Batch*> batch = (*loader)->next();
    if (!batch.ok()) return batch.error().message();
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ((*batch)->slot(i)[0], samples[i].fields[0][0]) << i;
      EXPECT_EQ((*batch)->slot(i)[1], std::byte{20});
      EXPECT_EQ((*batch)->length[i], made.placed[i].length) << "what was read";
    }
    return std::string();
  };
  std::vector<std::byte> bytes = content(*tier.backend, "shard");
  EXPECT_EQ(load(bytes, BadSample::fail), "");
  bytes[made.placed[3].offset + made.placed[3].length - 1] ^= std::byte{1};
  const std::string why = load(bytes, BadSample::fail);
  EXPECT_NE(why.find("shard"), std::string::npos) << why;
  EXPECT_NE(why.find("gzip"), std::string::npos) << why;
}

// Checks at the end of each step which objects' reads had started.
TEST(BatchLoader, WithoutPrefetchingNoSampleOfTheNextBatchBeginsBeforeTheStepEnds) {
  Pipe pipe(64, 8, 0);
  const auto loader = pipe.start({0, 1}, 4);
  ASSERT_TRUE(loader.ok());
  EXPECT_TRUE(pipe.scripted.reads().empty()) << "nothing begins before the first batch is asked for";
  for (size_t step = 0; step < 8; ++step) {
    const Result<const Batch*> batch = (*loader)->next();
    ASSERT_TRUE(batch.ok());
    ASSERT_NE(*batch, nullptr);
    // The step takes long enough for a forbidden read to start.
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ASSERT_EQ(pipe.scripted.reads().size(), (step + 1) * 8) << "at the end of step " << step;
  }
}

TEST(BatchLoader, ReadsAheadByThePrefetchDepthAndNoFurther) {
  constexpr size_t kDepth = 3;
  Pipe pipe(200, 5, kDepth);
  const auto loader = pipe.start({0, 1}, 4);
  ASSERT_TRUE(loader.ok());
  const auto settled_reads = [&](size_t expected) {
    while (pipe.scripted.reads().size() < expected) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return pipe.scripted.reads().size();
  };
  EXPECT_EQ(settled_reads(kDepth * 5), kDepth * 5) << "before anybody pulls";
  for (size_t step = 0; step < 20; ++step) {
    const Result<const Batch*> batch = (*loader)->next();
    ASSERT_TRUE(batch.ok());
    const size_t expected = (step + 1 + kDepth) * 5;
    EXPECT_EQ(settled_reads(expected), expected) << "during step " << step;
  }
}

TEST(BatchLoader, FailsWithTheNameOfTheBadSample) {
  for (const uint64_t prefetch : {0U, 4U}) {
    Pipe pipe(60, 6, prefetch);
    pipe.scripted.fail_on("s0041");
    const auto loader = pipe.start({0, 0}, 3);
    ASSERT_TRUE(loader.ok());
    Result<const Batch*> batch = static_cast<const Batch*>(nullptr);
    do batch = (*loader)->next();
    while (batch.ok());
    EXPECT_EQ(batch.error().code, Errc::io);
    EXPECT_NE(batch.error().what.find("s0041"), std::string::npos);
    EXPECT_FALSE((*loader)->next().ok()) << "it keeps saying so";
  }
}

TEST(BatchLoader, NamesTheSampleThatTheTransformRefuses) {
  Pipe pipe(60, 6, 2);
  pipe.app_transform.refused_lengths = {18};
  const auto loader = pipe.start({0, 1}, 2);
  ASSERT_TRUE(loader.ok());
  Result<const Batch*> batch = static_cast<const Batch*>(nullptr);
  do batch = (*loader)->next();
  while (batch.ok());
  EXPECT_EQ(batch.error().code, Errc::corrupt);
  EXPECT_EQ(batch.error().what, "cannot use 's0017': not a picture");
}

TEST(BatchLoader, SkipsAndReplacesDeterministically) {
  Indices first;
  for (const unsigned threads : {1U, 4U, 9U}) {
    Pipe pipe(120, 10, 2);
    pipe.app_transform.refused_lengths = {3, 50};
    pipe.scripted.fail_on("s0007");
    const auto loader = pipe.start({0, 1}, threads, BadSample::skip);
    ASSERT_TRUE(loader.ok());
    const Indices batches = drain(**loader, pipe.manifest);
    if (first.empty()) first = batches;
    EXPECT_EQ(batches, first);
    const LoaderLosses losses = (*loader)->losses();
    EXPECT_EQ(batches.size() * 10 + losses.skipped + losses.dropped_tail, 120U);
    EXPECT_GE(losses.skipped, 3U);
    EXPECT_EQ(losses.named.size(), losses.skipped);
    for (const auto& batch : batches)
      for (const uint64_t index : batch) EXPECT_NE(index, 7U);
  }
}

// At the end of an epoch, samples of a later batch fill the gaps of an earlier one.
TEST(BatchLoader, ManyBadSamplesCostOnlyThemselves) {
  for (const uint64_t prefetch : {0U, 3U, 10U}) {
    Pipe pipe(200, 20, prefetch);
    for (uint64_t i = 0; i < 200; i += 8) {
      const std::string digits = std::to_string(i);
      pipe.scripted.fail_on("s" + std::string(4 - digits.size(), '0') + digits);
    }
    const auto loader = pipe.start({0, 1}, 3, BadSample::skip);
    ASSERT_TRUE(loader.ok());
    EXPECT_EQ(drain(**loader, pipe.manifest).size(), 175U / 20) << "prefetch " << prefetch;
    EXPECT_GT((*loader)->losses().skipped, 20U);
  }
}

TEST(BatchLoader, SurvivesAFlakyTier) {
  Pipe pipe(400, 8, 3);
  ScriptedBackend inner;
  const Manifest manifest = scripted_files(inner, 400);
  auto inner_owned = std::make_unique<ScriptedBackend>();
  static_cast<void>(scripted_files(*inner_owned, 400));
  const std::unique_ptr<Backend> flaky =
      faulty(std::move(inner_owned), parse_faults("read:eio@0.05").value(), 5);
  pipe.backend = flaky.get();
  const auto loader = pipe.start({0, 1}, 4, BadSample::skip);
  ASSERT_TRUE(loader.ok());
  const Indices batches = drain(**loader, pipe.manifest);
  const LoaderLosses losses = (*loader)->losses();
  EXPECT_GT(losses.skipped, 0U);
  EXPECT_EQ(batches.size() * 8 + losses.skipped + losses.dropped_tail, 400U);
}

TEST(BatchLoader, ReportsAnEpochWithoutGoodSamples) {
  for (const uint64_t prefetch : {0U, 1U, 5U}) {
    Pipe pipe(50, 8, prefetch);
    for (size_t length = 1; length <= 97; ++length) pipe.app_transform.refused_lengths.insert(length);
    const auto loader = pipe.start({1000, 0}, 3, BadSample::skip);
    ASSERT_TRUE(loader.ok());
    const Result<const Batch*> batch = (*loader)->next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().code, Errc::corrupt);
    EXPECT_NE(batch.error().what.find("not a picture"), std::string::npos);
    EXPECT_LE(pipe.app_transform.applied.load(), 100U) << "it does not go round for ever";
  }
}

TEST(BatchLoader, NamesADamagedShardOnceAndCountsItsSamples) {
  for (const unsigned threads : {1U, 4U}) {
    Pipe pipe(2, 1, 1);
    pipe.manifest = scripted_shards(pipe.scripted, 3);  // of ten samples each
    pipe.scripted.put("shardb", std::vector<std::byte>(25));
    pipe.scripted.fail_on("shardc");
    const auto loader = pipe.start({0, 1}, threads, BadSample::skip);
    ASSERT_TRUE(loader.ok());
    while (true) {
      const Result<const Batch*> batch = (*loader)->next();
      ASSERT_TRUE(batch.ok()) << batch.error().message();
      if (*batch == nullptr) break;
    }
    LoaderLosses losses = (*loader)->losses();
    EXPECT_EQ(losses.skipped, 18U);
    ASSERT_EQ(losses.named.size(), 2U);
    if (losses.named[0].name == "shardc") std::swap(losses.named[0], losses.named[1]);
    EXPECT_EQ(losses.named[0].name, "shardb");
    EXPECT_FALSE(losses.named[0].is_one_sample);
    EXPECT_EQ(losses.named[0].samples, 8U);
    EXPECT_EQ(losses.named[0].offset, 20U) << "the first that it lacks bytes of";
    EXPECT_NE(losses.named[0].why.find("'shardb' ends"), std::string::npos) << losses.named[0].why;
    EXPECT_EQ(losses.named[1].samples, 10U);
    EXPECT_EQ(losses.named[1].offset, 0U);
  }
}

TEST(BatchLoader, MissingAndShrunkObjectsAreSampleErrors) {
  Pipe pipe(44, 2, 1);
  ScriptedBackend other;
  static_cast<void>(scripted_files(other, 39));
  other.put("s0003", std::vector<std::byte>(1));
  pipe.backend = &other;
  const auto loader = pipe.start({0, 1}, 1, BadSample::skip, Shuffle::none);
  ASSERT_TRUE(loader.ok());
  static_cast<void>(drain(**loader, pipe.manifest));
  const LoaderLosses losses = (*loader)->losses();
  ASSERT_GE(losses.named.size(), 2U);
  EXPECT_NE(losses.named[0].why.find("s0003"), std::string::npos);
  EXPECT_NE(losses.named[1].why.find("s0039"), std::string::npos);
}

TEST(BatchLoader, ABugIsNotCountedAsABadSample) {
  Pipe pipe(40, 4, 1);
  pipe.app_transform.throws = true;
  const auto loader = pipe.start({0, 1}, 2, BadSample::skip);
  ASSERT_TRUE(loader.ok());
  const Result<const Batch*> batch = (*loader)->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Errc::internal);
}

TEST(BatchLoader, StopsWhenItIsDestroyedInTheMiddle) {
  for (int round = 0; round < 20; ++round) {
    Pipe pipe(500, 16, uint64_t(round % 4));
    auto loader = pipe.start({0, 0}, 4);
    ASSERT_TRUE(loader.ok());
    for (int i = 0; i < round % 5; ++i) ASSERT_TRUE((*loader)->next().ok());
  }
}

TEST(BatchLoader, DestroyedWithAFullQueueAndNoConsumer) {
  Pipe pipe(500, 4, 2);
  auto loader = pipe.start({0, 0}, 3);
  ASSERT_TRUE(loader.ok());
  while (pipe.app_transform.applied.load() < 8) std::this_thread::yield();
  loader->reset();
  EXPECT_EQ(pipe.app_transform.applied.load(), 8U) << "two batches ahead and then nothing";
}

TEST(BatchLoader, DestroyedWhileSamplesAreLoaded) {
  Pipe pipe(500, 4, 2);
  pipe.app_transform.close_gate();
  auto loader = pipe.start({0, 0}, 3);
  ASSERT_TRUE(loader.ok());
  while (pipe.scripted.reads().size() < 3) std::this_thread::yield();
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pipe.app_transform.open_gate();
  });
  loader->reset();
  EXPECT_LE(pipe.app_transform.applied.load(), 8U);
}

TEST(BatchLoader, GivesUpWaitingWhenInterrupted) {
  Pipe pipe(100, 4, 2);
  pipe.app_transform.close_gate();
  const auto loader = pipe.start({0, 0}, 2);
  ASSERT_TRUE(loader.ok());
  std::jthread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    simulate_interrupt(SIGINT);
  });
  const Result<const Batch*> batch = (*loader)->next();
  user.join();
  simulate_interrupt(0);
  pipe.app_transform.open_gate();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Errc::interrupted);
}

TEST(BatchLoader, RefusesAnEpochSmallerThanABatch) {
  Pipe pipe(5, 6, 1);
  const auto loader = pipe.start({0, 1}, 1);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, Errc::invalid_argument);
  EXPECT_NE(loader.error().what.find("--batch 5"), std::string::npos);
}

TEST(BatchLoader, TimesOfEachStageAddUpToTheWorkersTime) {
  Pipe pipe(400, 10, 2);
  const auto loader = pipe.start({0, 1}, 3);
  ASSERT_TRUE(loader.ok());
  static_cast<void>(drain(**loader, pipe.manifest));
  const std::vector<StageTally> times = (*loader)->times();
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0].stage, "read");
  EXPECT_EQ(times[1].stage, "decode");
  EXPECT_EQ(times[2].stage, "resize");
  const double total = times[0].busy_s + times[0].starved_s + times[0].blocked_s;
  EXPECT_GT(total, 0);
  EXPECT_EQ(times[0].starved_s, 0);
  for (const StageTally& stage : times) {
    EXPECT_GT(stage.busy_s, 0) << stage.stage;
    EXPECT_NEAR(stage.busy_s + stage.starved_s + stage.blocked_s, total, 1e-9) << stage.stage;
  }
}

TEST(BatchLoader, ReportsTheCausesOfWaits) {
  for (const uint64_t prefetch : {0U, 2U}) {
    Pipe pipe(16, 8, prefetch);
    pipe.app_transform.close_gate();
    const auto begin = std::chrono::steady_clock::now();
    const auto loader = pipe.start({0, 1}, 2);
    ASSERT_TRUE(loader.ok());
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      pipe.app_transform.open_gate();
    });
    EXPECT_EQ(drain(**loader, pipe.manifest).size(), 2U);
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::vector<std::string> names;
    double sum = 0;
    double decode = 0;
    for (const LostTime& part : (*loader)->lost_times()) {
      names.push_back(part.cause);
      EXPECT_GE(part.seconds, 0) << part.cause;
      sum += part.seconds;
      if (part.cause == "decode") decode = part.seconds;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"read", "decode", "resize", "collate", "queue"}));
    EXPECT_GT(decode, 0) << "they stood at the gate there";
    EXPECT_LE(sum, wall_s);
  }
}

TEST(BatchPool, HasTheMemoryOfStoredSamplesBeforeAnyIsRead) {
  BatchPool pool = BatchPool::make({.samples = 3, .slot_bytes = 0, .stored_bytes = 5000}, 1).value();
  ASSERT_EQ(pool.size(), 2U);
  for (size_t i = 0; i < pool.size(); ++i) {
    ASSERT_EQ(pool[i].stored.size(), 3U);
    for (const StoredSample& sample : pool[i].stored) EXPECT_EQ(sample.memory.capacity(), 8192U);
  }
}

TEST(BatchPool, RefusesMoreMemoryThanTheMachineHas) {
  for (const uint64_t prefetch : {uint64_t{1} << 40U, UINT64_MAX}) {
    const Result<BatchPool> pool = BatchPool::make({64, size_t{602112}}, prefetch);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.error().code, Errc::exhausted);
    EXPECT_NE(pool.error().what.find("--prefetch"), std::string::npos);
  }
}

TEST(Loader, ReportsAStuckBackEndAfterItsPatience) {
  Pipe pipe(20, 4, 2);
  pipe.app_transform.close_gate();  // like a call that does not return
  LoaderSettings settings = pipe.settings(Sampler(20, Shuffle::none, 7), {}, 2);
  settings.patience = 50ms;
  const auto loader = BatchLoader::make(settings).value();
  EXPECT_FALSE(loader->stalled());
  const Result<const Batch*> batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Errc::timed_out);
  EXPECT_NE(batch.error().what.find("50 ms"), std::string::npos) << batch.error().what;
  EXPECT_NE(batch.error().what.find("'s000"), std::string::npos) << batch.error().what;
  EXPECT_TRUE(loader->stalled());
  EXPECT_FALSE(loader->close(1ms)) << "its workers hang";
  pipe.app_transform.open_gate();
  EXPECT_TRUE(loader->close(60s));
}

TEST(Loader, ASlowConsumerIsNotAStuckBackEnd) {
  Pipe pipe(20, 4, 8);  // the whole epoch may be prepared ahead
  LoaderSettings settings = pipe.settings(Sampler(20, Shuffle::none, 7), {.epochs = 1}, 1);
  settings.patience = 100ms;
  const auto loader = BatchLoader::make(settings).value();
  while (pipe.app_transform.applied < 20) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(300ms);
  for (int i = 0; i < 5; ++i) ASSERT_NE(loader->next().value(), nullptr);
  EXPECT_EQ(loader->next().value(), nullptr);
  EXPECT_FALSE(loader->stalled());
  EXPECT_TRUE(loader->close(60s));
}
}  // namespace
}  // namespace penstock
