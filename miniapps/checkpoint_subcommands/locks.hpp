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

// Looks, and takes none, so that nobody who begins meanwhile finds the run busy. None where the tier is not
// of files that this machine can ask.
Result<std::optional<std::vector<HeldLock>>> held_locks(const CheckpointStore& store);

}  // namespace penstock
