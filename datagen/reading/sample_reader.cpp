// Threads: any thread may call HeldObjects. A SampleReader belongs to one worker, and only one thread at a
// time uses it.
// Lock: HeldObjects::mutex_ guards owned_readers_. It is not held during an open or a read.
// HeldObjects::find() takes no lock.
// Memory: opening an object allocates, and so does SampleReader::use_queue(). Under the lock, memory is
// allocated only when owned_readers_ grows.
// Ctrl-C: not checked in this file. The callers check it between samples.
// Crash: this code writes no files, so a crash leaves nothing behind.
#include "datagen/reading/sample_reader.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace penstock {
namespace {

// Delays every read() and every reap(). One test is built with a delay, to show that `read` reports a slow
// reader. Baseline and ceiling do not call delay_reap(), so they remain fast.
#ifndef PENSTOCK_REAP_DELAY_US
#define PENSTOCK_REAP_DELAY_US 0
#endif
void delay_reap() {
  if constexpr (PENSTOCK_REAP_DELAY_US > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(PENSTOCK_REAP_DELAY_US));
}

// Reads a sample that is a range of an object. Not inlined into read(): reads of whole objects do not need
// this code, so it would only slow them down.
[[gnu::noinline]] Result<uint64_t> read_range(SampleReader& reader, size_t slot, std::string_view object_name,
                                              const SampleList::Sample& sample, std::span<std::byte> out) {
  PENSTOCK_ASSIGN(Reader* const object_reader, reader.reader(slot, object_name, sample.object));
  PENSTOCK_TRY(object_reader->read_at(sample.offset, out.first(size_t(sample.length))));
  return sample.length;
}

}  // namespace

// Opens an object and stores its Reader. The release store comes last and pairs with the acquire in find().
// So a thread that sees the pointer also sees the complete Reader.
Result<Reader*> HeldObjects::open(uint64_t object, std::string_view name) {
  // Open before taking the lock: an open may take long, and meanwhile other threads can open other objects.
  PENSTOCK_ASSIGN(std::unique_ptr<Reader> opened, backend_.open(name));
  const std::lock_guard lock(mutex_);
  std::atomic<Reader*>& entry = readers_[size_t(object)];
  // Another thread may have opened the object at the same time. Then `opened` is closed, after the lock is
  // released.
  if (Reader* const existing = entry.load(std::memory_order_relaxed)) return existing;
  owned_readers_.push_back(std::move(opened));
  entry.store(owned_readers_.back().get(), std::memory_order_release);
  return owned_readers_.back().get();
}

SampleReader::SampleReader(Backend& backend, HeldObjects& objects, bool whole_objects, size_t slots)
    : backend_(backend), objects_(objects), whole_objects_(whole_objects), slot_readers_(slots) {}

Result<void> SampleReader::use_queue(size_t depth, std::span<std::byte> memory) {
  PENSTOCK_ASSIGN(queue_, deep_queue(backend_, depth));
  if (!memory.empty()) queue_->register_memory(memory);
  added_reads_.reserve(slot_readers_.size());
  completions_.resize(slot_readers_.size());
  return success();
}

Result<Reader*> SampleReader::reader(size_t slot, std::string_view object_name, uint32_t object) {
  if (Reader* const held = objects_.find(object)) return held;
  if (objects_.holds(object)) return objects_.open(object, object_name);
  SlotReader& slot_reader = slot_readers_[slot];
  if (slot_reader.object != object) {
    // Close the old object before opening the new one: both together could exceed the limit of descriptors.
    // If the open fails, the slot has no Reader.
    close(slot);
    PENSTOCK_ASSIGN(slot_reader.reader, backend_.open(object_name));
    slot_reader.object = object;
  }
  return slot_reader.reader.get();
}

std::unique_ptr<Reader> SampleReader::take_reader(size_t slot) {
  slot_readers_[slot].object = UINT64_MAX;
  return std::move(slot_readers_[slot].reader);
}

Result<uint64_t> SampleReader::read(size_t slot, std::string_view object_name, const Sample& sample,
                                    std::span<std::byte> out) {
  delay_reap();
  if (whole_objects_) return backend_.read_object(object_name, sample.length, out);
  return read_range(*this, slot, object_name, sample, out);
}

Result<void> SampleReader::add(size_t slot, std::string_view object_name, const Sample& sample,
                               std::span<std::byte> out) {
  if (whole_objects_) {
    added_reads_.push_back({.what = ReadObject{object_name, sample.length, out}, .tag = slot});
    return success();
  }
  PENSTOCK_ASSIGN(Reader* const object_reader, reader(slot, object_name, sample.object));
  out = out.first(size_t(sample.length));
  added_reads_.push_back({.what = ReadAt{object_reader, sample.offset, out}, .tag = slot});
  return success();
}

// Submits added reads. Those for which the queue has no room stay in added_reads_ until the next call.
void SampleReader::start(Start when) {
  if (added_reads_.empty()) return;
  const size_t submitted = queue_->submit(added_reads_, when);
  added_reads_.erase(added_reads_.begin(), added_reads_.begin() + ptrdiff_t(submitted));
}

std::span<Completion> SampleReader::reap() {
  delay_reap();
  return std::span(completions_).first(queue_->reap(completions_, 1));
}

}  // namespace penstock
