// One save, as all ranks carry it out together: where it goes, who writes what, and when it counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/run_stores.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint/snapshot_writer.hpp"

namespace penstock {

// Borrows all that it is made of. Of one rank; one thread, but for write_snapshot().
class SaveTogether {
 public:
  // Where there is a fast tier, `drainer` is rank 0's; null on the others.
  SaveTogether(const CheckpointPolicy& policy, Communicator& ranks, const RunStores& stores,
               CheckpointLedger& ledger, Drainer* drainer)
      : policy_(policy), ranks_(ranks), stores_(stores), ledger_(ledger), drainer_(drainer) {}

  void use(SnapshotWriter& in_memory) { in_memory_ = &in_memory; }

  // Collective. unsupported where it could never be read back: known before a byte is written.
  Result<SaveWork> work_of(const SaveRequest& request);

  // Collective: finds room and writes there, or with `from_memory` hands it to the thread that does. False
  // where it is skipped.
  Result<bool> write(SaveWork& work, bool from_memory);

  // By the snapshots' thread of each rank: writes what write() has found room for.
  Result<void> write_snapshot(SaveWork& work);

 private:
  Result<std::uint64_t> next_generation(const SaveWork& work) const;
  Result<void> choose(SaveWork& work);
  Result<void> agree_on(SaveWork& work);

  // Rank 0's: where the checkpoint goes.
  Result<void> admit(SaveWork& work);
  Result<void> write_through(SaveWork& work);
  Result<void> send_oversized(SaveWork& work);
  Result<bool> fits_ever(std::uint64_t bytes) const;
  Result<bool> take_fast_room(SaveWork& work);
  Result<bool> wait_for_room(std::chrono::steady_clock::time_point until);
  Error stayed_full() const;

  Result<void> hand_over(SaveWork& work);
  Result<void> write_mine(SaveWork& work, std::vector<CheckpointFile>& written);
  Result<void> write_together(SaveWork& work);
  Result<void> committed(const CheckpointManifest& manifest, bool fast);

  const CheckpointPolicy& policy_;
  Communicator& ranks_;
  const RunStores& stores_;
  CheckpointLedger& ledger_;
  Drainer* const drainer_;
  SnapshotWriter* in_memory_ = nullptr;  // null: saves write at once
};

// Now and so much later, but no later than clocks can say.
std::chrono::steady_clock::time_point after(std::chrono::nanoseconds patience);

}  // namespace penstock
