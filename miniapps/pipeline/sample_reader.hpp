// What a worker reads its samples by: up to `depth` of them on their way at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"

namespace penstock {

// Of the 65,530 mappings that Linux lets a process have: so many for objects that are held open, as many for
// samples that are used in place. A back end may keep half of all besides (mmap's keep=1).
inline constexpr std::uint64_t kMostMapped = 12'288;

// Objects that hold several samples, held open for all workers of a pipeline: as many as objects_held_open(),
// and as kMostMapped where the back end maps them. Unlike OpenObjects (read_plan.hpp) it opens each when the
// first sample of it is wanted, so that a run of few steps does not wait for all. Any thread.
class HeldObjects {
 public:
  HeldObjects(const Manifest& manifest, Backend& backend);

  bool holds(std::uint64_t object) const { return object < held_; }
  // Of an object of that name which it holds; errors are those of Backend::open(). Lives as long as this.
  Result<Reader*> reader(std::uint64_t object, std::string_view name);

 private:
  Backend& backend_;
  const std::uint64_t held_;
  std::unique_ptr<std::atomic<Reader*>[]> readers_;  // by object; null: not open yet
  std::mutex mutex_;                                 // of
  std::vector<std::unique_ptr<Reader>> open_;
};

// Why so many samples of a manifest cannot be used at once where the back end has them; "" where they can. It
// has to be able to do that by itself (what is emulated counts operations, and may change bytes), reads are
// waited for one by one, and either all objects are held open (HeldObjects), or each is one sample and no
// more of them are used at once than may be open and mapped.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, std::size_t depth,
                            std::uint64_t samples);

// One thread, from make() to the end: its queue may be the kernel's, which knows whose it is. Destroyed with
// samples on their way, it waits for them or cuts them off.
class SampleReader {
 public:
  // All of it is borrowed. `depth` from 1 to what deep_queue() takes; errors are that one's. `in_place`:
  // bytes are not read into memory, but looked at where the back end has them; see why_copied().
  static Result<std::unique_ptr<SampleReader>> make(const Manifest& manifest, Backend& backend,
                                                    HeldObjects& objects, std::size_t depth, bool in_place);

  // One that came. Its bytes stay until the next call of next(), at a depth of 1 until begin(). An error
  // names the object.
  struct Arrival {
    Ticket ticket;
    std::string_view name;
    Result<std::span<const std::byte>> bytes;
  };

  std::size_t depth() const { return depth_; }
  std::size_t on_their_way() const { return on_their_way_; }  // started, and not yet had from next()
  // Needs on_their_way() < depth(). Starts at once or with next(). Failures come with next(), too.
  void begin(const Ticket& ticket);
  // Waits for one of those on their way, of which there is one. Those that have been begun are started by
  // now. An error of kind `internal` where the queue is broken: then nothing may be started any more.
  Arrival next();
  // Gives the bytes of the last arrival, which has some, away with what they are in, and takes what the other
  // had for later ones. Bytes in place stay there as long as this reader's `objects`, and the other's reader.
  void give(StoredSample& other);

 private:
  struct Slot {
    Ticket ticket;
    std::string name;
    std::uint64_t length = 0;
    bool on_its_way = false;
    Buffer buffer;
    std::span<const std::byte> bytes;  // that came, in the buffer or in place
    bool in_place = false;
    std::unique_ptr<Reader> reader;  // of an object that is not held open
    std::uint64_t reader_object = UINT64_MAX;
    std::string name_scratch;
  };
  SampleReader(const Manifest& manifest, Backend& backend, HeldObjects& objects, std::size_t depth,
               bool in_place);
  void set_free(std::uint32_t place);
  Arrival broken();
  Result<void> prepare(Slot& slot);
  Result<Operation> operation(Slot& slot);
  Result<std::uint64_t> inspect(Slot& slot);
  Result<Reader*> reader_of(Slot& slot);
  Arrival arrival(Slot& slot, Result<std::uint64_t> bytes);

  const Manifest& manifest_;
  Backend& backend_;
  HeldObjects& objects_;
  const bool whole_objects_;
  const std::size_t depth_;
  const bool in_place_;
  std::vector<Slot> slots_;  // one more than the depth, unless that is 1: the caller has it
  std::vector<std::uint32_t> free_;
  std::vector<Operation> to_submit_;
  std::optional<std::uint32_t> to_inspect_;  // instead, in place
  std::vector<Completion> completions_;      // reaped, the first last
  std::size_t on_their_way_ = 0;
  std::optional<std::uint32_t> lent_;  // the slot whose bytes the caller has
  std::unique_ptr<Queue> queue_;       // last: it may still write to the slots' buffers
};

}  // namespace penstock
