#include "miniapps/checkpoint/saves.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

OnFull on_full_of(std::string_view word) {
  if (word == "skip") return OnFull::skip;
  return word == "writethrough" ? OnFull::writethrough : OnFull::block;
}

Oversize oversize_of(std::string_view word) {
  return word == "fail" ? Oversize::fail : Oversize::writethrough;
}

std::string_view reached_name(Reached level) {
  switch (level) {
    case Reached::nothing:
      return "nothing";
    case Reached::fast:
      return "fast";
    case Reached::durable:
      return "durable";
  }
  return "";
}

double CheckpointLedger::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
}

CheckpointTimes* CheckpointLedger::find(const CheckpointId& id) {
  const auto at = std::find_if(times_.rbegin(), times_.rend(),
                               [&](const CheckpointTimes& times) { return times.id == id; });
  return at == times_.rend() ? nullptr : &*at;
}

void CheckpointLedger::asked(const CheckpointId& id, std::uint64_t bytes, double asked_s) {
  const std::lock_guard lock(mutex_);
  times_.push_back({.id = id, .bytes = bytes, .asked_s = asked_s});
  ++counts_.saves;
}

void CheckpointLedger::renamed(const CheckpointId& from, const CheckpointId& to) {
  const std::lock_guard lock(mutex_);
  if (CheckpointTimes* const times = find(from); times != nullptr) times->id = to;
}

void CheckpointLedger::reached(const CheckpointId& id, Reached level) {
  const std::lock_guard telling(telling_);
  if (acknowledged_) {
    if (Result<void> told = acknowledged_(id, level); !told.ok()) fail(std::move(told).error());
  }
  const double now = now_s();
  const std::lock_guard lock(mutex_);
  CheckpointTimes* const times = find(id);
  if (times == nullptr) return;
  if (level == Reached::fast) times->fast_s = now - times->asked_s;
  if (level == Reached::durable) times->durable_s = now - times->asked_s;
}

void CheckpointLedger::blocked(const CheckpointId& id, double block_s) {
  const std::lock_guard lock(mutex_);
  if (CheckpointTimes* const times = find(id); times != nullptr) times->block_s = block_s;
}

void CheckpointLedger::skipped(const CheckpointId& id) {
  const std::lock_guard lock(mutex_);
  ++counts_.skips;
  if (CheckpointTimes* const times = find(id); times != nullptr) times->skipped = true;
}

void CheckpointLedger::drained(const CheckpointId& id, double begin_s, double length_s) {
  const std::lock_guard lock(mutex_);
  ++counts_.drained;
  CheckpointTimes* const times = find(id);
  if (times == nullptr) return;
  times->drain_begin_s = begin_s;
  times->drain_s = length_s;
}

void CheckpointLedger::count(const std::function<void(CheckpointCounts&)>& change) {
  const std::lock_guard lock(mutex_);
  change(counts_);
}

CheckpointCounts CheckpointLedger::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<CheckpointTimes> CheckpointLedger::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

void CheckpointLedger::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

Result<void> CheckpointLedger::failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return success();
}

}  // namespace penstock
