// Windows on the bytes of arrays and streams that are stored in another form, for scans: they give a parser
// the bytes after filters and compression are undone, and make the StoredForm by which samples are read
// later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/byte_window.hpp"
#include "datagen/format/form_reader.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/manifest/stored_form.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Offsets are those in the array or the stream, after all is undone.
class UnpackedWindow : public ByteWindow {
 public:
  // The part of the object that must be read to get these bytes. Samples must be asked for in the order of
  // their offsets.
  virtual Result<Extent> stored_range(const SampleExtent& extent) = 0;
  // Completes form(), and checks what a stream has after its last sample.
  virtual Result<void> finish() = 0;
  const SampleForm& form() const { return form_; }

 protected:
  SampleForm form_ = std::make_shared<std::vector<uint64_t>>();
};

// A window on an array in chunks.
class ChunkWindow final : public UnpackedWindow {
 public:
  // `object` must outlive the window.
  static Result<std::shared_ptr<UnpackedWindow>> make(ByteWindow& object, ChunkedArray array,
                                                      std::vector<ChunkedArray::Chunk> chunks);

  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override;
  uint64_t end() const override { return array_.bytes(); }
  Error error(Errc code, uint64_t offset, std::string_view what) const override;
  Result<Extent> stored_range(const SampleExtent& extent) override {
    return penstock::stored_range(array_, extent);
  }
  Result<void> finish() override { return success(); }

 private:
  ChunkWindow(ByteWindow& object, ChunkedArray array, std::vector<ChunkedArray::Chunk> chunks);

  ByteWindow& object_;
  std::vector<ChunkedArray::Chunk> chunks_;
  ChunkedArray array_;
  FormReader reader_;
};

// A window on the inflated bytes of compressed streams that follow one another. It inflates them once, from
// front to back, and only a part of them is in memory. A read may drop the bytes before its offset, and a
// read of dropped bytes is `unsupported`. `length` of at() is at most 64 KiB.
class StreamWindow final : public UnpackedWindow {
 public:
  // The streams are the `extent` of the object, which must outlive the window. Only gzip may have more than
  // one.
  static Result<std::shared_ptr<StreamWindow>> make(ObjectWindow& object, DeflateFormat format,
                                                    const Extent& extent);

  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override;
  size_t most_bytes() const override { return kMostReadBytes; }
  Error error(Errc code, uint64_t offset, std::string_view what) const override;
  Result<Extent> stored_range(const SampleExtent& extent) override;
  Result<void> finish() override;

  // Whether the streams end at `offset`. To find out, it inflates a little more than `offset` bytes.
  Result<bool> ends_at(uint64_t offset);
  // The place in the object of the one stream that has exactly the bytes from `begin` to `end`; nothing if
  // there is none. Call it after ends_at(end).
  std::optional<Extent> stream_between(uint64_t begin, uint64_t end) const;

  // What the inflated bytes must be; finish() fails with `corrupt` if they are not.
  struct Expected {
    uint64_t bytes = 0;
    uint32_t crc32 = 0;
  };
  void expect(const Expected& expected) { expected_ = expected; }

 private:
  static constexpr size_t kMostReadBytes = size_t{64} << 10U;
  // Where inflating can begin. One is kept for about this many inflated bytes, if samples begin after it.
  static constexpr uint64_t kPointDistance = uint64_t{2} << 20U;
  struct Point {
    AccessPoint place;
    std::vector<std::byte> window;
    bool is_used = false;  // whether it is the last point before a sample
  };
  struct Boundary {  // where one stream ends and the next may begin
    uint64_t offset = 0;
    uint64_t stored_offset = 0;
  };

  StreamWindow(ObjectWindow& object, StreamInflater inflater, DeflateFormat format, const Extent& extent);
  Result<void> inflate(uint64_t keep_from);
  Result<void> end_stream();
  void add_point();
  void remove_unused_points(uint64_t before);

  ObjectWindow& object_;
  StreamInflater inflater_;
  CompressedStream stream_;  // without its points
  std::deque<Point> points_;
  std::deque<Boundary> boundaries_{{}};  // from the last one before begin_ on
  std::vector<std::byte> bytes_;         // inflated bytes, from begin_ to end_
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t stored_end_ = 0;  // how many of the stored bytes were used for that
  bool ended_ = false;
  uint32_t crc32_ = 0;  // of all inflated bytes; only if expected_ is set
  std::optional<Expected> expected_;
};

}  // namespace penstock
