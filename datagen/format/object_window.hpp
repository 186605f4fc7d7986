// Reads an object through a buffer that moves forward over it (a window). Scans use it, because they read
// headers and skip the bytes between them. It reads large sequential pieces if the requested places are close
// together, and small pieces if they are far apart. Uses at most kWindowBytes bytes of memory. Only one
// thread at a time may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datagen/format/byte_window.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/checksums/checksums_count.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class ObjectWindow final : public ByteWindow {
 public:
  static constexpr size_t kWindowBytes = size_t{1} << 20;

  static Result<ObjectWindow> open(Backend& backend, const Entry& object);
  // Reads with the caller's reader, which must outlive the window.
  ObjectWindow(Reader& reader, const Entry& object)
      : reader_(&reader), name_(object.name), size_(object.bytes) {}

  uint64_t size() const { return size_; }  // bytes of the object, from its Entry
  // Whether a read of the object has failed. If not, an error is about the bytes that were read.
  bool has_read_error() const { return has_read_error_; }

  // The `length` bytes at `offset`. `length` is at most kMostReadBytes. `truncated` if the object does not
  // contain all of them.
  static constexpr size_t kMostReadBytes = kWindowBytes - kBufferAlignment;
  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override;
  size_t most_bytes() const override { return kMostReadBytes; }
  uint64_t end() const override { return size_; }

  // Makes an error whose message has the form "'a.tar' at byte 512: WHAT".
  Error error(Errc code, uint64_t offset, std::string_view what) const override;

 private:
  ObjectWindow(std::unique_ptr<Reader> reader, const Entry& object) : ObjectWindow(*reader, object) {
    own_reader_ = std::move(reader);
  }
  Result<void> slide(uint64_t offset, size_t length);

  std::unique_ptr<Reader> own_reader_;
  Reader* reader_;
  std::string name_;
  uint64_t size_;
  Buffer buffer_;
  uint64_t begin_ = 0;  // the window has the bytes [begin_, end_) of the object
  uint64_t end_ = 0;
  bool has_read_error_ = false;
};

}  // namespace penstock
