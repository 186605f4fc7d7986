// Writes an object in pieces of any size, for formats that put many samples into one object. Gathers small
// pieces and writes them together. Passes large pieces to the storage without a copy. Each write but the last
// ends at a multiple of kPageBytes in the object. Bytes after that are copied and wait for the next write, so
// that no page is written in two parts. Computes the checksum of all bytes. Only one thread at a time may use
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class CoalescingWriter {
 public:
  static constexpr size_t kBatchBytes = size_t{1} << 20;  // a write begins when this many bytes are gathered
  // Fields of at least this size are passed to the storage without a copy.
  static constexpr size_t kNotCopiedBytes = size_t{16} << 10;
  static constexpr size_t kPageBytes = 4096;

  explicit CoalescingWriter(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}

  // Bytes appended so far, which is the offset of the next byte.
  uint64_t offset() const { return offset_; }

  // Appends the bytes of `field` to the object. The caller may reuse the memory of the field after the call.
  // Errors are those of the Writer. An error may concern bytes of an earlier call, because these may have
  // been gathered and not written.
  Result<void> append(const FieldBytes& field);
  Result<void> append(std::span<const std::byte> bytes) {
    return append(FieldBytes{.pieces = {&bytes, 1}, .bytes = bytes.size()});
  }
  Result<void> append(std::string_view text) { return append(std::as_bytes(std::span(text))); }

  // These two functions are for a part of the object that is known only at the end, such as a header.
  // append_placeholder() appends other bytes at the position of the part, and replace_placeholder() later
  // writes the real bytes over them. Both calls must pass the same number of bytes. An object can have only
  // one placeholder, and the Writer must support write_at.
  Result<void> append_placeholder(std::span<const std::byte> bytes);
  Result<void> replace_placeholder(std::span<const std::byte> bytes);

  // Writes the gathered bytes and gives the object its name.
  Result<PublishedObject> publish(Durability durability, const Approval& approve = {});

 private:
  Result<void> flush();
  void move_to_tail(size_t bytes);

  std::unique_ptr<Writer> writer_;
  std::vector<std::byte> gathered_;
  std::vector<std::byte> tail_;
  std::vector<std::span<const std::byte>> batch_;
  uint64_t offset_ = 0;
  uint32_t crc32c_ = 0;
  uint64_t placeholder_offset_ = 0;
  uint64_t placeholder_bytes_ = 0;
  uint32_t placeholder_crc32c_ = 0;
};

// Creates a Writer whose write_at works on every back end, for objects whose header is known only at their
// end. If the back end lacks Caps::write_at, the object is kept in memory until it is published. It can then
// have at most kMostBufferedBytes bytes; the error for a larger object is `unsupported`.
Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 uint64_t bytes_hint);

inline constexpr uint64_t kMostBufferedBytes = uint64_t{256} << 20;

}  // namespace penstock
