// One save, as all ranks carry it out together: where it goes, who writes what, and when it counts.
#pragma once

#include <cstdint>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/admission.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/ledger.hpp"
#include "miniapps/checkpoint/run_stores.hpp"
#include "miniapps/checkpoint/save_work.hpp"
#include "miniapps/checkpoint/snapshot_writer.hpp"

namespace penstock {

// Borrows all that it is made of. Of one rank; one thread, but for write_snapshot().
class SaveTogether {
 public:
  // `admission` and, where there is a fast tier, `drainer` are rank 0's; null on the others.
  SaveTogether(const CheckpointPolicy& policy, Communicator& ranks, const RunStores& stores,
               CheckpointLedger& ledger, Admission* admission, Drainer* drainer)
      : policy_(policy),
        ranks_(ranks),
        stores_(stores),
        ledger_(ledger),
        admission_(admission),
        drainer_(drainer) {}

  void use(SnapshotWriter& in_memory) { in_memory_ = &in_memory; }

  // Collective. unsupported where it could never be read back: known before a byte is written.
  Result<SaveWork> work_of(const SaveRequest& request);

  struct Way {
    bool from_memory = false;  // by the thread that writes snapshots, to which it is handed over
    bool around = false;       // the memory for snapshots is taken: skipped, or to the slow tier at once
    bool was_full = false;     // the fast tier has just turned out to have no room
    bool known = false;        // the ledger has it already
    double asked_s = 0;
  };
  // Collective: finds room and writes it there; false where it is skipped.
  Result<bool> write(SaveWork& work, Way way);

  // By the snapshots' thread of each rank: writes what write() has found room for.
  Result<void> write_snapshot(SaveWork& work);

 private:
  struct Course;
  Result<std::uint64_t> next_generation(std::uint64_t step, bool known) const;
  Result<Course> choose(SaveWork& work, const Way& way);
  Result<Course> agree_on(SaveWork& work, const Way& way);
  Result<void> hand_over(SaveWork& work);
  Result<void> write_mine(SaveWork& work, std::vector<CheckpointFile>& written);
  Result<void> write_together(SaveWork& work);
  Result<void> committed(const CheckpointManifest& manifest, bool fast);

  const CheckpointPolicy& policy_;
  Communicator& ranks_;
  const RunStores& stores_;
  CheckpointLedger& ledger_;
  Admission* const admission_;
  Drainer* const drainer_;
  SnapshotWriter* in_memory_ = nullptr;  // null: saves write at once
};

}  // namespace penstock
