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

// Whether `--on-error skip` leaves a sample with this error out. Not if the error comes from lack of memory,
// from Ctrl-C or from a bug of Penstock.
constexpr bool is_sample_error(Errc code) {
  return code != Errc::exhausted && code != Errc::internal && code != Errc::interrupted;
}
// What the error of a sample that ends a run says in addition.
inline constexpr std::string_view kSkipAdvice = "; pass --on-error skip to leave such samples out";

// Open objects that contain several samples. All readers of a run share them. It can hold the first `held`
// objects of a corpus open. Each object is opened when its first sample is requested. So a run of few steps
// does not wait until all are open. Any thread may use it.
class HeldObjects {
 public:
  HeldObjects(Backend& backend, uint64_t held)
      : backend_(backend),
        held_objects_(held),
        readers_(std::make_unique<std::atomic<Reader*>[]>(size_t(held))) {}

  bool holds(uint64_t object) const { return object < held_objects_; }
  // The Reader of an object. Null if the object is not open yet, or is not one of those held open. Takes no
  // lock.
  Reader* find(uint64_t object) const {
    return holds(object) ? readers_[size_t(object)].load(std::memory_order_acquire) : nullptr;
  }
  // Opens an object for which holds() is true, and keeps it open. Errors are those of Backend::open(). The
  // Reader lives as long as the HeldObjects.
  Result<Reader*> open(uint64_t object, std::string_view name);

 private:
  Backend& backend_;
  const uint64_t held_objects_;
  std::unique_ptr<std::atomic<Reader*>[]> readers_;  // entry i is for object i; null: not open yet
  std::mutex mutex_;                                 // guards owned_readers_
  std::vector<std::unique_ptr<Reader>> owned_readers_;
};

// Reads samples for one worker.
// Threads: only one thread at a time may use it. While reads are in flight, that must be the thread that
// started them, because a queue of the kernel belongs to one thread.
// Memory: read(), add() and reap() allocate only for errors and to open an object, because they are on the
// hot path of `read`. The destructor waits for reads in flight or cancels them, so the memory of these reads
// must outlive the SampleReader.
class SampleReader {
 public:
  using Sample = SampleList::Sample;

  // `backend` and `objects` must outlive the SampleReader. Each read uses its own slot, a number below
  // `slots`. `whole_objects`: every sample is a whole object.
  SampleReader(Backend& backend, HeldObjects& objects, bool whole_objects, size_t slots);

  // Makes a queue for reads in flight. From then on add(), start() and reap() are used instead of read().
  // `memory` is where most reads will write; a queue that is faster with registered memory registers it with
  // the kernel. Fails as deep_queue() does.
  Result<void> use_queue(size_t depth, std::span<std::byte> memory = {});
  bool queued() const { return queue_ != nullptr; }

  // Reads a sample and returns how many bytes it read. `object_name` may be "" if samples are ranges and the
  // object is open. `out` must have room for the sample. Room for whole blocks is better, because direct I/O
  // reads whole blocks.
  Result<uint64_t> read(size_t slot, std::string_view object_name, const Sample& sample,
                        std::span<std::byte> out);

  // Adds a read, which start() will submit. The tag of its completion is the slot. The name and `out` must
  // stay valid until reap() has returned the completion. Fails if the object cannot be opened.
  Result<void> add(size_t slot, std::string_view object_name, const Sample& sample, std::span<std::byte> out);
  std::span<const Operation> added() const { return added_reads_; }  // reads that were added and not started
  void start(Start when);  // submits added reads while the queue has room
  void forget_added() { added_reads_.clear(); }
  // Waits until at least one read in flight completes. Returns all completions that have arrived. They are
  // valid until the next call. Empty if nothing is in flight or the queue is broken.
  std::span<Completion> reap();
  size_t in_flight() const { return queue_->in_flight(); }

  // The Reader for an object. If the object is held open, all slots share its Reader. Else it is the slot's
  // own Reader, which stays open for the slot's next sample.
  Result<Reader*> reader(size_t slot, std::string_view object_name, uint32_t object);
  void close(size_t slot) { static_cast<void>(take_reader(slot)); }  // closes the slot's own Reader
  // Gives the slot's own Reader to the caller. Null if the slot has none.
  std::unique_ptr<Reader> take_reader(size_t slot);

 private:
  struct SlotReader {
    std::unique_ptr<Reader> reader;
    uint64_t object = UINT64_MAX;
  };

  Backend& backend_;
  HeldObjects& objects_;
  const bool whole_objects_;
  // Entry i: the Reader of slot i, for an object that is not held open.
  std::vector<SlotReader> slot_readers_;
  std::vector<Operation> added_reads_;
  std::vector<Completion> completions_;
  // Declared last and so destroyed first, because operations in flight use the Readers.
  std::unique_ptr<Queue> queue_;
};

}  // namespace penstock
