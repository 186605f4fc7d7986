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

constexpr size_t kFilesAhead = 4;
constexpr size_t kStreamBytes = 1U << 20U;

struct PrefetchedFile {
  Sample sample;
  Fd fd;
};

// Opens the next object and asks the kernel to fetch the sample. Returns false if no sample is left.
Result<bool> prefetch_next(const ReadPlan& plan, int root, LoopControl& control,
                           std::deque<PrefetchedFile>& files) {
  Sample sample;
  if (!control.next(sample)) return false;
  PENSTOCK_ASSIGN(Fd fd, open_object(root, plan.samples.name(sample.object).data()));
  ::posix_fadvise(fd.get(), off_t(sample.offset), off_t(sample.length), POSIX_FADV_WILLNEED);
  files.push_back({sample, std::move(fd)});
  return true;
}

Result<LoopDone> readahead_loop(const ReadPlan& plan, const LoopShape& shape, LoopControl& control) {
  PENSTOCK_ASSIGN(const Fd root, open_root(plan));
  const uint64_t largest_bytes = plan.samples.largest_bytes();
  return control.run(shape.threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(whole_huge_pages(largest_bytes));
    std::deque<PrefetchedFile> files;
    for (bool more = true; more || !files.empty();) {
      while (more && files.size() < kFilesAhead) {
        PENSTOCK_ASSIGN(more, prefetch_next(plan, root.get(), control, files));
      }
      if (files.empty()) break;
      const auto& [sample, fd] = files.front();
      PENSTOCK_TRY(read_whole(fd.get(), sample, buffer.data(), plan.samples.name(sample.object).data()));
      ++done.samples;
      done.bytes += sample.length;
      files.pop_front();
    }
    return success();
  });
}

Result<LoopDone> streamed_loop(const ReadPlan& plan, const LoopShape& shape, LoopControl& control) {
  PENSTOCK_ASSIGN(const OpenObjects objects, open_objects(plan));
  std::vector<uint64_t> object_sizes;
  for (const std::unique_ptr<Reader>& object : objects) {
    PENSTOCK_ASSIGN(const uint64_t size, object->size());
    object_sizes.push_back(size);
  }
  if (object_sizes.empty()) return LoopDone{};
  // Each thread reads its own objects from front to back. Sample numbers only determine how much to read: for
  // each number it takes, a thread reads as many bytes as that sample has.
  return control.run(shape.threads, [&](LoopDone& done, unsigned thread) -> Result<void> {
    Buffer buffer(whole_huge_pages(kStreamBytes));
    uint64_t pending_bytes = 0;
    size_t object = thread % object_sizes.size();
    uint64_t offset = 0;
    for (Sample sample; control.next(sample);) {
      ++done.samples;
      done.bytes += sample.length;
      for (pending_bytes += sample.length; pending_bytes >= kStreamBytes;) {
        const uint64_t count = std::min<uint64_t>(kStreamBytes, object_sizes[object] - offset);
        PENSTOCK_TRY(objects[object]->read_at(offset, buffer.first(count)));
        offset += count;
        pending_bytes -= std::max<uint64_t>(count, 1);
        if (offset < object_sizes[object]) continue;
        object = (object + shape.threads) % object_sizes.size();
        offset = 0;
      }
    }
    return success();
  });
}

Result<std::vector<CeilingLoop::QueuedThread>> make_queued_threads(const ReadPlan& plan,
                                                                   const LoopShape& shape,
                                                                   size_t slot_bytes) {
  try {
    std::vector<CeilingLoop::QueuedThread> threads(std::max(shape.threads, 1U));
    for (CeilingLoop::QueuedThread& thread : threads) {
      thread.memory.grow(whole_huge_pages(shape.depth * slot_bytes));
      thread.own_readers.resize(shape.depth);
      PENSTOCK_ASSIGN(thread.queue, deep_queue(plan.backend, shape.depth));
      thread.queue->register_memory(thread.memory.first(shape.depth * slot_bytes));
    }
    return threads;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the reads of " + shape.name());
  }
}

}  // namespace

std::string LoopShape::name() const {
  constexpr std::array<std::string_view, 4> kNames{"blocking", "readahead", "streamed", "queued"};
  std::string name(kNames[size_t(kind)]);
  name += "." + std::to_string(threads);
  if (kind == LoopKind::queued) name += "x" + std::to_string(depth);
  return name;
}

std::vector<LoopShape> ceiling_probes(const ReadPlan& plan, unsigned threads) {
  constexpr unsigned kQueueDepth = 16;
  const Caps& caps = plan.backend.caps();
  threads = std::max(threads, 1U);
  std::vector<LoopShape> probe_series{
      {LoopKind::blocking, threads}, {LoopKind::blocking, threads * 2}, {LoopKind::blocking, threads * 4}};
  if (plan.whole_objects && can_use_system_calls(plan.backend))
    probe_series.push_back({LoopKind::readahead, threads});
  if (!plan.whole_objects) probe_series.push_back({LoopKind::streamed, threads});
  if (caps.async || caps.emulated) probe_series.push_back({LoopKind::queued, threads, kQueueDepth});
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

// The time to open objects and to make queues is not counted: a real reader also does this before its clock
// starts.
Result<LoopDone> CeilingLoop::run_queued(LoopEnd end) {
  const Clock::time_point start = Clock::now();
  PENSTOCK_ASSIGN(const OpenObjects objects, open_objects(plan_));
  const size_t slot_bytes = whole_blocks(std::max<uint64_t>(plan_.samples.largest_bytes(), 1));
  if (queued_threads_.empty()) {
    PENSTOCK_ASSIGN(queued_threads_, make_queued_threads(plan_, shape_, slot_bytes));
  }
  const std::chrono::nanoseconds queue_setup_time = Clock::now() - start;
  if (end.deadline != Clock::time_point::max()) end.deadline += queue_setup_time;
  LoopControl control(plan_, end);
  Result<LoopDone> total = control.run(shape_.threads, [&](LoopDone& done, unsigned thread) {
    return read_with_queue(queued_threads_[thread], slot_bytes, objects, control, done);
  });
  if (total.ok())
    total->queue_setup_time = queue_setup_time;
  else
    queued_threads_.clear();  // after an error, reads may still be in flight; their results are not needed
  return total;
}

Result<void> CeilingLoop::read_with_queue(QueuedThread& thread, size_t slot_bytes, const OpenObjects& objects,
                                          LoopControl& control, LoopDone& done) const {
  Queue& queue = *thread.queue;
  std::vector<uint64_t> idle_slots;
  for (uint64_t i = 0; i < shape_.depth; ++i) idle_slots.push_back(i);
  std::vector<Completion> completions(shape_.depth);
  for (bool more = true; more || queue.in_flight() > 0;) {
    SampleList::Sample sample;
    while (more && !idle_slots.empty() && (more = control.next(sample))) {
      const auto out =
          thread.memory.first(shape_.depth * slot_bytes).subspan(idle_slots.back() * slot_bytes, slot_bytes);
      Operation operation{ReadObject{plan_.samples.name(sample.object), sample.length, out},
                          idle_slots.back()};
      if (!plan_.whole_objects) {
        PENSTOCK_ASSIGN(Reader* const reader,
                        reader_of(plan_, objects, sample.object, thread.own_readers[idle_slots.back()]));
        operation.what = ReadAt{reader, sample.offset, out.first(sample.length)};
      }
      idle_slots.pop_back();
      // No more operations are in flight than the queue depth, so submit() soon accepts this one.
      while (queue.submit({&operation, 1}, Start::with_reap) == 0) {
      }
    }
    const size_t count = queue.reap(completions, queue.in_flight() > 0 ? 1 : 0);
    for (Completion& completion : std::span(completions).first(count)) {
      PENSTOCK_ASSIGN(const uint64_t bytes, std::move(completion.bytes));
      ++done.samples;
      done.bytes += bytes;
      idle_slots.push_back(completion.tag);
    }
  }
  return success();
}

}  // namespace penstock
