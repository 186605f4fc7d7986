// Shared by all rows of the fault matrix: two tiers on a file system, a training of some ranks that saves to
// them, and the conditions that must hold afterwards. A training that is to be killed runs in its own
// process.
//
// Environment: PENSTOCK_FAULT_FS is tmpfs (the default), ext4 or xfs; PENSTOCK_FAULT_RANKS is 1 (the default)
// or more.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/testing/power_cut_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/restart.hpp"

namespace penstock {

// Describes a training: when it saves, on which tiers, and when it stops.
struct TrainingSetup {
  std::vector<uint64_t> steps{20};  // steps at which it saves, in order
  std::string slow_options{};
  std::string fast_options{};
  bool fast = true;
  bool stops_at_error = true;
  std::chrono::nanoseconds finalize = std::chrono::seconds(60);  // patience of finalize(); 0: not called
  std::function<void(uint64_t step)> after_save{};               // called on rank 0 after each save
  std::function<bool()> stop_waiting{};  // called on rank 0; true: stop waiting for the drain
};

// The results that rank 0 saw.
struct Outcome {
  Result<void> opened = success();
  std::vector<Result<CheckpointTimes>> saves;
  Result<void> finalized = success();
  CheckpointCounts counts;
  std::vector<CheckpointTimes> times;

  bool all_succeeded() const;
  std::string errors_text() const;
};

class FaultMatrix : public ::testing::Test {
 protected:
  uint64_t bytes_ = kCheckpointChunk + 123'457;  // bytes that one rank saves
  static constexpr std::chrono::seconds kLong{60};

  void SetUp() override;
  void TearDown() override;

  static int ranks();
  uint64_t bytes_of_all() const { return bytes_ * uint64_t(ranks()); }
  std::filesystem::path slow_root() const { return root_ / "slow"; }
  std::filesystem::path fast_root() const { return root_ / "fast"; }
  std::filesystem::path checkpoint(const std::filesystem::path& store, uint64_t step) const;
  Tier slow(const std::string& options = "") const;
  Tier fast(const std::string& options = "") const;
  LoopDisk* disk() { return disk_.get(); }       // null on tmpfs
  bool own_file_system() const { return own_; }  // whether the tiers are on a file system without other files

  // train() runs the training in this process. train_is_killed() runs it in a process of its own, and returns
  // whether SIGKILL ended that process.
  Outcome train(const TrainingSetup& trained);
  bool train_is_killed(const TrainingSetup& trained);

  uint64_t last_acknowledged(Reached level) const;  // 0: none

  // Check that no acknowledged checkpoint is lost. Another training opens the stores, which sweeps and drains
  // them; afterwards no pending checkpoint of the dead training may exist. A restart must then find at least
  // what was acknowledged, with the saved bytes: the level fast with the fast tier, the level durable without
  // it.
  void expect_nothing_lost();
  void expect_nothing_lost_without_fast_tier();
  // The step that a restart chooses, 0 if none; also checks its bytes.
  uint64_t restart_step(bool quarantine_wrong = false);
  Result<Restart> try_restart(bool quarantine_wrong = false);
  Restart restart(bool quarantine_wrong = false);
  void expect_bytes(const Restart& chosen);
  void wipe_fast() const { std::filesystem::remove_all(fast_root()); }
  static std::vector<uint64_t> whole_steps(const Tier& tier);
  static void expect_nothing_pending(const std::filesystem::path& store);

  // Kills the training at operation n of `scope` (faulty.hpp), for n = 1, 2 ... until it ends unharmed. Each
  // time it starts with reset_tiers() and then calls expect_nothing_lost(). Returns the number of kills.
  uint64_t kill_at_each(const std::string& scope, bool on_fast, TrainingSetup trained);
  void reset_tiers();    // empty tiers, empty log
  void forget_stores();  // closes the stores that restart() keeps open

  std::vector<std::byte> state(uint64_t step, int rank) const;
  // Changes bytes of a file in place, like a device that damages data without an error.
  static void overwrite(const std::filesystem::path& file, uint64_t offset, const std::string& bytes);
  std::filesystem::path file_of(const std::filesystem::path& store, uint64_t step, int rank) const;

  CheckpointPolicy policy_;
  std::function<void(Tier&)> wrap_{};  // called for each tier after it is opened

 private:
  Tier open(const std::filesystem::path& root, const std::string& options) const;
  Result<void> finalize(Checkpointer& saver, const TrainingSetup& trained, Communicator& all) const;
  Outcome run(const TrainingSetup& trained) const;

  ScratchFolder scratch_;
  std::unique_ptr<LoopDisk> disk_;
  std::filesystem::path root_;
  bool own_ = false;
  std::vector<std::unique_ptr<Tier>> kept_tiers_;
  std::vector<std::unique_ptr<CheckpointStore>> kept_stores_;
};

}  // namespace penstock
