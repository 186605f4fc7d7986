// For tests of the loader: samples that need no decoder, and a pipeline that loads them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "datagen/objects/scripted_backend.hpp"
#include "miniapps/pipeline/loader.hpp"

namespace penstock {

inline constexpr size_t kSlotBytes = 8;

// Stores a sample's first byte and length, and refuses samples that begin with `refused`. A closed `gate`
// blocks every worker.
class CopyingTransform final : public Transform {
 public:
  CopyingTransform()
      : Transform{.slot_bytes = kSlotBytes,
                  .layout = "test",
                  .stages = kStages,
                  .make = [this]() -> Result<std::unique_ptr<SampleTransform>> {
                    return std::make_unique<Copy>(*this);
                  }} {}
  CopyingTransform(const CopyingTransform&) = delete;
  CopyingTransform& operator=(const CopyingTransform&) = delete;

  std::set<size_t> refused_lengths;
  bool throws = false;
  mutable std::atomic<uint64_t> applied{0};

  void close_gate() { gate_closed_ = true; }  // call it before any worker starts
  void open_gate() {
    {
      const std::lock_guard lock(mutex_);
      gate_closed_ = false;
    }
    gate_.notify_all();
  }

 private:
  class Copy final : public SampleTransform {
   public:
    explicit Copy(const CopyingTransform& owner) : owner_(owner) {}
    Result<void> apply(const SampleKey&, std::span<const std::byte> stored, std::span<std::byte> slot,
                       StageTimer& timer) override {
      {
        std::unique_lock lock(owner_.mutex_);
        owner_.gate_.wait(lock, [&] { return !owner_.gate_closed_; });
      }
      timer.end_part(kFirstOwnPart);
      ++owner_.applied;
      if (owner_.throws) throw std::runtime_error("a bug");
      if (owner_.refused_lengths.contains(stored.size())) return make_error(Errc::corrupt, "not a picture");
      std::fill(slot.begin(), slot.end(), std::byte{0});
      slot[0] = stored[0];
      slot[1] = static_cast<std::byte>(stored.size());
      timer.end_part(kFirstOwnPart + 1);
      return {};
    }

   private:
    const CopyingTransform& owner_;
  };

  static constexpr std::array<std::string_view, 2> kStages{"decode", "resize"};
  mutable std::mutex mutex_;  // guards gate_closed_
  mutable std::condition_variable gate_;
  bool gate_closed_ = false;
};

struct Pipe {
  ScriptedBackend scripted;
  Manifest manifest;
  Backend* backend = &scripted;
  CopyingTransform app_transform;
  BatchPool pool;

  Pipe(uint64_t samples, size_t batch, uint64_t prefetch)
      : manifest(scripted_files(scripted, samples)),
        pool(BatchPool::make({batch, kSlotBytes}, prefetch).value()) {}

  LoaderSettings settings(Sampler sampler, PlanLimits limits, unsigned threads) {
    return {&manifest, backend, &app_transform, &pool, sampler, limits, threads};
  }
  Result<std::unique_ptr<BatchLoader>> start(PlanLimits limits, unsigned threads,
                                             BadSample bad = BadSample::fail,
                                             Shuffle shuffle = Shuffle::global, size_t depth = 1) {
    LoaderSettings own = settings(Sampler(manifest.samples(), shuffle, 77), limits, threads);
    own.bad_sample = bad;
    own.depth = depth;
    return BatchLoader::make(own);
  }
};

using Indices = std::vector<std::vector<uint64_t>>;

// Takes all batches, and checks that each slot holds the sample of its index.
inline Indices drain(BatchLoader& loader, const Manifest& manifest) {
  Indices batches;
  while (true) {
    const Result<const Batch*> batch = loader.next();
    if (!batch.ok()) {
      ADD_FAILURE() << batch.error().message();
      return batches;
    }
    if (*batch == nullptr) return batches;
    const Batch& got = **batch;
    for (size_t i = 0; i < got.samples(); ++i) {
      const uint64_t index = got.index[i];
      EXPECT_EQ(got.slot(i)[0], static_cast<std::byte>(index * 31));
      EXPECT_EQ(got.slot(i)[1], static_cast<std::byte>(manifest.sample(index).length));
      EXPECT_EQ(got.length[i], manifest.sample(index).length);
      EXPECT_EQ(got.label[i], kNoLabel);
    }
    batches.push_back(got.index);
  }
}

}  // namespace penstock
