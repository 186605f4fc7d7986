#include "datagen/format/coalescing_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

Result<void> CoalescingWriter::append(const FieldBytes& field) {
  crc32c_ = crc32c_of(field, crc32c_);
  offset_ += field.bytes;
  if (field.bytes < kLarge) {
    for (const std::span<const std::byte> piece : field.pieces)
      gathered_.insert(gathered_.end(), piece.begin(), piece.end());
    if (gathered_.size() < kGathered) return success();
  }
  together_.clear();
  if (!gathered_.empty()) together_.emplace_back(gathered_);
  if (field.bytes >= kLarge) together_.insert(together_.end(), field.pieces.begin(), field.pieces.end());
  hold_back(offset_ % kPage);
  PENSTOCK_TRY(writer_->append(together_));
  gathered_.swap(held_back_);
  return success();
}

// Moves the last `bytes` bytes of together_ to held_back_. together_ has more bytes than that.
void CoalescingWriter::hold_back(std::size_t bytes) {
  held_back_.resize(bytes);
  while (bytes > 0) {
    std::span<const std::byte>& last = together_.back();
    const std::size_t taken = std::min(bytes, last.size());
    bytes -= taken;
    std::copy_n(last.end() - static_cast<std::ptrdiff_t>(taken), taken,
                held_back_.begin() + static_cast<std::ptrdiff_t>(bytes));
    last = last.first(last.size() - taken);
    if (last.empty()) together_.pop_back();
  }
}

Result<void> CoalescingWriter::flush() {
  if (gathered_.empty()) return success();
  PENSTOCK_TRY(writer_->append(gathered_));
  gathered_.clear();
  return success();
}

Result<void> CoalescingWriter::append_draft(std::span<const std::byte> bytes) {
  draft_offset_ = offset_;
  draft_bytes_ = bytes.size();
  draft_crc32c_ = crc32c(bytes);
  return append(bytes);
}

Result<void> CoalescingWriter::replace_draft(std::span<const std::byte> bytes) {
  if (bytes.size() != draft_bytes_) return make_error(Errc::internal, "other bytes than a draft held for");
  // A CRC is linear. If bytes change but not their number, the checksum changes by the CRC of the difference,
  // shifted over all bytes after them.
  const std::uint64_t behind = offset_ - draft_offset_ - draft_bytes_;
  crc32c_ ^= crc32c_combine(draft_crc32c_ ^ crc32c(bytes), 0, behind);
  PENSTOCK_TRY(flush());
  return writer_->write_at(draft_offset_, bytes);
}

Result<PublishedObject> CoalescingWriter::publish(Durability durability, const Approval& approve) {
  PENSTOCK_TRY(flush());
  const PublishedObject written{offset_, crc32c_};
  if (approve) PENSTOCK_TRY(approve(written));
  PENSTOCK_TRY(writer_->publish(durability));
  return written;
}

namespace {

class HeldWriter final : public Writer {
 public:
  HeldWriter(std::unique_ptr<Writer> inner, std::string_view name) : inner_(std::move(inner)), name_(name) {}

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    if (bytes.size() > kMostHeldBytes - held_.size())
      return make_error(
          Errc::unsupported,
          fmt::format("'{}' must be written over when it is whole, which its back end cannot, and "
                      "has more than the {} MiB that wait for that in memory: put fewer samples "
                      "into an object",
                      name_, kMostHeldBytes >> 20U));
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return success();
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset > held_.size() || bytes.size() > held_.size() - offset)
      return make_error(Errc::internal, fmt::format("a patch behind the end of '{}'", name_));
    std::copy(bytes.begin(), bytes.end(), held_.begin() + static_cast<std::ptrdiff_t>(offset));
    return success();
  }

  Result<void> publish(Durability wanted, IfExists if_exists) override {
    PENSTOCK_TRY(inner_->append(held_));
    return inner_->publish(wanted, if_exists);
  }

 private:
  const std::unique_ptr<Writer> inner_;
  const std::string name_;
  std::vector<std::byte> held_;
};

}  // namespace

Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 std::uint64_t bytes_hint) {
  PENSTOCK_ASSIGN(auto writer, backend.create(name, bytes_hint));
  if (backend.caps().write_at) return writer;
  return std::unique_ptr<Writer>(std::make_unique<HeldWriter>(std::move(writer), name));
}

}  // namespace penstock
