// Threads: a worker of the loader makes, uses and destroys it, without the loader's lock. Only HeldObjects
// is shared with other workers.
// Memory: buffers and names grow with the samples. A lack of memory in begin() is an error of that sample;
// in next() it is a std::bad_alloc, which ends the worker.
// Ctrl-C: nothing looks for it. A read in flight ends first. Crash: nothing is written.
#include "miniapps/pipeline/ticket_reader.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "datagen/sample/sample_list.hpp"

namespace penstock {

namespace {

std::uint64_t may_be_open(std::uint64_t objects, const Backend& backend) {
  const std::uint64_t open = objects_held_open(objects);
  return backend.caps().zero_copy ? std::min(open, kMostMapped) : open;
}

}  // namespace

std::uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend) {
  return manifest.one_object_a_sample() ? 0 : may_be_open(manifest.objects(), backend);
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

TicketReader::TicketReader(const Manifest& manifest, Backend& backend, HeldObjects& objects,
                           std::size_t depth, bool in_place)
    : manifest_(manifest),
      whole_objects_(manifest.one_object_a_sample()),
      depth_(depth),
      in_place_(in_place),
      slots_(depth == 1 ? 1 : depth + 1),
      reader_(backend, objects, whole_objects_, slots_.size()) {
  for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  completions_.reserve(slots_.size());
}

Result<std::unique_ptr<TicketReader>> TicketReader::make(const Manifest& manifest, Backend& backend,
                                                         HeldObjects& objects, std::size_t depth,
                                                         bool in_place) {
  std::unique_ptr<TicketReader> reader(new TicketReader(manifest, backend, objects, depth, in_place));
  if (depth > 1) PENSTOCK_TRY(reader->reader_.use_queue(depth));
  return reader;
}

Result<void> TicketReader::choose(Slot& slot) {
  const SampleEntry& entry = manifest_.sample(slot.ticket.index);
  slot.name.assign(manifest_.object_name(entry.object, slot.name_scratch));
  slot.sample = {.offset = entry.offset, .length = entry.length, .object = entry.object};
  if (entry.length == 0) return make_error(Errc::truncated, "'" + slot.name + "' is empty");
  return success();
}

void TicketReader::grow(Slot& slot) const {
  const auto room = static_cast<std::size_t>(whole_blocks(slot.sample.length));
  slot.buffer.grow(room);
  slot.room = slot.buffer.first(room);
}

// Opens a whole object for each sample, as a read does. Bytes that the back end does not have in place are
// read: a mapping that lost a page has no bytes after it any more, but the object may have them.
Result<std::uint64_t> TicketReader::inspect(std::uint32_t place) {
  Slot& slot = slots_[place];
  const SampleList::Sample& sample = slot.sample;
  if (whole_objects_) reader_.close(place);
  PENSTOCK_ASSIGN(Reader* const reader, reader_.reader(place, slot.name, sample.object));
  const Result<std::span<const std::byte>> seen = reader->view(sample.offset, sample.length);
  slot.in_place = seen.ok();
  if (slot.in_place) {
    slot.bytes = *seen;
    return sample.length;
  }
  grow(slot);
  PENSTOCK_TRY(reader->read_at(sample.offset, slot.buffer.first(static_cast<std::size_t>(sample.length))));
  return sample.length;
}

// The ticket always comes back from next(), also after an error here: the loader must settle it.
void TicketReader::begin(const Ticket& ticket) {
  // At a depth of 1 the caller has the only slot, and gives it back by this call.
  if (free_.empty()) set_free(*std::exchange(lent_, std::nullopt));
  const std::uint32_t place = free_.back();
  Slot& slot = slots_[place];
  free_.pop_back();
  ++on_their_way_;
  slot.ticket = ticket;
  slot.on_its_way = true;
  try {
    Result<void> started = choose(slot);
    if (started.ok() && !in_place_) grow(slot);
    if (started.ok() && reader_.queued()) started = reader_.add(place, slot.name, slot.sample, slot.room);
    if (!started.ok()) return completions_.push_back({place, std::move(started).error()});
    if (!reader_.queued()) waiting_ = place;
  } catch (const std::bad_alloc&) {
    completions_.push_back(
        {place, Error{Errc::exhausted, 0, "no memory left for sample " + std::to_string(ticket.index)}});
  }
}

TicketReader::Arrival TicketReader::arrival(Slot& slot, Result<std::uint64_t> bytes) const {
  Arrival arrival{slot.ticket, slot.name, std::span<const std::byte>()};
  const std::uint64_t length = slot.sample.length;
  if (!bytes.ok()) {
    arrival.bytes = std::move(bytes).error();
  } else if (*bytes != length) {
    arrival.bytes = truncated_error(slot.name, *bytes, length - *bytes);
  } else {
    if (!slot.in_place) slot.bytes = slot.buffer.first(static_cast<std::size_t>(length));
    arrival.bytes = slot.bytes;
  }
  return arrival;
}

void TicketReader::give(StoredSample& other) {
  Slot& slot = slots_[*lent_];
  other.bytes = slot.bytes;
  if (!slot.in_place) return std::swap(slot.buffer, other.memory);
  other.reader = reader_.take_reader(*lent_);
}

// At a depth of 1 the object stays open for its next sample. At others it is closed: there could be as many
// open as slots.
void TicketReader::set_free(std::uint32_t slot) {
  if (depth_ > 1) reader_.close(slot);
  free_.push_back(slot);
}

// The queue returned nothing although reads are in flight. The slot of the lost sample is not used again:
// the back end may still write to it.
TicketReader::Arrival TicketReader::broken() {
  --on_their_way_;
  const auto lost =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.on_its_way; });
  return {
      lost->ticket, lost->name,
      make_error(Errc::internal, "the queue gave nothing back while '" + lost->name + "' was on its way")};
}

TicketReader::Arrival TicketReader::next() {
  // First of all: by this call the caller gives the last bytes back.
  if (lent_) set_free(*std::exchange(lent_, std::nullopt));
  if (waiting_) {
    const std::uint32_t place = *std::exchange(waiting_, std::nullopt);
    Slot& slot = slots_[place];
    completions_.push_back(
        {place, in_place_ ? inspect(place) : reader_.read(place, slot.name, slot.sample, slot.room)});
  } else if (reader_.queued()) {
    reader_.start(completions_.empty() ? Start::with_reap : Start::now);
  }
  if (completions_.empty()) {
    for (Completion& came : reader_.reap()) completions_.push_back(std::move(came));
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
