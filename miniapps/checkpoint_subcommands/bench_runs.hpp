// Names, recognizes and removes the runs that `penstock checkpoint bench` saves to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// The ways in which a training saves. Each is an arm of the comparison.
inline constexpr std::string_view kDirectArm = "direct";
inline constexpr std::string_view kBurstBufferArm = "burst-buffer";
inline constexpr std::string_view kSnapshotArm = "snapshot";
inline constexpr std::string_view kSavingArms[] = {kDirectArm, kBurstBufferArm, kSnapshotArm};

// A name such as "bench-direct-0123456789abcdef".
std::string bench_run_name(std::string_view arm, uint64_t number);
bool is_bench_run(std::string_view run);

// Removes a run of `checkpoint bench` and all its checkpoints from the store. False if another process holds
// a lock of this run.
Result<bool> remove_bench_run(CheckpointStore& store, const std::string& run);

// Removes the bench runs that no process uses: those of killed processes. Returns how many it removed.
Result<uint64_t> sweep_bench_runs(CheckpointStore& store);

}  // namespace penstock
