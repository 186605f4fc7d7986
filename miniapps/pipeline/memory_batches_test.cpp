#include "miniapps/pipeline/memory_batches.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr size_t kBytes = 16;

// Delivers samples 0 to `count` - 1, one per batch. Fails at sample `bad`.
class SampleSource final : public BatchSource {
 public:
  explicit SampleSource(uint64_t count, uint64_t bad = UINT64_MAX) : count_(count), bad_(bad) {
    sample_.index.resize(1);
    sample_.label.resize(1);
    sample_.length.resize(1);
    sample_.slot_bytes = kBytes;
    sample_.memory.grow(kBytes);
  }

  Result<const Batch*> next() override {
    if (given_ == bad_) return make_error(Errc::corrupt, "sample 3 is bad");
    if (given_ == count_) return static_cast<const Batch*>(nullptr);
    std::memset(sample_.memory.data(), int(given_), kBytes);
    sample_.index[0] = given_;
    sample_.label[0] = uint32_t(given_ + 100);
    sample_.length[0] = 7;
    ++given_;
    return static_cast<const Batch*>(&sample_);
  }
  std::vector<StageTally> times() const override { return {}; }
  LoaderLosses losses() const override { return {}; }
  std::vector<LostTime> lost_times() const override { return {{"read", 1}, {"collate", 0}}; }
  bool close(std::chrono::nanoseconds) override { return true; }
  bool stalled() const override { return false; }

 private:
  const uint64_t count_;
  const uint64_t bad_;
  uint64_t given_ = 0;
  Batch sample_;
};

BatchPool pool_for(uint64_t samples, size_t batch) {
  BatchPool pool = BatchPool::make({.samples = 1, .slot_bytes = kBytes}, 0).value();
  EXPECT_TRUE(pool.allocate_all_samples(samples, batch).ok());
  return pool;
}

// A source of batches, with the pool that it borrows.
struct Batches {
  BatchPool pool;
  std::unique_ptr<BatchSource> batches;

  Batches(std::unique_ptr<BatchSource> source, uint64_t samples, size_t batch, const PlanLimits& limits,
          std::function<Sampler(uint64_t)> sampler_of)
      : pool(pool_for(samples, batch)),
        batches(make_memory_batches(std::move(source), pool, limits, std::move(sampler_of))) {}
};

std::unique_ptr<Batches> batches_of(uint64_t samples, size_t batch, PlanLimits limits, int rank = 0,
                                    int ranks = 1, Shuffle shuffle = Shuffle::global) {
  return std::make_unique<Batches>(std::make_unique<SampleSource>(samples), samples, batch, limits,
                                   [=](uint64_t count) { return Sampler(count, shuffle, 3, rank, ranks); });
}

// The samples of all batches by epoch. Checks that each slot holds the sample of its index.
std::vector<std::vector<uint64_t>> drain(Batches& all) {
  BatchSource& batches = *all.batches;
  std::vector<std::vector<uint64_t>> epochs;
  while (true) {
    const Result<const Batch*> got = batches.next();
    if (!got.ok()) {
      ADD_FAILURE() << got.error().message();
      return epochs;
    }
    if (*got == nullptr) return epochs;
    const Batch& batch = **got;
    epochs.resize(std::max<size_t>(epochs.size(), size_t(batch.epoch) + 1));
    for (size_t i = 0; i < batch.samples(); ++i) {
      EXPECT_EQ(batch.slot(i)[kBytes - 1], static_cast<std::byte>(batch.index[i]));
      EXPECT_EQ(batch.label[i], batch.index[i] + 100);
      EXPECT_EQ(batch.length[i], 7U);
      epochs[size_t(batch.epoch)].push_back(batch.index[i]);
    }
  }
}

TEST(MemoryBatches, EveryEpochHasAllSamplesInAnotherOrder) {
  const auto batches = batches_of(24, 4, {.epochs = 3});
  const auto epochs = drain(*batches);
  ASSERT_EQ(epochs.size(), 3U);
  for (const auto& epoch : epochs) EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 24U);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(MemoryBatches, RanksShareAnEpoch) {
  std::vector<uint64_t> both;
  for (int rank = 0; rank < 2; ++rank) {
    const auto epochs = drain(*batches_of(24, 4, {.epochs = 1}, rank, 2));
    both.insert(both.end(), epochs.at(0).begin(), epochs.at(0).end());
  }
  EXPECT_EQ(std::set(both.begin(), both.end()).size(), 24U);
  EXPECT_EQ(both.size(), 24U);
}

TEST(MemoryBatches, TailsAreDroppedAndCounted) {
  const auto batches = batches_of(10, 4, {.epochs = 2});
  const auto epochs = drain(*batches);
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_EQ(epochs[0].size(), 8U);
  EXPECT_EQ(batches->batches->losses().dropped_tail, 4U);
}

TEST(MemoryBatches, StepsGoOnIntoFurtherEpochs) {
  const auto epochs = drain(*batches_of(8, 4, {.batches = 5}, 0, 1, Shuffle::none));
  ASSERT_EQ(epochs.size(), 3U);
  EXPECT_EQ(epochs[0], (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(epochs[2].size(), 4U);
}

TEST(MemoryBatches, ReturnsNothingAfterTheEnd) {
  const auto all = batches_of(10, 4, {.epochs = 1});
  drain(*all);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all->batches->next().value(), nullptr);
  EXPECT_EQ(all->batches->losses().dropped_tail, 2U);
}

TEST(MemoryBatches, TheFirstCallReturnsErrorsOfLoading) {
  const auto in_order = [](uint64_t count) { return Sampler(count, Shuffle::none, 3); };
  Batches broken(std::make_unique<SampleSource>(8, 3), 8, 2, {.epochs = 1}, in_order);
  EXPECT_ERRC(Errc::corrupt, broken.batches->next(), "sample 3");
  Batches few(std::make_unique<SampleSource>(3), 8, 4, {.epochs = 1}, in_order);
  EXPECT_ERRC(Errc::corrupt, few.batches->next(), "only 3 samples");
}

TEST(MemoryBatches, RefusesSamplesThatDoNotFitInMemory) {
  BatchPool pool = pool_for(1, 1);
  EXPECT_ERRC(Errc::exhausted, pool.allocate_all_samples(uint64_t{1} << 50, 1), "do not fit");
}

TEST(MemoryBatches, ContinueInTheMiddleOfAnEpoch) {
  const auto whole = drain(*batches_of(23, 4, {.epochs = 3}));
  PlanLimits limits{.epochs = 3, .start = {.batches = 7, .epoch = 1, .used_samples = 8}};
  const auto rest = drain(*batches_of(23, 4, limits));
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_TRUE(rest[0].empty());
  EXPECT_EQ(rest[1], std::vector<uint64_t>(whole[1].begin() + 8, whole[1].end()));
  EXPECT_EQ(rest[2], whole[2]);
  limits.start = {.batches = 10, .epoch = 1, .used_samples = 20};  // as after the last step of the epoch
  EXPECT_EQ(drain(*batches_of(23, 4, limits)).at(2), whole[2]);
  limits.batches = 10;
  EXPECT_TRUE(drain(*batches_of(23, 4, limits)).empty());
}

}  // namespace
}  // namespace penstock
