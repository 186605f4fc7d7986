// Reads samples for `read` and `train`, one after another or with several in flight through a queue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Open objects that contain several samples, shared by all readers of a run. It can hold the first `held`
// objects of a corpus. Each object is opened when its first sample is requested, so that a run of few steps
// does not wait until all are open. Any thread.
class HeldObjects {
 public:
  HeldObjects(Backend& backend, uint64_t held)
      : backend_(backend),
        held_objects_(held),
        readers_(std::make_unique<std::atomic<Reader*>[]>(size_t(held))) {}

  bool holds(uint64_t object) const { return object < held_objects_; }
  // Null if the object is not open yet, or is never held. Takes no lock.
  Reader* find(uint64_t object) const {
    return holds(object) ? readers_[size_t(object)].load(std::memory_order_acquire) : nullptr;
  }
  // Opens an object for which holds() is true. Errors are those of Backend::open(). The Reader lives as long
  // as the HeldObjects.
  Result<Reader*> open(uint64_t object, std::string_view name);

 private:
  Backend& backend_;
  const uint64_t held_objects_;
  std::unique_ptr<std::atomic<Reader*>[]> readers_;  // index: object; null: not open yet
  std::mutex mutex_;                                 // guards owned_readers_
  std::vector<std::unique_ptr<Reader>> owned_readers_;
};

// Reads samples for one worker. One thread at a time. While reads are in flight, only the thread that started
// them may use it, because a queue of the kernel belongs to one thread. If it is destroyed with reads in
// flight, it waits for them or cancels them, so their memory must outlive it. read(), add() and reap() are on
// the hot path of `read`. They allocate only for errors and to open an object.
class SampleReader {
 public:
  using Sample = SampleList::Sample;

  // All arguments are borrowed. Each read uses its own slot, a number below `slots`. `whole_objects`: every
  // sample is a whole object.
  SampleReader(Backend& backend, HeldObjects& objects, bool whole_objects, size_t slots);

  // Makes a queue for reads in flight. Then add(), start() and reap() are used instead of read(). `memory`:
  // see Queue::register_memory(). Errors are those of deep_queue().
  Result<void> use_queue(size_t depth, std::span<std::byte> memory = {});
  bool queued() const { return queue_ != nullptr; }

  // Reads a sample and returns the number of its bytes. `object_name` may be "" if samples are ranges and the
  // object is open. `out` must have room for the sample, better for whole blocks.
  Result<uint64_t> read(size_t slot, std::string_view object_name, const Sample& sample,
                        std::span<std::byte> out);

  // Adds a read that start() will submit. The completion's tag is the slot. The name and `out` must stay
  // valid until the completion. Fails if the object cannot be opened.
  Result<void> add(size_t slot, std::string_view object_name, const Sample& sample, std::span<std::byte> out);
  std::span<const Operation> added() const { return added_reads_; }  // reads that were added and not started
  void start(Start when);  // submits added reads while the queue has room
  void forget_added() { added_reads_.clear(); }
  // Waits until a read in flight completes, and returns all completions so far. They are valid until the next
  // call. Empty if nothing is in flight or the queue is broken.
  std::span<Completion> reap();
  size_t in_flight() const { return queue_->in_flight(); }

  // The Reader for an object: the shared one if the object is held open, else the Reader of the slot, which
  // stays open for the slot's next sample.
  Result<Reader*> reader(size_t slot, std::string_view object_name, uint32_t object);
  void close(size_t slot) { static_cast<void>(take_reader(slot)); }  // closes the slot's own Reader
  // Moves the slot's own Reader to the caller; null if it has none.
  std::unique_ptr<Reader> take_reader(size_t slot);

 private:
  struct SlotReader {
    std::unique_ptr<Reader> reader;
    uint64_t object = UINT64_MAX;
  };

  Backend& backend_;
  HeldObjects& objects_;
  const bool whole_objects_;
  std::vector<SlotReader> slot_readers_;  // by slot: Readers of objects that are not held open
  std::vector<Operation> added_reads_;
  std::vector<Completion> completions_;
  std::unique_ptr<Queue> queue_;  // last, so destroyed first: operations in flight use the Readers
};

}  // namespace penstock
