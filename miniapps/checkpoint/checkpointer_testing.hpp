// For tests only: saves of a training to two tiers in a scratch folder, and the resulting contents.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

inline constexpr std::chrono::nanoseconds kLong = std::chrono::seconds(60);

inline std::vector<std::byte> noise(size_t bytes, uint64_t step, int rank = 0) {
  const RandomStream random(step, uint64_t(rank));
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(random.bits(i));
  return all;
}

class CheckpointerTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 300'000;

  void SetUp() override { policy_.retry_after = std::chrono::milliseconds(5); }

  Tier tier(const std::string& name, const std::string& options = "") const {
    return open_tier(name + "=posix:" + (dir_.path() / name).string() + options, kNoNamedTiers).value();
  }

  Result<std::unique_ptr<Checkpointer>> open(const Tier& slow, const Tier* fast) {
    return Checkpointer::open(policy_, slow, fast, *alone_,
                              [this](const CheckpointId& id, Reached level) -> Result<void> {
                                const std::lock_guard lock(mutex_);
                                reached_.emplace_back(id.step, level);
                                return success();
                              });
  }

  static Result<CheckpointTimes> save(Checkpointer& saver, uint64_t step, size_t bytes = kBytes) {
    const std::vector<std::byte> state = noise(bytes, step);
    return saver.save(
        {.step = step, .files = {{"rank-0.bin", state}}, .trainer = {.epoch = 1, .consumed = step}});
  }

  std::vector<std::pair<uint64_t, Reached>> acknowledgements() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

  static std::vector<uint64_t> steps(const Tier& tier, const std::string& run = "default") {
    const auto store = CheckpointStore::open(tier).value();
    std::vector<uint64_t> all;
    const std::vector<ListedCheckpoint> found = list_checkpoints(*store, run).value();
    for (const ListedCheckpoint& one : found)
      if (one.manifest.ok() && store->verify(run, *one.manifest).ok()) all.push_back(one.id.step);
    return all;
  }

  // The bytes of a file of the newest checkpoint.
  static std::vector<std::byte> newest(const Tier& tier, const std::string& file = "rank-0.bin") {
    const auto store = CheckpointStore::open(tier).value();
    std::vector<ListedCheckpoint> found = list_checkpoints(*store, "default").value();
    std::vector<std::byte> all;
    const CheckpointManifest& manifest = *found.back().manifest;
    const auto wanted = std::find_if(manifest.files.begin(), manifest.files.end(),
                                     [&](const CheckpointFile& one) { return one.name == file; });
    const Result<void> read =
        store->read_file("default", manifest.id, *wanted, [&](uint64_t, std::span<const std::byte> bytes) {
          all.insert(all.end(), bytes.begin(), bytes.end());
          return success();
        });
    EXPECT_TRUE(read.ok());
    return all;
  }

  ScratchFolder dir_;
  std::unique_ptr<Communicator> alone_ = single_process();
  CheckpointPolicy policy_;
  std::mutex mutex_;  // guards reached_
  std::vector<std::pair<uint64_t, Reached>> reached_;
};

}  // namespace penstock
