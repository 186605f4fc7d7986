// Where a checkpoint goes: the fast tier, the slow one, or nowhere; decided before a byte is written.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/ledger.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

struct Admitted {
  bool fast = false;
  std::unique_ptr<Staged> staged;  // null: this one is skipped
};

// Rank 0's. `fast` and `drainer` are there both, or neither. One thread.
class Admission {
 public:
  Admission(const CheckpointPolicy& policy, CheckpointStore& slow, CheckpointStore* fast, Drainer* drainer,
            CheckpointLedger& ledger)
      : policy_(policy), slow_(slow), fast_(fast), drainer_(drainer), ledger_(ledger) {}

  // Durable copies make room, the oldest first; then the policy has its say. Waiting ends with timed_out, and
  // with interrupted.
  // `was_full`: the fast tier turned out to have no room when this checkpoint was written to it.
  Result<Admitted> admit(std::uint64_t bytes, bool was_full, std::chrono::steady_clock::time_point until);
  // To the slow tier, whatever room the fast one has.
  Result<Admitted> write_through(std::uint64_t bytes);

 private:
  Result<bool> fits_ever(std::uint64_t bytes) const;
  Result<std::unique_ptr<Staged>> stage_fast(std::uint64_t bytes);
  Result<bool> wait_for_room(std::chrono::steady_clock::time_point until);
  Result<Admitted> oversized(std::uint64_t bytes);
  Error stayed_full() const;

  const CheckpointPolicy& policy_;
  CheckpointStore& slow_;
  CheckpointStore* const fast_;
  Drainer* const drainer_;
  CheckpointLedger& ledger_;
};

// Now and so much later, but no later than clocks can say.
std::chrono::steady_clock::time_point after(std::chrono::nanoseconds patience);

}  // namespace penstock
