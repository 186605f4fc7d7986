#include "miniapps/pipeline/sample_reader.hpp"

#include <new>
#include <string>
#include <utility>

#include "io_backends/base/read_plan.hpp"

namespace penstock {

HeldObjects::HeldObjects(const Manifest& manifest, Backend& backend) : backend_(backend) {
  if (!manifest.one_object_a_sample())
    readers_.resize(static_cast<std::size_t>(objects_held_open(manifest.objects())));
}

Result<Reader*> HeldObjects::reader(std::uint64_t object, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Reader>& reader = readers_[static_cast<std::size_t>(object)];
  if (!reader) {
    PENSTOCK_ASSIGN(reader, backend_.open(name));
  }
  return reader.get();
}

SampleReader::SampleReader(const Manifest& manifest, Backend& backend, HeldObjects& objects,
                           std::size_t depth)
    : manifest_(manifest),
      backend_(backend),
      objects_(objects),
      whole_objects_(manifest.one_object_a_sample()),
      depth_(depth),
      slots_(depth == 1 ? 1 : depth + 1) {
  for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  to_submit_.reserve(depth);
  completions_.reserve(slots_.size());
}

Result<std::unique_ptr<SampleReader>> SampleReader::make(const Manifest& manifest, Backend& backend,
                                                         HeldObjects& objects, std::size_t depth) {
  std::unique_ptr<SampleReader> reader(new SampleReader(manifest, backend, objects, depth));
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

Result<Operation> SampleReader::operation(Slot& slot) {
  const SampleEntry& entry = manifest_.sample(slot.ticket.index);
  const std::string_view name = manifest_.object_name(entry.object, slot.name_scratch);
  slot.name.assign(name);
  slot.length = entry.length;
  if (entry.length == 0) return make_error(Errc::truncated, "'" + slot.name + "' is empty");
  const auto room = static_cast<std::size_t>(whole_blocks(entry.length));
  slot.buffer.grow(room);
  const auto tag = static_cast<std::uint64_t>(&slot - slots_.data());
  if (whole_objects_) return Operation{ReadObject{slot.name, entry.length, slot.buffer.first(room)}, tag};
  PENSTOCK_ASSIGN(Reader* const reader, reader_of(slot));
  return Operation{ReadAt{reader, entry.offset, slot.buffer.first(static_cast<std::size_t>(entry.length))},
                   tag};
}

void SampleReader::begin(const Ticket& ticket) {
  if (free_.empty()) free_.push_back(*std::exchange(lent_, std::nullopt));
  const std::uint32_t place = free_.back();
  free_.pop_back();
  ++on_their_way_;
  slots_[place].ticket = ticket;
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
    arrival.bytes = std::span<const std::byte>(slot.buffer.first(static_cast<std::size_t>(slot.length)));
  }
  return arrival;
}

SampleReader::Arrival SampleReader::next() {
  if (lent_) free_.push_back(*std::exchange(lent_, std::nullopt));
  if (!to_submit_.empty()) {
    if (queue_) {
      const std::size_t taken = queue_->submit(to_submit_, Start::with_reap);
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
  }
  Completion done = std::move(completions_.back());
  completions_.pop_back();
  --on_their_way_;
  lent_ = static_cast<std::uint32_t>(done.tag);
  return arrival(slots_[*lent_], std::move(done.bytes));
}

}  // namespace penstock
