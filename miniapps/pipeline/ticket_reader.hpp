// What a worker of the loader reads by: a SampleReader whose samples are tickets of batches.
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

// Of the 65,530 mappings that Linux lets a process have: the most for objects that are held open, and the
// most for samples that are used in place. A back end may keep half of all besides (mmap's keep=1).
inline constexpr std::uint64_t kMostMapped = 12'288;

// How many objects the HeldObjects of a pipeline hold: none where each is a sample, else objects_held_open(),
// and kMostMapped at most where the back end maps them.
std::uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend);

// Why that number of samples of a manifest cannot be used at once where the back end has them; "" where they
// can. It has to be able to do that by itself (what is emulated counts operations, and may change bytes),
// reads are waited for one by one, and either all objects are held open, or each is one sample and no more of
// them are used at once than may be open and mapped.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, std::size_t depth,
                            std::uint64_t samples);

// One thread, from make() to the end (SampleReader). Destroyed with samples on their way, it waits for them
// or cuts them off.
class TicketReader {
 public:
  // All of it is borrowed. `depth` from 1 to what deep_queue() takes; errors are that one's. `in_place`:
  // bytes are not read into memory, but used where the back end has them; see why_copied().
  static Result<std::unique_ptr<TicketReader>> make(const Manifest& manifest, Backend& backend,
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
  // Waits for one of those on their way, of which there is one. All for which begin() was called are started
  // by now. An error of kind `internal` where the queue is broken: then nothing may be started any more.
  Arrival next();
  // Gives the bytes of the last arrival, which has some, away with what they are in, and takes what the other
  // had for later ones. Bytes in place stay there as long as this reader's `objects`, and the other's reader.
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
    std::span<const std::byte> bytes;  // that came, in the buffer or in place
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
  std::vector<Slot> slots_;  // one more than the depth, unless that is 1: the caller has it
  std::vector<std::uint32_t> free_;
  std::optional<std::uint32_t> waiting_;  // at a depth of 1: what next() reads or inspects
  std::vector<Completion> completions_;   // reaped, the first last
  std::size_t on_their_way_ = 0;
  std::optional<std::uint32_t> lent_;  // the slot whose bytes the caller has
  SampleReader reader_;                // last: it may still write to the slots' buffers
};

}  // namespace penstock
