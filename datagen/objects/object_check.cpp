// Threads: any thread may call these functions, each with its own Reader and Buffer. A Manifest and an
// ObjectIndex are immutable and shared.
// Lock: the local mutex of check_object_sizes() guards its list of wrong objects. The other functions have no
// lock.
// Memory: a Buffer of capacity 0 grows to 1 MiB. Verdicts and errors allocate.
// Ctrl-C: checked between pieces and between objects.
// Crash: files are only read.
#include "datagen/objects/object_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include "datagen/format/form_reader.hpp"
#include "datagen/format/object_window.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

ObjectIndex::ObjectIndex(const Manifest& manifest) : object_is_sample_(manifest.one_object_per_sample()) {
  if (object_is_sample_) return;
  object_starts_.resize(size_t(manifest.objects()) + 1);
  bool is_sorted = true;
  for (uint64_t i = 0; i < manifest.samples(); ++i) {
    const uint32_t object = manifest.sample(i).object;
    ++object_starts_[size_t{object} + 1];
    is_sorted = is_sorted && (i == 0 || manifest.sample(i - 1).object <= object);
  }
  for (size_t i = 1; i < object_starts_.size(); ++i) object_starts_[i] += object_starts_[i - 1];
  if (is_sorted) return;
  by_object_.resize(size_t(manifest.samples()));
  std::vector<uint64_t> next_index(object_starts_.begin(), object_starts_.end() - 1);
  for (uint64_t i = 0; i < manifest.samples(); ++i) by_object_[next_index[manifest.sample(i).object]++] = i;
}

std::string_view object_state_name(ObjectState state) {
  constexpr std::string_view kNames[] = {"right", "vanished", "shrunk", "grown", "wrong_bytes", "unreadable"};
  return kNames[size_t(state)];
}

Result<uint32_t> crc32c_of(Reader& reader, uint64_t offset, uint64_t length, Buffer& buffer) {
  if (buffer.capacity() == 0) buffer.grow(size_t{1} << 20);
  uint32_t crc = 0;
  while (length > 0) {
    PENSTOCK_TRY(check_interrupt());
    const auto piece = buffer.first(size_t(std::min<uint64_t>(length, buffer.capacity())));
    PENSTOCK_TRY(reader.read_at(offset, piece));
    crc = crc32c(piece, crc);
    offset += piece.size();
    length -= piece.size();
  }
  return crc;
}

namespace {

// Computes the CRC32C of those samples of an object that have forms.
class UnpackedCrcs {
 public:
  UnpackedCrcs(Reader& reader, const Manifest& manifest, uint64_t object)
      : samples_(manifest),
        window_(reader, {.name = std::string(manifest.object_name(object, name_)),
                         .bytes = manifest.object_bytes(object)}) {}
  // Passes the CRC32C of a sample to `visit`, or the error if its bytes are damaged. Fails with any other
  // error. Does nothing after a damaged sample: the others may be in the same chunks, which would be unpacked
  // again for each of them.
  Result<void> visit(uint64_t sample, const VisitCrc& visit) {
    if (has_damage_) return success();
    const Result<uint32_t> crc = samples_.crc32c_of(sample, window_);
    has_damage_ = !crc.ok() && !window_.has_read_error() && SampleUnpacker::is_damage(crc.error());
    if (!crc.ok() && !has_damage_) return crc.error();
    return visit(sample, crc);
  }

 private:
  std::string name_;
  SampleUnpacker samples_;
  ObjectWindow window_;
  bool has_damage_ = false;
};

// Reads an object once from front to back, in pieces as large as the buffer.
class PieceReader {
 public:
  PieceReader(Reader& reader, uint64_t bytes, Buffer& buffer)
      : reader_(reader), object_bytes_(bytes), buffer_(buffer) {
    if (buffer_.capacity() == 0) buffer_.grow(size_t{1} << 20);
  }

  uint64_t position() const { return bytes_read_ - piece_.size(); }
  uint64_t left() const { return object_bytes_ - position(); }
  uint32_t whole_crc() const { return whole_crc_; }  // CRC32C of all bytes that next() has used

  // Returns the CRC32C of the next `length` bytes, which must be at most left().
  Result<uint32_t> next(uint64_t length) {
    uint32_t crc = 0;
    for (uint64_t left = length; left > 0;) {
      if (piece_.empty()) PENSTOCK_TRY(read_piece());
      const auto part = piece_.first(size_t(std::min<uint64_t>(left, piece_.size())));
      crc = crc32c(part, crc);
      piece_ = piece_.subspan(part.size());
      left -= part.size();
    }
    whole_crc_ = crc32c_combine(whole_crc_, crc, length);
    return crc;
  }

 private:
  Result<void> read_piece() {
    PENSTOCK_TRY(check_interrupt());
    const auto piece =
        buffer_.first(size_t(std::min<uint64_t>(object_bytes_ - bytes_read_, buffer_.capacity())));
    PENSTOCK_TRY(reader_.read_at(bytes_read_, piece));
    bytes_read_ += piece.size();
    piece_ = piece;
    return success();
  }

  Reader& reader_;
  const uint64_t object_bytes_;
  Buffer& buffer_;
  uint64_t bytes_read_ = 0;
  std::span<const std::byte> piece_;  // the part of the piece that next() has not used yet
  uint32_t whole_crc_ = 0;
};

}  // namespace

Result<uint32_t> checksums_of(Reader& reader, const Manifest& manifest, const ObjectIndex& index,
                              uint64_t object, Buffer& buffer, const VisitCrc& visit) {
  const uint64_t bytes = manifest.object_bytes(object);
  if (manifest.one_object_per_sample()) {
    PENSTOCK_ASSIGN(const uint32_t crc, crc32c_of(reader, 0, bytes, buffer));
    PENSTOCK_TRY(visit(object, crc));
    return crc;
  }
  PieceReader pieces(reader, bytes, buffer);
  Buffer second_buffer;
  std::optional<UnpackedCrcs> unpacked_crcs;
  if (manifest.forms() > 0) unpacked_crcs.emplace(reader, manifest, object);
  Result<void> visited = index.for_each_sample(object, [&](uint64_t sample) -> Result<void> {
    const SampleEntry& entry = manifest.sample(sample);
    if (entry.form != 0) return unpacked_crcs->visit(sample, visit);
    const bool is_in_order =
        entry.offset >= pieces.position() && entry.offset <= bytes && entry.length <= bytes - entry.offset;
    if (is_in_order) PENSTOCK_TRY(pieces.next(entry.offset - pieces.position()));
    PENSTOCK_ASSIGN(const uint32_t crc, is_in_order
                                            ? pieces.next(entry.length)
                                            : crc32c_of(reader, entry.offset, entry.length, second_buffer));
    return visit(sample, crc);
  });
  PENSTOCK_TRY(std::move(visited));
  PENSTOCK_TRY(pieces.next(pieces.left()));
  return pieces.whole_crc();
}

bool concerns_object(const Error& error) {
  return error.code != Errc::interrupted && error.code != Errc::exhausted && error.code != Errc::internal;
}

// Changes the code of errors whose own code would blame the command line to `corrupt`. Here the data are
// wrong, not the command line.
Error as_data_error(Error error) {
  const int cause = error.sys_errno;
  if (cause == EISDIR || cause == ELOOP || cause == ENAMETOOLONG) error.code = Errc::corrupt;
  return error;
}

namespace {

ObjectVerdict verdict_of_size(uint64_t bytes, uint64_t expected) {
  if (bytes == expected) return {};
  return {bytes < expected ? ObjectState::shrunk : ObjectState::grown,
          fmt::format("{} bytes, and the manifest lists {}", format_count(bytes), format_count(expected))};
}

Result<ObjectVerdict> verdict_of(const Error& error) {
  if (!concerns_object(error)) return error;
  switch (error.code) {
    case Errc::not_found:
      return ObjectVerdict{ObjectState::vanished, error.message()};
    case Errc::truncated:
      return ObjectVerdict{ObjectState::shrunk, error.message()};
    default:
      return ObjectVerdict{ObjectState::unreadable, error.message()};
  }
}

// Compares only the size. So a verdict `right` says nothing about the bytes.
Result<ObjectVerdict> check_object_size(Namespace& names, const Manifest& manifest, uint64_t object,
                                        std::string_view name) {
  const Result<Entry> entry = names.stat(name);
  // A link that leads in circles (ELOOP) has no content, like a dangling link.
  if (!entry.ok() && entry.error().code != Errc::not_found && entry.error().sys_errno != ELOOP)
    return as_data_error(entry.error());
  if (!entry.ok()) return ObjectVerdict{ObjectState::vanished, entry.error().message(), object};
  if (entry->folder) return ObjectVerdict{ObjectState::vanished, "it is a folder", object};
  ObjectVerdict verdict = verdict_of_size(entry->bytes, manifest.object_bytes(object));
  verdict.object = object;
  verdict.bytes = entry->bytes;
  return verdict;
}

}  // namespace

Result<std::vector<ObjectVerdict>> check_object_sizes(Namespace& names, const Manifest& manifest,
                                                      unsigned threads) {
  // parallel_for() calls `check` on several threads. The mutex protects only `wrong_objects`, and is not held
  // during I/O. After Ctrl-C, parallel_for() ends before the next object.
  std::vector<ObjectVerdict> wrong_objects;
  std::mutex mutex;
  std::vector<std::string> scratch(threads);
  const auto check = [&](unsigned worker, uint64_t object) -> Result<void> {
    const std::string_view name = manifest.object_name(object, scratch[worker]);
    PENSTOCK_ASSIGN(ObjectVerdict inspected, check_object_size(names, manifest, object, name));
    if (inspected.state == ObjectState::right) return success();
    const std::lock_guard lock(mutex);
    wrong_objects.push_back(std::move(inspected));
    return success();
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 64, check));
  std::sort(wrong_objects.begin(), wrong_objects.end(),
            [](const ObjectVerdict& a, const ObjectVerdict& b) { return a.object < b.object; });
  return wrong_objects;
}

Result<ObjectVerdict> check_object(Backend& backend, const Manifest& manifest, const ObjectIndex& index,
                                   uint64_t object, std::string_view name, Buffer& buffer) {
  const auto reader = backend.open(name);
  if (!reader.ok()) return verdict_of(reader.error());
  const auto size = (*reader)->size();
  if (!size.ok()) return verdict_of(size.error());
  ObjectVerdict verdict = verdict_of_size(*size, manifest.object_bytes(object));
  if (verdict.state != ObjectState::right) return verdict;
  const auto is_wrong = [&](uint32_t crc, uint32_t expected, std::string_view where) {
    verdict = {ObjectState::wrong_bytes,
               fmt::format("checksum {:08x}, and the manifest lists {:08x}{}", crc, expected, where)};
  };
  const auto compare_sample = [&](uint64_t sample, const Result<uint32_t>& crc) {
    // Only the first wrong sample of an object goes into the verdict.
    if (!manifest.facts().checksums || verdict.state != ObjectState::right) return success();
    const std::string where = manifest.one_object_per_sample() ? "" : fmt::format(" (sample {})", sample);
    const uint32_t expected = manifest.sample(sample).crc32c;
    if (!crc.ok())
      verdict = {ObjectState::wrong_bytes, crc.error().message() + where};
    else if (*crc != expected)
      is_wrong(*crc, expected, where);
    return success();
  };
  if (const auto expected = manifest.object_crc32c(object)) {
    const auto crc = checksums_of(**reader, manifest, index, object, buffer, compare_sample);
    if (!crc.ok()) return verdict_of(crc.error());
    if (*crc != *expected && verdict.state == ObjectState::right)
      is_wrong(*crc, *expected, " (outside of samples)");
    return verdict;
  }
  if (!manifest.facts().checksums) return verdict;
  std::optional<UnpackedCrcs> unpacked_crcs;
  if (manifest.forms() > 0) unpacked_crcs.emplace(**reader, manifest, object);
  const Result<void> compared = index.for_each_sample(object, [&](uint64_t sample) -> Result<void> {
    const SampleEntry& entry = manifest.sample(sample);
    if (entry.form != 0) return unpacked_crcs->visit(sample, compare_sample);
    PENSTOCK_ASSIGN(const uint32_t crc, crc32c_of(**reader, entry.offset, entry.length, buffer));
    return compare_sample(sample, crc);
  });
  if (!compared.ok()) return verdict_of(compared.error());
  return verdict;
}

}  // namespace penstock
