// Reads samples for `read` and `train`: one after the other, or several in flight through a queue.
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

// Objects that contain several samples, held open for all readers of a run: the first `held` of a corpus.
// Each is opened when its first sample is wanted, so that a run of few steps does not wait for all. Any
// thread.
class HeldObjects {
 public:
  HeldObjects(Backend& backend, std::uint64_t held)
      : backend_(backend),
        held_(held),
        readers_(std::make_unique<std::atomic<Reader*>[]>(static_cast<std::size_t>(held))) {}

  bool holds(std::uint64_t object) const { return object < held_; }
  // Null where it is not open yet, or never held.
  Reader* find(std::uint64_t object) const {
    return holds(object) ? readers_[static_cast<std::size_t>(object)].load(std::memory_order_acquire)
                         : nullptr;
  }
  // Opens an object that holds() is true for; errors are those of Backend::open(). The Reader lives as long
  // as this.
  Result<Reader*> open(std::uint64_t object, std::string_view name);

 private:
  Backend& backend_;
  const std::uint64_t held_;
  std::unique_ptr<std::atomic<Reader*>[]> readers_;  // by object; null: not open yet
  std::mutex mutex_;                                 // of open_
  std::vector<std::unique_ptr<Reader>> open_;
};

// One thread at a time. While reads are in flight, only the thread that started them: the queue may be one
// of the kernel, which belongs to a thread. Destroyed with reads in flight, it waits for them or cuts them
// off, so the memory that they read to must outlive it. read(), add() and reap() are on the hot path of
// `read`. They allocate only for errors and to open an object.
class SampleReader {
 public:
  using Sample = SampleList::Sample;

  // All of it is borrowed. Each read has a slot of its own, below `slots`. `whole_objects`: every sample is
  // the whole of an object.
  SampleReader(Backend& backend, HeldObjects& objects, bool whole_objects, std::size_t slots);

  // For reads in flight: add(), start() and reap() instead of read(). `memory`: see Queue::lend(). Errors are
  // those of deep_queue().
  Result<void> use_queue(std::size_t depth, std::span<std::byte> memory = {});
  bool queued() const { return queue_ != nullptr; }

  // Reads it now; returns its bytes. `object_name` may be "" where samples are ranges and the object is open.
  // `out` is at least as long as the sample, better in whole blocks.
  Result<std::uint64_t> read(std::size_t slot, std::string_view object_name, const Sample& sample,
                             std::span<std::byte> out);

  // The same, later: the slot comes back as the completion's tag, and name and `out` stay until then. Fails
  // where its object cannot be opened.
  Result<void> add(std::size_t slot, std::string_view object_name, const Sample& sample,
                   std::span<std::byte> out);
  std::span<const Operation> added() const { return added_; }  // and not started
  void start(Start when);                                      // what was added, while the queue has room
  void forget_added() { added_.clear(); }
  // Waits for one of those that were started and are in flight, and returns all that came; valid until the
  // next call. Empty where none is in flight, or the queue is broken.
  std::span<Completion> reap();
  std::size_t in_flight() const { return queue_->in_flight(); }

  // What the slot reads by: the object that is held open, or one of its own, which stays open for its next
  // sample.
  Result<Reader*> reader(std::size_t slot, std::string_view object_name, std::uint32_t object);
  void close(std::size_t slot) { static_cast<void>(take_reader(slot)); }  // its own
  std::unique_ptr<Reader> take_reader(std::size_t slot);                  // its own, if it has one

 private:
  struct Own {
    std::unique_ptr<Reader> reader;
    std::uint64_t object = UINT64_MAX;
  };

  Backend& backend_;
  HeldObjects& objects_;
  const bool whole_objects_;
  std::vector<Own> own_;  // by slot, of objects that are not held open
  std::vector<Operation> added_;
  std::vector<Completion> completions_;
  std::unique_ptr<Queue> queue_;  // last, so destroyed first: operations in flight need the Readers
};

}  // namespace penstock
