// Which checkpoint a training goes on from: the newest that is whole, on whichever tier, proven byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

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
  const CheckpointStore* store = nullptr;  // null: none of the run is there, or none is whole
  CheckpointManifest manifest;
  std::vector<RejectedCheckpoint> rejected;  // newer ones, or other copies, that were found wrong
  std::uint64_t lost_steps = 0;              // from the newest that any store names to the one chosen
};

// Looks at all stores: the greatest (step, generation) first, of its copies the fast tier's first; each is
// read whole and checked (with `read` false, its manifest alone). Copies found wrong are put into quarantine
// where `put_aside`. What others take away meanwhile is not rejected: the stores are looked at anew. An error
// is that of a store that cannot be read: never "nothing there".
struct RestartRequest {
  bool read = true;
  bool put_aside = false;
  std::optional<std::uint64_t> ranks{};  // only those of that many
  std::optional<std::uint64_t> step{};   // only that one
};
Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request = {});

// Collective: rank 0 chooses, and every rank sees it there; each then reads its own files.
Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request, Communicator& ranks);

// What restart.json says: chosen, rejected with reasons, lost steps.
nlohmann::json restart_json(const Restart& restart);

}  // namespace penstock
