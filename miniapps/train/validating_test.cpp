#include "miniapps/train/validating.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr size_t kSampleBytes = 8;

class CopySampleTransform final : public SampleTransform {
 public:
  explicit CopySampleTransform(std::vector<uint64_t>& epochs) : epochs_(epochs) {}
  Result<void> apply(const SampleKey& key, std::span<const std::byte> stored, std::span<std::byte> slot,
                     StageTimer& timer) override {
    {
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      epochs_.push_back(key.epoch);
    }
    std::copy(stored.begin(), stored.end(), slot.begin());
    timer.end_part(kFirstOwnPart);
    return success();
  }

 private:
  std::vector<uint64_t>& epochs_;
};

// Copies files unchanged. Adds to `epochs` the epoch in which each file is read; it decides the order of the
// samples in the file.
Transform copy_transform(size_t bytes, std::vector<uint64_t>& epochs) {
  static constexpr std::array<std::string_view, 1> kStages{"copy"};
  return {.slot_bytes = bytes,
          .layout = "test",
          .stages = kStages,
          .make = [&epochs]() -> Result<std::unique_ptr<SampleTransform>> {
            return std::make_unique<CopySampleTransform>(epochs);
          }};
}

// A corpus of `files` validation files with `samples_per_file` samples each.
struct ValidationData {
  ScriptedBackend backend;
  Manifest samples;

  ValidationData(uint64_t files, uint32_t samples_per_file) : samples(fill(files, samples_per_file)) {}

  Manifest fill(uint64_t files, uint32_t samples_per_file) {
    ManifestBuilder builder(ManifestFacts{});
    for (uint64_t file = 0; file < files; ++file) {
      const std::string name = "v" + std::to_string(file);
      backend.put(name,
                  std::vector<std::byte>(samples_per_file * kSampleBytes, static_cast<std::byte>(file)));
      const uint32_t object = builder.add_object(name, samples_per_file * kSampleBytes);
      for (uint32_t i = 0; i < samples_per_file; ++i)
        builder.add_sample({.offset = i * kSampleBytes, .length = kSampleBytes, .object = object});
    }
    return Manifest::from_bytes(builder.finish().value()).value();
  }

  std::vector<uint64_t> passes_read() const { return passes_; }
  void forget_passes() { passes_.clear(); }

  Validation validation() {
    WholeObjects files = whole_objects(samples).value();
    Transform app_transform = copy_transform(files.largest_sample_count() * kSampleBytes, passes_);
    return {.set = {.files = std::move(files),
                    .app_transform = std::move(app_transform),
                    .sample_bytes = kSampleBytes}};
  }
  std::unique_ptr<Validating> start(const Validation& how, const ValidatingSettings& settings) {
    return Validating::make(how, backend, samples, "none", settings).value();
  }

 private:
  std::vector<uint64_t> passes_;  // the pass in which each file was read, in reading order (with one worker)
};

// The first batch of training epoch `epoch`.
Batch batch_of_epoch(uint64_t epoch) {
  Batch batch;
  batch.epoch = epoch;
  return batch;
}

TEST(Validating, IsDueWhenAnEpochIsOver) {
  ValidationData data(3, 4);
  const Validation how = data.validation();
  const auto validating = data.start(how, {.batch = 2});
  const Batch first = batch_of_epoch(0);
  const Batch second = batch_of_epoch(1);
  EXPECT_FALSE(validating->before_step(0, &first).value());
  EXPECT_FALSE(validating->before_step(1, &first).value());
  EXPECT_TRUE(data.backend.reads().empty());
  EXPECT_TRUE(validating->before_step(2, &second).value());
  EXPECT_FALSE(validating->before_step(3, &second).value());
  EXPECT_FALSE(validating->before_step(4, nullptr).value()) << "no other epoch follows";
  const ValidationFigures figures = validating->figures();
  EXPECT_EQ(figures.passes, 1U);
  EXPECT_EQ(figures.samples, 12U);
  EXPECT_EQ(figures.bytes, 12 * kSampleBytes);
  EXPECT_GT(figures.read_s, 0.0);
}

TEST(Validating, HasReadTheFirstFileOfTheNextPass) {
  for (const uint64_t prefetch : {0U, 1U}) {
    ValidationData data(3, 4);
    Validation how = data.validation();
    how.at_the_end = true;
    const auto validating = data.start(how, {.batch = 8, .prefetch = prefetch});
    const std::array<Batch, 3> epochs{batch_of_epoch(0), batch_of_epoch(1), batch_of_epoch(2)};
    for (uint64_t i = 0; i < epochs.size(); ++i) ASSERT_OK(validating->before_step(i, &epochs[size_t(i)]));
    ASSERT_OK(validating->before_step(3, nullptr));
    EXPECT_EQ(validating->figures().passes, 3U);
    EXPECT_EQ(validating->figures().files, 3 * 3 + 1U) << "prefetch " << prefetch;
    EXPECT_EQ(validating->figures().samples, 3 * 8U) << "what fills no batch is left out";
  }
}

// A checkpoint is saved after a step and before the validation that follows the step.
TEST(Validating, ContinuesAfterAResume) {
  const std::array<Batch, 4> epochs{batch_of_epoch(0), batch_of_epoch(1), batch_of_epoch(2),
                                    batch_of_epoch(3)};
  ValidationData data(3, 4);
  const Validation how = data.validation();
  const auto whole = data.start(how, {.batch = 4});
  for (uint64_t i = 0; i < epochs.size(); ++i) ASSERT_OK(whole->before_step(i, &epochs[size_t(i)]));
  ASSERT_EQ(whole->figures().passes, 3U);
  const std::vector<uint64_t> in_whole = data.passes_read();
  data.forget_passes();
  // The run has one step per epoch, and was saved after the second step.
  const auto rest = data.start(how, {.batch = 4, .made_steps = 2, .epoch = 1});
  ASSERT_OK(rest->before_step(0, &epochs[2]));
  EXPECT_EQ(rest->figures().passes, 1U);
  ASSERT_OK(rest->before_step(1, &epochs[3]));
  EXPECT_EQ(rest->figures().passes, 2U);
  EXPECT_EQ(data.passes_read(), std::vector<uint64_t>(in_whole.begin() + 3, in_whole.end()))
      << "each file in the order that it has in that pass";
}

TEST(Validating, ByStepsContinuesAfterAResume) {
  ValidationData data(3, 1);
  Validation how = data.validation();
  how.every_steps = 10;
  how.at_the_end = how.reload_each_pass = true;
  const auto rest = data.start(how, {.batch = 1, .made_steps = 20, .epoch = 0});
  const Batch batch = batch_of_epoch(0);
  for (uint64_t step = 0; step < 15; ++step)
    EXPECT_EQ(rest->before_step(step, &batch).value(), step == 0 || step == 10) << step;
  EXPECT_TRUE(rest->before_step(15, nullptr).value());
  const auto nothing = data.start(how, {.batch = 1, .made_steps = 20, .epoch = 0});
  EXPECT_FALSE(nothing->before_step(0, nullptr).value()) << "nothing was trained since";
}

TEST(Validating, WithReloadLoadsAllFilesInEachPass) {
  ValidationData data(3, 1);
  Validation how = data.validation();
  how.every_steps = 10;
  how.at_the_end = how.reload_each_pass = true;
  const auto validating = data.start(how, {.batch = 1, .prefetch = 2, .threads = 2});
  const Batch batch = batch_of_epoch(0);
  for (uint64_t step = 0; step < 29; ++step)
    EXPECT_EQ(validating->before_step(step, &batch).value(), step == 10 || step == 20) << step;
  EXPECT_TRUE(validating->before_step(29, nullptr).value());
  EXPECT_EQ(validating->figures().files, 9U);
  EXPECT_EQ(data.backend.reads().size(), 9U);
  EXPECT_EQ(validating->figures().samples, 9U);
}

TEST(Validating, RanksShareTheFiles) {
  ValidationData data(5, 2);
  const Validation how = data.validation();
  std::vector<std::string> read;
  for (int rank = 0; rank < 2; ++rank) {
    data.backend.forget_reads();
    const auto validating = data.start(how, {.batch = 100, .rank = rank, .ranks = 2});
    const Batch first = batch_of_epoch(0);
    const Batch second = batch_of_epoch(1);
    ASSERT_OK(validating->before_step(0, &first));
    ASSERT_OK(validating->before_step(1, &second));
    EXPECT_EQ(validating->figures().samples, 4U) << "batches are as small as a pass";
    const std::vector<std::string> mine = data.backend.reads();
    read.insert(read.end(), mine.begin(), mine.begin() + 2);
  }
  EXPECT_EQ(read, (std::vector<std::string>{"v0", "v2", "v1", "v3"}));
  const auto none = Validating::make(how, data.backend, data.samples, "none", {.rank = 0, .ranks = 6});
  EXPECT_ERRC(Errc::invalid_argument, none, "too few for 6 ranks");
}

TEST(Validating, ABadFileFailsOrIsSkipped) {
  ValidationData data(3, 2);
  data.backend.fail_on("v1");
  const Validation how = data.validation();
  const Batch first = batch_of_epoch(0);
  const Batch second = batch_of_epoch(1);
  const auto failing = data.start(how, {.batch = 2});
  ASSERT_OK(failing->before_step(0, &first));
  EXPECT_FALSE(failing->before_step(1, &second).ok());
  const auto skipping = data.start(how, {.batch = 2, .bad_sample = BadSample::skip});
  ASSERT_OK(skipping->before_step(0, &first));
  ASSERT_OK(skipping->before_step(1, &second));
  EXPECT_EQ(skipping->figures().samples, 4U);
  EXPECT_EQ(skipping->losses().skipped, 1U);
  ASSERT_EQ(skipping->losses().named.size(), 1U);
  EXPECT_NE(skipping->losses().named[0].why.find("v1"), std::string::npos);
}

// Samples that were read ahead since the previous pass do not make the steps of a pass start earlier.
TEST(Validating, PassesTakeTheirTime) {
  using namespace std::chrono_literals;
  ValidationData data(2, 4);
  const Validation how = data.validation();
  const auto validating =
      Validating::make(how, data.backend, data.samples, "emulated:step=4ms", {.batch = 4, .prefetch = 1})
          .value();
  const std::array<Batch, 3> epochs{batch_of_epoch(0), batch_of_epoch(1), batch_of_epoch(2)};
  ASSERT_OK(validating->before_step(0, &epochs[0]));
  ASSERT_OK(validating->before_step(1, &epochs[1]));
  std::this_thread::sleep_for(20ms);
  const auto since = std::chrono::steady_clock::now();
  ASSERT_OK(validating->before_step(2, &epochs[2]));
  EXPECT_GE(std::chrono::steady_clock::now() - since, 8ms);
}

}  // namespace
}  // namespace penstock
