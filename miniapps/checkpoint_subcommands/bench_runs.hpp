// The runs that `penstock checkpoint bench` saves to: what they are called, and how they go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// How a training saves. Each is an arm of the comparison.
inline constexpr std::string_view kDirectArm = "direct";
inline constexpr std::string_view kBurstBufferArm = "burst-buffer";
inline constexpr std::string_view kSnapshotArm = "snapshot";
inline constexpr std::string_view kSavingArms[] = {kDirectArm, kBurstBufferArm, kSnapshotArm};

// "bench-direct-0123456789abcdef".
std::string bench_run_name(std::string_view arm, std::uint64_t number);
bool is_bench_run(std::string_view run);

// Removes such a run with all that the store has of it; false where somebody holds a lock of it.
Result<bool> remove_bench_run(CheckpointStore& store, const std::string& run);

// Removes the runs that no process works on: those of killed processes. Returns their number.
Result<std::uint64_t> sweep_bench_runs(CheckpointStore& store);

}  // namespace penstock
