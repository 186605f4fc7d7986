// Reads the samples of one worker of the loader: a SampleReader whose samples are tickets of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"

namespace penstock {

// Linux allows a process 65,530 mappings. At most this number is for objects that are held open, and as many
// for samples that are used in place. A back end may keep half of all in addition (mmap's keep=1).
inline constexpr std::uint64_t kMostMapped = 12'288;

// How many objects the HeldObjects of a pipeline hold: none where each is a sample, else objects_held_open(),
// and kMostMapped at most where the back end maps them.
std::uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend);

// Why `samples` samples of a manifest cannot be used in place at once; "" if they can. The back end must
// support it without a decorator, which counts operations and may change bytes. The depth must be 1. And
// either all objects are held open, or each object is one sample and no more of them are used at once than
// may be open and mapped.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, std::size_t depth,
                            std::uint64_t samples);

// One thread, from make() to the end (SampleReader). Destroyed with samples in flight, it waits for them or
// cuts them off.
class TicketReader {
 public:
  // Borrows all of it. `depth`: as deep_queue() accepts it, whose errors it returns. `in_place`: bytes are
  // not read into memory, but used where the back end has them; see why_copied().
  static Result<std::unique_ptr<TicketReader>> make(const Manifest& manifest, Backend& backend,
                                                    HeldObjects& objects, std::size_t depth, bool in_place);

  // One sample, or why it could not be read; an error names the object. The bytes stay until the next call of
  // next(), at a depth of 1 until begin().
  struct Arrival {
    Ticket ticket;
    std::string_view name;
    Result<std::span<const std::byte>> bytes;
  };

  std::size_t depth() const { return depth_; }
  std::size_t on_their_way() const { return on_their_way_; }  // started, and not returned by next() yet
  // Needs on_their_way() < depth(). Starts at once or with next(). Failures come with next(), too.
  void begin(const Ticket& ticket);
  // Needs on_their_way() > 0. Starts all samples for which begin() was called, and waits for one. An error
  // of kind `internal` means that the queue is broken: then nothing may be started any more.
  Arrival next();
  // Gives the bytes of the last arrival to `other`, with their memory or Reader, and takes its memory for
  // later samples. The arrival must have bytes. Bytes in place stay as long as the HeldObjects and the
  // Reader in `other`.
  void give(StoredSample& other);

 private:
  struct Slot {
    Ticket ticket;
    std::string name;
    std::string name_scratch;
    SampleList::Sample sample;
    std::span<std::byte> room;  // in the buffer
    bool on_its_way = false;
    Buffer buffer;
    std::span<const std::byte> bytes;  // of the sample, in the buffer or in place
    bool in_place = false;
  };
  TicketReader(const Manifest& manifest, Backend& backend, HeldObjects& objects, std::size_t depth,
               bool in_place);
  void set_free(std::uint32_t slot);
  Arrival broken();
  Result<void> choose(Slot& slot);
  void grow(Slot& slot) const;
  Result<std::uint64_t> inspect(std::uint32_t place);
  Arrival arrival(Slot& slot, Result<std::uint64_t> bytes) const;

  const Manifest& manifest_;
  const bool whole_objects_;
  const std::size_t depth_;
  const bool in_place_;
  std::vector<Slot> slots_;  // one more than the depth, for the caller; a single one at a depth of 1
  std::vector<std::uint32_t> free_;
  std::optional<std::uint32_t> waiting_;  // at a depth of 1: what next() reads or inspects
  std::vector<Completion> completions_;   // reaped, the first last
  std::size_t on_their_way_ = 0;
  std::optional<std::uint32_t> lent_;  // the slot whose bytes the caller has
  SampleReader reader_;                // last, so destroyed first: a read may still write to the slots
};

}  // namespace penstock
