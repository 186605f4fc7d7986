// What the rows of the fault matrix share: two tiers on a file system, a training of some ranks that saves to
// them (in a process of its own where it is to be killed), and what must hold when it has ended.
//
// PENSTOCK_FAULT_FS: tmpfs (the default), ext4, xfs; PENSTOCK_FAULT_RANKS: 1 (the default) or more.
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

// A training, as far as its checkpoints go.
struct Trained {
  std::vector<std::uint64_t> steps{20};  // that it saves, in order
  std::string slow_options{};
  std::string fast_options{};
  bool fast = true;
  bool stops_at_error = true;
  std::chrono::nanoseconds finalize = std::chrono::seconds(60);  // 0: it just ends
  std::function<void(std::uint64_t step)> behind{};              // rank 0, behind each save
  std::function<bool()> hopeless{};                              // rank 0: why wait for the drain
};

// What rank 0 saw.
struct Outcome {
  Result<void> opened = success();
  std::vector<Result<Saved>> saves;
  Result<void> finalized = success();
  CheckpointCounts counts;
  std::vector<CheckpointTimes> times;

  bool all_well() const;
  std::string complaint() const;
};

class FaultMatrix : public ::testing::Test {
 protected:
  std::uint64_t bytes_ = kCheckpointChunk + 123'457;  // of a rank
  static constexpr std::chrono::seconds kLong{60};

  void SetUp() override;
  void TearDown() override;

  static int ranks();
  std::uint64_t bytes_of_all() const { return bytes_ * static_cast<std::uint64_t>(ranks()); }
  std::filesystem::path slow_root() const { return root_ / "slow"; }
  std::filesystem::path fast_root() const { return root_ / "fast"; }
  std::filesystem::path checkpoint(const std::filesystem::path& store, std::uint64_t step) const;
  Tier slow(const std::string& options = "") const;
  Tier fast(const std::string& options = "") const;
  LoopDisk* disk() { return disk_.get(); }       // null on tmpfs
  bool own_file_system() const { return own_; }  // on which nothing else is

  // Here, and as a process of its own: true if that was killed by SIGKILL, false if it came to its end.
  Outcome train(const Trained& trained);
  bool train_is_killed(const Trained& trained);

  std::uint64_t last_acknowledged(Reached level) const;  // 0: none

  // The oracle: another training opens the stores (which sweeps and drains), nothing in the making is left of
  // the dead one, and a restart finds at least what was acknowledged: fast where that tier is there, durable
  // without it, with the bytes that were saved.
  void expect_nothing_lost();
  void expect_nothing_lost_without_fast_tier();
  // The step that a restart chooses, 0 for none; its bytes are looked at.
  std::uint64_t restart_step(bool put_aside = false);
  Result<Restart> try_restart(bool put_aside = false);
  Restart restart(bool put_aside = false);
  void expect_bytes(const Restart& chosen);
  void wipe_fast() const { std::filesystem::remove_all(fast_root()); }
  static std::vector<std::uint64_t> whole_steps(const Tier& tier);
  static void expect_no_litter(const std::filesystem::path& store);

  // Kills the training at the n-th operation of `scope` (faulty.hpp), for each n until there is none, in a
  // world of its own each time, and looks at the oracle. How many kills there were.
  std::uint64_t kill_at_each(const std::string& scope, bool on_fast, Trained trained);
  void fresh();          // empty tiers, empty log
  void forget_stores();  // that restart() keeps open

  std::vector<std::byte> state(std::uint64_t step, int rank) const;
  // Changes bytes of a file in place: what a device does that says nothing.
  static void overwrite(const std::filesystem::path& file, std::uint64_t offset, const std::string& bytes);
  std::filesystem::path file_of(const std::filesystem::path& store, std::uint64_t step, int rank) const;

  CheckpointPolicy policy_;
  std::function<void(Tier&)> wrap_{};  // each tier as it is opened

 private:
  Tier open(const std::filesystem::path& root, const std::string& options) const;
  Result<void> finalize(Checkpointer& saver, const Trained& trained, Communicator& all) const;
  Outcome run(const Trained& trained) const;

  ScratchFolder scratch_;
  std::unique_ptr<LoopDisk> disk_;
  std::filesystem::path root_;
  bool own_ = false;
  std::vector<std::unique_ptr<Tier>> kept_tiers_;
  std::vector<std::unique_ptr<CheckpointStore>> kept_stores_;
};

}  // namespace penstock
