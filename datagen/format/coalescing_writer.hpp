// An object written in pieces of any size: small ones are gathered and written together, large ones go to the
// storage as they are, uncopied but for what is left of their last page, so that no page is written twice.
// For the formats that put many samples into one object. Knows the checksum of all that it was given. One
// thread.
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
  static constexpr std::size_t kGathered = std::size_t{1} << 20;  // bytes gathered before a write
  static constexpr std::size_t kLarge = std::size_t{16} << 10;    // what one call needs to pass uncopied
  static constexpr std::size_t kPage = 4096;

  explicit CoalescingWriter(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}

  // Bytes taken so far: where the next one will lie.
  std::uint64_t offset() const { return offset_; }

  // In the order of the calls. The bytes are the caller's again when they return. Errors are the Writer's and
  // may tell of bytes that an earlier call gave.
  Result<void> append(const FieldBytes& field);
  Result<void> append(std::span<const std::byte> bytes) {
    return append(FieldBytes{.pieces = {&bytes, 1}, .bytes = bytes.size()});
  }
  Result<void> append(std::string_view text) { return append(std::as_bytes(std::span(text))); }

  // As append; once an object, in place of what only its end tells: as many bytes, then written over these
  // where the Writer can.
  Result<void> append_draft(std::span<const std::byte> bytes);
  Result<void> replace_draft(std::span<const std::byte> bytes);

  // Writes what is left and gives the object its name.
  Result<PublishedObject> publish(Durability durability, const Approval& approve = {});

 private:
  Result<void> flush();
  void hold_back(std::size_t bytes);

  std::unique_ptr<Writer> writer_;
  std::vector<std::byte> gathered_;
  std::vector<std::byte> held_back_;
  std::vector<std::span<const std::byte>> together_;
  std::uint64_t offset_ = 0;
  std::uint32_t crc32c_ = 0;
  std::uint64_t draft_offset_ = 0;
  std::uint64_t draft_bytes_ = 0;
  std::uint32_t draft_crc32c_ = 0;
};

// For objects whose head is known only at their end: as Backend::create, and Writer::write_at works, whatever
// the back end: without Caps::write_at the object is in memory until it is published; `unsupported` once it
// has more than kMostHeldBytes.
Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 std::uint64_t bytes_hint);

inline constexpr std::uint64_t kMostHeldBytes = std::uint64_t{256} << 20;

}  // namespace penstock
