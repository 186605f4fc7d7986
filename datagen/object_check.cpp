#include "datagen/object_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io_backends/base/crc32c.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/units.hpp"

namespace penstock {

ObjectIndex::ObjectIndex(const Manifest& manifest) : identity_(manifest.one_object_a_sample()) {
  if (identity_) return;
  starts_.resize(static_cast<std::size_t>(manifest.objects()) + 1);
  bool sorted = true;
  for (std::uint64_t i = 0; i < manifest.samples(); ++i) {
    const std::uint32_t object = manifest.sample(i).object;
    ++starts_[std::size_t{object} + 1];
    sorted = sorted && (i == 0 || manifest.sample(i - 1).object <= object);
  }
  for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  if (sorted) return;
  order_.resize(static_cast<std::size_t>(manifest.samples()));
  std::vector<std::uint64_t> next(starts_.begin(), starts_.end() - 1);
  for (std::uint64_t i = 0; i < manifest.samples(); ++i) order_[next[manifest.sample(i).object]++] = i;
}

std::string_view object_state_name(ObjectState state) {
  switch (state) {
    case ObjectState::right:
      return "right";
    case ObjectState::vanished:
      return "vanished";
    case ObjectState::shrunk:
      return "shrunk";
    case ObjectState::grown:
      return "grown";
    case ObjectState::wrong_bytes:
      return "wrong_bytes";
    case ObjectState::unreadable:
      return "unreadable";
  }
  return "unknown";
}

Result<std::uint32_t> crc32c_of(Reader& reader, std::uint64_t offset, std::uint64_t length, Buffer& buffer) {
  if (buffer.capacity() == 0) buffer.grow(std::size_t{1} << 20);
  std::uint32_t crc = 0;
  while (length > 0) {
    PENSTOCK_TRY(check_interrupt());
    const auto piece =
        buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(length, buffer.capacity())));
    PENSTOCK_TRY(reader.read_at(offset, piece));
    crc = crc32c(piece, crc);
    offset += piece.size();
    length -= piece.size();
  }
  return crc;
}

bool tells_of_object(const Error& error) {
  return error.code != Errc::interrupted && error.code != Errc::exhausted && error.code != Errc::internal;
}

namespace {

Result<ObjectVerdict> verdict_of(const Error& error) {
  if (!tells_of_object(error)) return error;
  switch (error.code) {
    case Errc::not_found:
      return ObjectVerdict{ObjectState::vanished, error.message()};
    case Errc::truncated:
      return ObjectVerdict{ObjectState::shrunk, error.message()};
    default:
      return ObjectVerdict{ObjectState::unreadable, error.message()};
  }
}

}  // namespace

Result<ObjectVerdict> check_object(Backend& backend, const Manifest& manifest, const ObjectIndex& index,
                                   std::uint64_t object, std::string_view name, Buffer& buffer) {
  const auto reader = backend.open(name);
  if (!reader.ok()) return verdict_of(reader.error());
  const auto size = (*reader)->size();
  if (!size.ok()) return verdict_of(size.error());
  if (const std::uint64_t wanted = manifest.object_bytes(object); *size != wanted)
    return ObjectVerdict{
        *size < wanted ? ObjectState::shrunk : ObjectState::grown,
        fmt::format("{} bytes, the manifest says {}", format_count(*size), format_count(wanted))};
  ObjectVerdict verdict;
  if (!manifest.facts().checksums) return verdict;
  const Result<void> read = index.for_each_sample(object, [&](std::uint64_t sample) -> Result<void> {
    const SampleEntry& entry = manifest.sample(sample);
    PENSTOCK_ASSIGN(const std::uint32_t crc, crc32c_of(**reader, entry.offset, entry.length, buffer));
    if (crc == entry.crc32c || verdict.state != ObjectState::right) return success();
    verdict.state = ObjectState::wrong_bytes;
    verdict.detail = fmt::format("checksum {:08x}, the manifest says {:08x}", crc, entry.crc32c);
    if (!manifest.one_object_a_sample()) verdict.detail += fmt::format(" (sample {})", sample);
    return success();
  });
  if (!read.ok()) return verdict_of(read.error());
  return verdict;
}

}  // namespace penstock
