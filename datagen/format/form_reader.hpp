// Reads samples that are not in their object as they are: undoes the filters of chunks, and inflates
// compressed streams. A StoredForm (stored_form.hpp) says how the bytes are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "datagen/format/byte_window.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/manifest/stored_form.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The smallest part of the object that has all chunks with these bytes of the array.
Extent stored_range(const ChunkedArray& array, const SampleExtent& extent);

// Reads parts of one array or stream. Only one thread at a time may use it.
//
// Memory: for an array, a chunk and the rows that were asked for, or more rows of the same chunks, up to
// 64 MiB. They are kept, so that reading the rows in order opens each chunk once, or once for each 64 MiB of
// rows. If HDF5's library undoes filters, also a stored chunk and a chunk that are shared with its process.
// For a stream, the bytes that were asked for and 50 KiB.
class FormReader {
 public:
  FormReader();
  FormReader(FormReader&&) noexcept;
  FormReader& operator=(FormReader&&) noexcept;
  ~FormReader();

  // Reads by this form from now on, and reuses the memory of the form before. What the form refers to must
  // live as long as it is used. Errors: `unsupported` if the build lacks zlib and the form needs it.
  // `exhausted` if there is no memory.
  Result<void> use(StoredForm form);

  // Forgets what earlier reads undid. The next read then uses nothing but its own `stored`.
  void forget();

  // Returns bytes of the array or the stream; they are valid until the next call. `stored` has the stored
  // bytes, by their offsets in the object. Errors: `corrupt` if stored bytes are damaged. `truncated` if
  // `stored` lacks some of them. `exhausted` if there is no memory. Those of LibraryFilters::undo().
  // `extent` must be inside the form.
  Result<std::span<const std::byte>> read(ByteWindow& stored, const SampleExtent& extent);

 private:
  class Chunks;
  class Stream;
  std::unique_ptr<Chunks> chunks_;
  std::unique_ptr<Stream> stream_;
  bool is_stream_ = false;
};

// Gives the bytes of a manifest's samples from their stored bytes, also if they have forms. Only one thread
// at a time may use it.
class SampleUnpacker {
 public:
  // Refuses samples of more than `most_bytes` bytes. The manifest must outlive this object.
  explicit SampleUnpacker(const Manifest& manifest, uint64_t most_bytes = UINT64_MAX)
      : manifest_(&manifest), most_bytes_(most_bytes) {}

  // The bytes of a sample, whose entry has the bytes `stored`. If it has no form, this is `stored` itself;
  // otherwise they are valid until the next call. Errors: those of FormReader::read(). `unsupported` if the
  // sample is too large, or the build lacks what its form needs. Messages do not name the object.
  Result<std::span<const std::byte>> open(uint64_t sample, std::span<const std::byte> stored) {
    if (manifest_->sample(sample).form == 0) return stored;
    return open_form(sample, stored);
  }
  // Whether an error of open() or crc32c_of() says that the stored bytes are damaged. Other errors say
  // nothing about them.
  static bool is_damage(const Error& error) {
    return error.code == Errc::corrupt || error.code == Errc::truncated;
  }
  // The CRC32C of a sample from its stored bytes, and from nothing that was read before. Errors: as open().
  Result<uint32_t> crc32c_of(uint64_t sample, std::span<const std::byte> stored);
  // The CRC32C of a sample that has a form. `object` is a window on its object. Has at most 64 MiB of the
  // sample in memory, or one row of an array.
  Result<uint32_t> crc32c_of(uint64_t sample, ByteWindow& object);

 private:
  Result<std::span<const std::byte>> open_form(uint64_t sample, std::span<const std::byte> stored);
  Result<void> use_form(uint32_t form);

  const Manifest* manifest_;
  uint64_t most_bytes_;
  uint32_t form_in_use_ = 0;  // as in SampleEntry
  FormReader reader_;
};

}  // namespace penstock
