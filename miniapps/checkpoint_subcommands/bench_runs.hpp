// Names, recognizes and removes the runs that `penstock checkpoint bench` saves to.
#pragma once

#include <cstdint>
#include <memory>
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

// Call begin_bench() before a bench uses the tier, and end_bench() after it, on rank 0. The lock keeps other
// benches from removing what this one uses; null if another bench has it, or if there are no locks.
// begin_bench() removes what a killed bench left of a ceiling's measurement. If the tier has no store yet, it
// notes that the bench makes it.
Result<std::unique_ptr<Lock>> begin_bench(const Tier& tier);
// If a bench made the store, and no other run has used it since, removes the store: its empty folders and its
// STORE.json. Does nothing if `lock` is null.
Result<void> end_bench(const Tier& tier, std::unique_ptr<Lock> lock);

}  // namespace penstock
