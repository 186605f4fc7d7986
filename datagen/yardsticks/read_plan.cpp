#include "datagen/yardsticks/read_plan.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

std::uint32_t SampleList::add_object(std::string_view name) {
  starts_.push_back(names_.size());
  names_.insert(names_.end(), name.begin(), name.end());
  names_.push_back('\0');
  return static_cast<std::uint32_t>(starts_.size() - 1);
}

SampleList SampleList::part(std::uint64_t begin, std::uint64_t end) const {
  SampleList some;
  std::vector<std::uint32_t> numbers(objects(), UINT32_MAX);
  for (std::uint64_t i = begin; i < end; ++i) {
    Sample sample = samples_[i];
    std::uint32_t& number = numbers[sample.object];
    if (number == UINT32_MAX) number = some.add_object(name(sample.object));
    sample.object = number;
    some.add_sample(sample);
  }
  return some;
}

std::uint64_t SampleList::bytes() const {
  std::uint64_t sum = 0;
  for (const Sample& sample : samples_) sum += sample.length;
  return sum;
}

std::uint64_t SampleList::largest() const {
  std::uint64_t most = 0;
  for (const Sample& sample : samples_) most = std::max(most, sample.length);
  return most;
}

std::uint64_t objects_held_open(std::uint64_t objects) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<std::uint64_t>(objects, 64);
  return std::min(objects, std::clamp<std::uint64_t>(limit.rlim_cur / 4, 16, 1U << 16));
}

Result<OpenObjects> OpenObjects::open(const ReadPlan& plan) {
  OpenObjects objects(plan);
  const std::uint64_t held = plan.whole_objects ? 0 : objects_held_open(plan.samples.objects());
  for (std::uint64_t i = 0; i < held; ++i) {
    PENSTOCK_ASSIGN(auto reader, plan.backend.open(plan.samples.name(static_cast<std::uint32_t>(i))));
    objects.readers_.push_back(std::move(reader));
  }
  return objects;
}

Result<Reader*> OpenObjects::get(std::uint32_t object, std::unique_ptr<Reader>& own) const {
  if (object < readers_.size()) return readers_[object].get();
  own.reset();
  PENSTOCK_ASSIGN(own, plan_->backend.open(plan_->samples.name(object)));
  return own.get();
}

bool by_system_calls(const Backend& backend) {
  const Caps& caps = backend.caps();
  return caps.native_path && !caps.emulated && !caps.bypasses_cache;
}

bool LoopControl::next(SampleList::Sample& sample) {
  const std::uint64_t n = next_.fetch_add(1, std::memory_order_relaxed);
  if (n >= end_.samples || plan_.samples.size() == 0 || over_.load(std::memory_order_relaxed)) return false;
  // Two dozen nanoseconds a clock read, so not for every sample.
  constexpr std::uint64_t kLookEvery = 8;
  const bool late = n % kLookEvery == 0 && end_.at != std::chrono::steady_clock::time_point::max() &&
                    std::chrono::steady_clock::now() >= end_.at;
  if (late || interrupted() || (end_.stop != nullptr && end_.stop->load(std::memory_order_relaxed))) {
    over_.store(true, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t turn = (end_.first + n) % plan_.samples.size();
  sample = plan_.samples[plan_.order ? plan_.order(turn) : turn];
  return true;
}

void LoopControl::fail(Error error) {
  const std::lock_guard lock(mutex_);
  // A read that SIGINT cut short ends the loop and is no failure of it.
  if (failed_ && !(error.code == Errc::interrupted && interrupted())) failed_ = std::move(error);
  over_.store(true, std::memory_order_relaxed);
}

Result<LoopDone> LoopControl::run(unsigned threads,
                                  const std::function<Result<void>(LoopDone&, unsigned)>& body) {
  threads = std::max(threads, 1U);
  std::vector<LoopDone> done(threads);
  const auto work = [&](unsigned thread) {
    LoopDone mine;
    if (auto result = body(mine, thread); !result) fail(std::move(result).error());
    done[thread] = mine;
    return success();
  };
  PENSTOCK_TRY(
      on_threads(threads, work, IfFewer::fail, [&] { over_.store(true, std::memory_order_relaxed); }));
  PENSTOCK_TRY(std::move(failed_));
  LoopDone sum;
  for (const LoopDone& one : done) {
    sum.samples += one.samples;
    sum.bytes += one.bytes;
  }
  return sum;
}

}  // namespace penstock
