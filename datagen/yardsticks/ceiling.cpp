#include "datagen/yardsticks/ceiling.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <new>
#include <span>
#include <utility>

#include "datagen/yardsticks/baseline.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using Sample = SampleList::Sample;

constexpr std::size_t kAhead = 4;
constexpr std::size_t kStreamBytes = 1U << 20U;

struct Announced {
  Sample sample;
  Fd fd;
};

// Opens the next sample and asks the kernel to fetch it.
Result<bool> announce(const ReadPlan& plan, int root, LoopControl& control, std::deque<Announced>& ahead) {
  Sample sample;
  if (!control.next(sample)) return false;
  PENSTOCK_ASSIGN(Fd fd, open_object(root, plan.samples.name(sample.object).data()));
  ::posix_fadvise(fd.get(), static_cast<off_t>(sample.offset), static_cast<off_t>(sample.length),
                  POSIX_FADV_WILLNEED);
  ahead.push_back({sample, std::move(fd)});
  return true;
}

Result<LoopDone> readahead_loop(const ReadPlan& plan, const LoopShape& shape, LoopControl& control) {
  PENSTOCK_ASSIGN(const Fd root, open_root(plan));
  const std::uint64_t largest = plan.samples.largest();
  return control.run(shape.threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(whole_huge_pages(largest));
    std::deque<Announced> ahead;
    for (bool more = true; more || !ahead.empty();) {
      while (more && ahead.size() < kAhead) {
        PENSTOCK_ASSIGN(more, announce(plan, root.get(), control, ahead));
      }
      if (ahead.empty()) break;
      const auto& [sample, fd] = ahead.front();
      PENSTOCK_TRY(read_whole(fd.get(), sample, buffer.data(), plan.samples.name(sample.object).data()));
      ++done.samples;
      done.bytes += sample.length;
      ahead.pop_front();
    }
    return success();
  });
}

Result<LoopDone> streamed_loop(const ReadPlan& plan, const LoopShape& shape, LoopControl& control) {
  PENSTOCK_ASSIGN(const OpenObjects objects, open_objects(plan));
  std::vector<std::uint64_t> sizes;
  for (const std::unique_ptr<Reader>& object : objects) {
    PENSTOCK_ASSIGN(const std::uint64_t size, object->size());
    sizes.push_back(size);
  }
  if (sizes.empty()) return LoopDone{};
  // Each thread reads its own objects in turn. For each sample number that it takes, it reads as many bytes
  // as that sample has.
  return control.run(shape.threads, [&](LoopDone& done, unsigned thread) -> Result<void> {
    Buffer buffer(whole_huge_pages(kStreamBytes));
    std::uint64_t owed = 0;
    std::size_t object = thread % sizes.size();
    std::uint64_t offset = 0;
    for (Sample sample; control.next(sample);) {
      ++done.samples;
      done.bytes += sample.length;
      for (owed += sample.length; owed >= kStreamBytes;) {
        const std::uint64_t count = std::min<std::uint64_t>(kStreamBytes, sizes[object] - offset);
        PENSTOCK_TRY(objects[object]->read_at(offset, buffer.first(count)));
        offset += count;
        owed -= std::max<std::uint64_t>(count, 1);
        if (offset < sizes[object]) continue;
        object = (object + shape.threads) % sizes.size();
        offset = 0;
      }
    }
    return success();
  });
}

Result<std::vector<CeilingLoop::QueuedThread>> make_queued_threads(const ReadPlan& plan,
                                                                   const LoopShape& shape, std::size_t room) {
  try {
    std::vector<CeilingLoop::QueuedThread> threads(std::max(shape.threads, 1U));
    for (CeilingLoop::QueuedThread& thread : threads) {
      thread.memory.grow(whole_huge_pages(shape.depth * room));
      thread.own.resize(shape.depth);
      PENSTOCK_ASSIGN(thread.queue, deep_queue(plan.backend, shape.depth));
      thread.queue->register_memory(thread.memory.first(shape.depth * room));
    }
    return threads;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the reads of " + shape.name());
  }
}

}  // namespace

std::string LoopShape::name() const {
  constexpr std::array<std::string_view, 4> kNames{"blocking", "readahead", "streamed", "queued"};
  std::string name(kNames[static_cast<std::size_t>(kind)]);
  name += "." + std::to_string(threads);
  if (kind == LoopKind::queued) name += "x" + std::to_string(depth);
  return name;
}

std::vector<LoopShape> ceiling_probes(const ReadPlan& plan, unsigned threads) {
  constexpr unsigned kDepth = 16;
  const Caps& caps = plan.backend.caps();
  threads = std::max(threads, 1U);
  std::vector<LoopShape> probe_series{
      {LoopKind::blocking, threads}, {LoopKind::blocking, threads * 2}, {LoopKind::blocking, threads * 4}};
  if (plan.whole_objects && by_system_calls(plan.backend))
    probe_series.push_back({LoopKind::readahead, threads});
  if (!plan.whole_objects) probe_series.push_back({LoopKind::streamed, threads});
  if (caps.async || caps.emulated) probe_series.push_back({LoopKind::queued, threads, kDepth});
  return probe_series;
}

CeilingLoop::CeilingLoop(const ReadPlan& plan, const LoopShape& shape) : plan_(plan), shape_(shape) {}

Result<LoopDone> CeilingLoop::run(const LoopEnd& end) {
  if (shape_.kind == LoopKind::blocking) return baseline_read(plan_, shape_.threads, end);
  if (shape_.kind == LoopKind::queued) return run_queued(end);
  LoopControl control(plan_, end);
  if (shape_.kind == LoopKind::readahead) return readahead_loop(plan_, shape_, control);
  return streamed_loop(plan_, shape_, control);
}

// The time to make queues is not counted, because a reader also makes its queues before its clock starts.
Result<LoopDone> CeilingLoop::run_queued(LoopEnd end) {
  const Clock::time_point start = Clock::now();
  PENSTOCK_ASSIGN(const OpenObjects objects, open_objects(plan_));
  const std::size_t room = whole_blocks(std::max<std::uint64_t>(plan_.samples.largest(), 1));
  if (queued_threads_.empty()) {
    PENSTOCK_ASSIGN(queued_threads_, make_queued_threads(plan_, shape_, room));
  }
  const std::chrono::nanoseconds untimed = Clock::now() - start;
  if (end.at != Clock::time_point::max()) end.at += untimed;
  LoopControl control(plan_, end);
  Result<LoopDone> all = control.run(shape_.threads, [&](LoopDone& done, unsigned thread) {
    return read_with_queue(queued_threads_[thread], room, objects, control, done);
  });
  if (all.ok())
    all->untimed = untimed;
  else
    queued_threads_.clear();  // after an error reads may be in flight; their results are not used
  return all;
}

Result<void> CeilingLoop::read_with_queue(QueuedThread& thread, std::size_t room, const OpenObjects& objects,
                                          LoopControl& control, LoopDone& done) const {
  Queue& queue = *thread.queue;
  std::vector<std::uint64_t> idle;
  for (std::uint64_t i = 0; i < shape_.depth; ++i) idle.push_back(i);
  std::vector<Completion> completions(shape_.depth);
  for (bool more = true; more || queue.in_flight() > 0;) {
    SampleList::Sample sample;
    while (more && !idle.empty() && (more = control.next(sample))) {
      const auto out = thread.memory.first(shape_.depth * room).subspan(idle.back() * room, room);
      Operation operation{ReadObject{plan_.samples.name(sample.object), sample.length, out}, idle.back()};
      if (!plan_.whole_objects) {
        PENSTOCK_ASSIGN(Reader* const reader,
                        reader_of(plan_, objects, sample.object, thread.own[idle.back()]));
        operation.what = ReadAt{reader, sample.offset, out.first(sample.length)};
      }
      idle.pop_back();
      // No more operations are in flight than the queue's depth, so submit() succeeds soon.
      while (queue.submit({&operation, 1}, Start::with_reap) == 0) {
      }
    }
    const std::size_t count = queue.reap(completions, queue.in_flight() > 0 ? 1 : 0);
    for (Completion& completion : std::span(completions).first(count)) {
      PENSTOCK_ASSIGN(const std::uint64_t bytes, std::move(completion.bytes));
      ++done.samples;
      done.bytes += bytes;
      idle.push_back(completion.tag);
    }
  }
  return success();
}

}  // namespace penstock
