// Who is at work in a checkpoint store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

struct HeldLock {
  std::string run;
  std::string what;    // "save", "drain"
  std::string holder;  // in its own words: process, host, boot
};

// Takes no lock, so that a process that starts meanwhile does not find the run busy. None where the tier has
// no files of this machine.
Result<std::optional<std::vector<HeldLock>>> held_locks(const CheckpointStore& store);

}  // namespace penstock
