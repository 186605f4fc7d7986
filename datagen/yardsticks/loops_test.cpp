// Tests the baseline loop and the probes: they read exactly the bytes that they report, and stop when asked.
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "datagen/yardsticks/baseline.hpp"
#include "datagen/yardsticks/ceiling.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

constexpr uint64_t kObjects = 40;

class Loops : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto tier = open_tier("t=posix:" + scratch_.path().string() + "/root" + GetParam(), kNoNamedTiers);
    ASSERT_OK(tier);
    tier_ = *std::move(tier);
    for (uint64_t i = 0; i < kObjects; ++i) {
      const std::string name = "objects/" + std::to_string(i);
      auto writer = backend().create(name);
      ASSERT_OK(writer);
      ASSERT_OK((*writer)->append(pattern(bytes_of_object(i))));
      ASSERT_OK((*writer)->publish(Durability::visible));
      whole_.add(name, bytes_of_object(i));
      const uint32_t object = ranges_.add_object(name);
      for (uint64_t offset = 0; offset < bytes_of_object(i); offset += 1'000)
        ranges_.add_sample({offset, 1'000, object});
    }
  }
  static uint64_t bytes_of_object(uint64_t i) { return 1'000 * (i % 7 + 1); }
  Backend& backend() { return *tier_.backend; }
  uint64_t bytes_read() { return backend().moved_bytes().read; }

  ScratchFolder scratch_;
  Tier tier_;
  SampleList whole_;
  SampleList ranges_;
};

std::vector<LoopShape> every_shape() {
  return {{LoopKind::blocking, 1},  {LoopKind::blocking, 4},  {LoopKind::readahead, 1},
          {LoopKind::readahead, 3}, {LoopKind::queued, 1, 8}, {LoopKind::queued, 2, 3}};
}

Result<LoopDone> ceiling_read(const ReadPlan& plan, const LoopShape& shape, const LoopEnd& end) {
  return CeilingLoop(plan, shape).run(end);
}

TEST_P(Loops, OnePassReadsEverySampleOnce) {
  for (const LoopShape& shape : every_shape()) {
    const ReadPlan plan{whole_, backend(), true, {}};
    const auto done = ceiling_read(plan, shape, {.samples = whole_.size()});
    ASSERT_OK(done) << shape.name();
    EXPECT_EQ(done->samples, kObjects) << shape.name();
    EXPECT_EQ(done->bytes, whole_.bytes()) << shape.name();
  }
}

TEST_P(Loops, RangesAreReadFromOpenObjects) {
  auto shapes = every_shape();
  shapes.push_back({LoopKind::streamed, 1});
  shapes.push_back({LoopKind::streamed, 3});
  for (const LoopShape& shape : shapes) {
    const ReadPlan plan{ranges_, backend(), false, {}};
    const auto done = ceiling_read(plan, shape, {.samples = ranges_.size()});
    ASSERT_OK(done) << shape.name();
    EXPECT_EQ(done->samples, ranges_.size()) << shape.name();
    EXPECT_EQ(done->bytes, ranges_.bytes()) << shape.name();
  }
}

TEST_P(Loops, RangesOfMoreObjectsThanDescriptorsAreReadToo) {
  EXPECT_TRUE(in_child_process([&] {
    const struct rlimit limit { 64, 64 };
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_LT(max_open_objects(kObjects), kObjects);
    const ReadPlan plan{ranges_, backend(), false, {}};
    for (const LoopShape& shape : every_shape()) {
      const auto done = ceiling_read(plan, shape, {.samples = ranges_.size()});
      ASSERT_OK(done) << shape.name();
      EXPECT_EQ(done->bytes, ranges_.bytes()) << shape.name();
    }
  }));
}

TEST_P(Loops, AStreamReadsAsMuchAsItReports) {
  SampleList large;
  auto writer = backend().create("large");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(5'000'000)));
  ASSERT_OK((*writer)->publish(Durability::visible));
  const uint32_t object = large.add_object("large");
  for (uint64_t i = 0; i < 100; ++i) large.add_sample({i * 50'000, 50'000, object});
  const uint64_t before = bytes_read();
  const auto done = ceiling_read({large, backend(), false, {}}, {LoopKind::streamed, 1}, {.samples = 100});
  ASSERT_OK(done);
  EXPECT_EQ(done->bytes, 5'000'000U);
  EXPECT_LE(bytes_read() - before, 5'000'000U);
  EXPECT_GE(bytes_read() - before, 4'000'000U) << "all but a last part of a block";
}

TEST_P(Loops, FollowsTheOrderAndWrapsAround) {
  std::vector<uint64_t> read_numbers;
  const ReadPlan plan{whole_, backend(), true, [&](uint64_t n) {
                        read_numbers.push_back(n);
                        return kObjects - 1 - n;
                      }};
  const auto done = baseline_read(plan, 1, {.first_read = kObjects - 2, .samples = 5});
  ASSERT_OK(done);
  EXPECT_EQ(read_numbers, (std::vector<uint64_t>{kObjects - 2, kObjects - 1, 0, 1, 2}));
  EXPECT_EQ(done->bytes, bytes_of_object(1) + bytes_of_object(0) + bytes_of_object(39) + bytes_of_object(38) +
                             bytes_of_object(37));
}

TEST_P(Loops, EndsAtTheDeadlineAndAfterAnInterrupt) {
  const ReadPlan plan{whole_, backend(), true, {}};
  for (const LoopShape& shape : every_shape()) {
    const auto ended = ceiling_read(plan, shape, {.deadline = std::chrono::steady_clock::now()});
    ASSERT_OK(ended);
    EXPECT_LE(ended->samples, 64U) << shape.name();
    simulate_interrupt(2);
    EXPECT_OK(ceiling_read(plan, shape, {})) << shape.name();
    simulate_interrupt(0);
  }
}

TEST_P(Loops, AReadThatAnInterruptCutsShortIsNoError) {
  auto slow = open_tier("t=posix:" + scratch_.path().string() + "/root,latency=3600s", kNoNamedTiers);
  ASSERT_OK(slow);
  Backend& backend = *slow->backend;
  const std::jthread user([&] {
    while (backend.moved_bytes().read == 0) std::this_thread::yield();
    simulate_interrupt(2);
  });
  const ReadPlan plan{whole_, backend, true, {}};
  EXPECT_OK(baseline_read(plan, 2, {}));
  simulate_interrupt(0);
}

TEST_P(Loops, TheFirstErrorEndsAllThreadsAndIsReported) {
  std::filesystem::resize_file(*backend().native_path("objects/20"), 10);
  const ReadPlan plan{whole_, backend(), true, {}};
  for (const LoopShape& shape : every_shape()) {
    const auto done = ceiling_read(plan, shape, {});
    EXPECT_ERRC(Errc::truncated, done) << shape.name();
    EXPECT_NE(done.error().what.find("objects/20"), std::string::npos) << done.error().what;
  }
  ASSERT_OK(backend().names().remove("objects/20"));
  for (const LoopShape& shape : every_shape()) EXPECT_ERRC(Errc::not_found, ceiling_read(plan, shape, {}));
}

TEST_P(Loops, TooManyThreadsAreAnErrorNotACrash) {
  EXPECT_TRUE(as_plain_user([&] {
    const struct rlimit limit { 1, 1 };
    ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &limit), 0);
    const ReadPlan plan{whole_, backend(), true, {}};
    EXPECT_ERRC(Errc::exhausted, baseline_read(plan, 3, {}));
    EXPECT_ERRC(Errc::exhausted, deep_queue(backend(), 3));
  }));
}

TEST_P(Loops, ASampleThatNoMemoryHoldsIsAnErrorNotACrash) {
  SampleList absurd;
  absurd.add("objects/0", UINT64_MAX);
  for (const LoopShape& shape : every_shape())
    EXPECT_ERRC(Errc::exhausted, ceiling_read({absurd, backend(), true, {}}, shape, {})) << shape.name();
}

class SlowQueues final : public BackendWrapper {
 public:
  static constexpr std::chrono::milliseconds kDelay{300};
  using BackendWrapper::BackendWrapper;
  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override {
    std::this_thread::sleep_for(kDelay);
    return thread_pool_queue(inner(), depth);
  }

 private:
  const Caps caps_{.async = true};
};

TEST_P(Loops, MakingQueuesIsNoPartOfReading) {
  SlowQueues slow(std::move(tier_.backend));
  const auto start = std::chrono::steady_clock::now();
  const auto done = ceiling_read({whole_, slow, true, {}}, {LoopKind::queued, 1, 8},
                                 {.samples = kObjects, .deadline = start + SlowQueues::kDelay * 2 / 3});
  ASSERT_OK(done);
  EXPECT_GE(done->queue_setup_time, SlowQueues::kDelay);
  EXPECT_LT(done->queue_setup_time, std::chrono::steady_clock::now() - start);
  EXPECT_EQ(done->samples, kObjects) << "its end is as much later";
}

TEST_P(Loops, NothingToReadIsNothingRead) {
  const SampleList none;
  for (const LoopShape& shape : every_shape()) {
    const auto done = ceiling_read({none, backend(), true, {}}, shape, {});
    ASSERT_OK(done);
    EXPECT_EQ(done->samples, 0U);
  }
  const auto streamed = ceiling_read({none, backend(), false, {}}, {LoopKind::streamed, 2}, {});
  ASSERT_OK(streamed);
  EXPECT_EQ(streamed->samples, 0U);
}

TEST_P(Loops, TheProbeSeriesBeginsWithTheBaselineAndFitsTheTier) {
  const bool emulated = !GetParam().empty();
  for (const bool whole : {true, false}) {
    const auto probe_series = ceiling_probes({whole ? whole_ : ranges_, backend(), whole, {}}, 4);
    ASSERT_FALSE(probe_series.empty());
    EXPECT_LE(probe_series.size(), 5U);
    EXPECT_EQ(probe_series[0].name(), "blocking.4");
    const auto has = [&](const std::string& name) {
      return std::any_of(probe_series.begin(), probe_series.end(),
                         [&](const LoopShape& shape) { return shape.name() == name; });
    };
    EXPECT_TRUE(has("blocking.16"));
    EXPECT_EQ(has("readahead.4"), whole && !emulated) << "an emulated tier is not gone round";
    EXPECT_EQ(has("streamed.4"), !whole);
    EXPECT_EQ(has("queued.4x16"), emulated);
  }
  EXPECT_EQ(can_use_system_calls(backend()), !emulated);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Loops, testing::Values("", ",latency=1us"),
                         [](const auto& row) { return row.param.empty() ? "plain" : "emulated"; });

}  // namespace
}  // namespace penstock
