// Chooses the checkpoint from which a training resumes: the newest complete one on any tier. Every byte of it
// is checked; with `read_files` false, only its manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/json.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

struct RejectedCheckpoint {
  std::string tier;
  CheckpointId id;
  std::string why;
};

struct Restart {
  std::string run;
  const CheckpointStore* store = nullptr;  // null: the run has no checkpoint, or none is complete
  CheckpointManifest manifest;
  std::vector<RejectedCheckpoint> rejected;  // copies that were tried and cannot be used, with reasons
  uint64_t lost_steps = 0;                   // steps from the chosen checkpoint to the newest of all stores
};

// What choose_restart() looks for. It tries the checkpoints of all stores from the greatest (step,
// generation) down, and of each checkpoint the copy on the fast tier first. It reads and checks each copy
// completely or, with `read_files` false, only its manifest. With `quarantine_wrong`, it moves copies with
// wrong bytes to quarantine.
// If another process removes a checkpoint meanwhile, choose_restart() lists all stores again. A store that
// cannot be read is an error, never "no checkpoint".
struct RestartRequest {
  bool read_files = true;
  bool quarantine_wrong = false;
  std::optional<uint64_t> ranks{};  // only checkpoints of this number of ranks
  std::optional<uint64_t> step{};   // only checkpoints of this step
};
Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request = {});

// Collective. Rank 0 chooses, and every rank checks that its store has the chosen checkpoint. The caller then
// reads the files of its own rank.
Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request, Communicator& ranks);

// The content of restart.json: the chosen checkpoint, the rejected ones with reasons, and the lost steps.
Json restart_json(const Restart& restart);

}  // namespace penstock
