#include "miniapps/pipeline/sample_reader.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "datagen/sample/sample_list.hpp"

namespace penstock {

namespace {

std::uint64_t may_be_open(std::uint64_t objects, const Backend& backend) {
  const std::uint64_t open = objects_held_open(objects);
  return backend.caps().zero_copy ? std::min(open, kMostMapped) : open;
}

}  // namespace

HeldObjects::HeldObjects(const Manifest& manifest, Backend& backend)
    : backend_(backend),
      held_(manifest.one_object_a_sample() ? 0 : may_be_open(manifest.objects(), backend)),
      readers_(std::make_unique<std::atomic<Reader*>[]>(static_cast<std::size_t>(held_))) {}

Result<Reader*> HeldObjects::reader(std::uint64_t object, std::string_view name) {
  std::atomic<Reader*>& at = readers_[static_cast<std::size_t>(object)];
  if (Reader* const open = at.load(std::memory_order_acquire)) return open;
  PENSTOCK_ASSIGN(std::unique_ptr<Reader> mine, backend_.open(name));
  const std::lock_guard lock(mutex_);
  if (Reader* const others = at.load(std::memory_order_relaxed)) return others;
  open_.push_back(std::move(mine));
  at.store(open_.back().get(), std::memory_order_release);
  return open_.back().get();
}

std::string_view why_copied(const Manifest& manifest, const Backend& backend, std::size_t depth,
                            std::uint64_t samples) {
  const Caps& caps = backend.caps();
  if (!caps.zero_copy) return "its back end reads into memory";
  if (caps.emulated) return "the tier is slowed or given faults";
  if (depth != 1) return "--depth is above 1";
  const std::uint64_t objects = manifest.objects();
  if (!manifest.one_object_a_sample() && may_be_open(objects, backend) == objects) return "";
  if (objects != manifest.samples())
    return "not all of its objects, which hold several samples, can be held open at once";
  if (may_be_open(samples, backend) != samples)
    return "all batches together have more samples than can be open and mapped at once";
  return "";
}

SampleReader::SampleReader(const Manifest& manifest, Backend& backend, HeldObjects& objects,
                           std::size_t depth, bool in_place)
    : manifest_(manifest),
      backend_(backend),
      objects_(objects),
      whole_objects_(manifest.one_object_a_sample()),
      depth_(depth),
      in_place_(in_place),
      slots_(depth == 1 ? 1 : depth + 1) {
  for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  to_submit_.reserve(depth);
  completions_.reserve(slots_.size());
}

Result<std::unique_ptr<SampleReader>> SampleReader::make(const Manifest& manifest, Backend& backend,
                                                         HeldObjects& objects, std::size_t depth,
                                                         bool in_place) {
  std::unique_ptr<SampleReader> reader(new SampleReader(manifest, backend, objects, depth, in_place));
  if (depth > 1) {
    PENSTOCK_ASSIGN(reader->queue_, deep_queue(backend, depth));
  }
  return reader;
}

Result<Reader*> SampleReader::reader_of(Slot& slot) {
  const std::uint64_t object = manifest_.sample(slot.ticket.index).object;
  if (objects_.holds(object)) return objects_.reader(object, slot.name);
  if (slot.reader_object != object) {
    slot.reader_object = UINT64_MAX;
    PENSTOCK_ASSIGN(slot.reader, backend_.open(slot.name));
    slot.reader_object = object;
  }
  return slot.reader.get();
}

Result<void> SampleReader::prepare(Slot& slot) {
  const SampleEntry& entry = manifest_.sample(slot.ticket.index);
  const std::string_view name = manifest_.object_name(entry.object, slot.name_scratch);
  slot.name.assign(name);
  slot.length = entry.length;
  if (entry.length == 0) return make_error(Errc::truncated, "'" + slot.name + "' is empty");
  return success();
}

Result<Operation> SampleReader::operation(Slot& slot) {
  PENSTOCK_TRY(prepare(slot));
  const SampleEntry& entry = manifest_.sample(slot.ticket.index);
  const auto room = static_cast<std::size_t>(whole_blocks(entry.length));
  slot.buffer.grow(room);
  const auto tag = static_cast<std::uint64_t>(&slot - slots_.data());
  if (whole_objects_) return Operation{ReadObject{slot.name, entry.length, slot.buffer.first(room)}, tag};
  PENSTOCK_ASSIGN(Reader* const reader, reader_of(slot));
  return Operation{ReadAt{reader, entry.offset, slot.buffer.first(static_cast<std::size_t>(entry.length))},
                   tag};
}

// A whole object is opened for each sample of it, as it is where it is read. What cannot be had in place is
// read: a mapping that lost a page stays without what is after it, and its object may have that.
Result<std::uint64_t> SampleReader::inspect(Slot& slot) {
  PENSTOCK_TRY(prepare(slot));
  if (whole_objects_) slot.reader_object = UINT64_MAX;
  PENSTOCK_ASSIGN(Reader* const reader, reader_of(slot));
  const std::uint64_t offset = manifest_.sample(slot.ticket.index).offset;
  const Result<std::span<const std::byte>> seen = reader->view(offset, slot.length);
  slot.in_place = seen.ok();
  if (slot.in_place) {
    slot.bytes = *seen;
    return slot.length;
  }
  slot.buffer.grow(static_cast<std::size_t>(whole_blocks(slot.length)));
  PENSTOCK_TRY(reader->read_at(offset, slot.buffer.first(static_cast<std::size_t>(slot.length))));
  return slot.length;
}

void SampleReader::begin(const Ticket& ticket) {
  if (free_.empty()) set_free(*std::exchange(lent_, std::nullopt));
  const std::uint32_t place = free_.back();
  free_.pop_back();
  ++on_their_way_;
  slots_[place].ticket = ticket;
  slots_[place].on_its_way = true;
  if (in_place_) {
    to_inspect_ = place;
    return;
  }
  try {
    Result<Operation> wanted = operation(slots_[place]);
    if (wanted.ok()) return to_submit_.push_back(*std::move(wanted));
    completions_.push_back({place, std::move(wanted).error()});
  } catch (const std::bad_alloc&) {
    completions_.push_back(
        {place, Error{Errc::exhausted, 0, "no memory left for sample " + std::to_string(ticket.index)}});
  }
}

SampleReader::Arrival SampleReader::arrival(Slot& slot, Result<std::uint64_t> bytes) {
  Arrival arrival{slot.ticket, slot.name, std::span<const std::byte>()};
  if (!bytes.ok()) {
    arrival.bytes = std::move(bytes).error();
  } else if (*bytes != slot.length) {
    arrival.bytes = truncated_error(slot.name, *bytes, slot.length - *bytes);
  } else {
    if (!slot.in_place) slot.bytes = slot.buffer.first(static_cast<std::size_t>(slot.length));
    arrival.bytes = slot.bytes;
  }
  return arrival;
}

void SampleReader::give(StoredSample& other) {
  Slot& slot = slots_[*lent_];
  other.bytes = slot.bytes;
  if (!slot.in_place) return std::swap(slot.buffer, other.memory);
  other.reader = std::move(slot.reader);
  slot.reader_object = UINT64_MAX;
}

// At a depth of 1 the object stays open for the next sample of it; at others there may be as many open as
// slots.
void SampleReader::set_free(std::uint32_t place) {
  if (depth_ > 1) {
    slots_[place].reader.reset();
    slots_[place].reader_object = UINT64_MAX;
  }
  free_.push_back(place);
}

// Its slot is not used again: the read may still come.
SampleReader::Arrival SampleReader::broken() {
  --on_their_way_;
  const auto lost =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.on_its_way; });
  return {
      lost->ticket, lost->name,
      make_error(Errc::internal, "the queue gave nothing back while '" + lost->name + "' was on its way")};
}

SampleReader::Arrival SampleReader::next() {
  if (lent_) set_free(*std::exchange(lent_, std::nullopt));
  if (to_inspect_) {
    const std::uint32_t place = *std::exchange(to_inspect_, std::nullopt);
    completions_.push_back({place, inspect(slots_[place])});
  } else if (!to_submit_.empty()) {
    if (queue_) {
      const std::size_t taken =
          queue_->submit(to_submit_, completions_.empty() ? Start::with_reap : Start::now);
      to_submit_.erase(to_submit_.begin(), to_submit_.begin() + static_cast<std::ptrdiff_t>(taken));
    } else {
      const Operation operation = to_submit_.front();
      to_submit_.clear();
      completions_.push_back({operation.tag, perform(backend_, operation)});
    }
  }
  if (completions_.empty()) {
    completions_.resize(slots_.size());
    completions_.resize(queue_->reap(completions_, 1));
    if (completions_.empty()) return broken();
    std::reverse(completions_.begin(), completions_.end());
  }
  Completion done = std::move(completions_.back());
  completions_.pop_back();
  --on_their_way_;
  lent_ = static_cast<std::uint32_t>(done.tag);
  slots_[*lent_].on_its_way = false;
  return arrival(slots_[*lent_], std::move(done.bytes));
}

}  // namespace penstock
