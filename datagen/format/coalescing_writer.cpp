#include "datagen/format/coalescing_writer.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

Result<void> CoalescingWriter::append(const FieldBytes& field) {
  crc32c_ = crc32c_of(field, crc32c_);
  offset_ += field.bytes;
  if (field.bytes < kNotCopiedBytes) {
    for (const std::span<const std::byte> piece : field.pieces)
      gathered_.insert(gathered_.end(), piece.begin(), piece.end());
    if (gathered_.size() < kBatchBytes) return success();
  }
  batch_.clear();
  if (!gathered_.empty()) batch_.emplace_back(gathered_);
  if (field.bytes >= kNotCopiedBytes) batch_.insert(batch_.end(), field.pieces.begin(), field.pieces.end());
  move_to_tail(offset_ % kPageBytes);
  PENSTOCK_TRY(writer_->append(batch_));
  gathered_.swap(tail_);
  return success();
}

// Moves the last `bytes` bytes from batch_ to tail_. batch_ must have more bytes than that.
void CoalescingWriter::move_to_tail(size_t bytes) {
  tail_.resize(bytes);
  while (bytes > 0) {
    std::span<const std::byte>& last = batch_.back();
    const size_t moved_bytes = std::min(bytes, last.size());
    bytes -= moved_bytes;
    std::copy_n(last.end() - ptrdiff_t(moved_bytes), moved_bytes, tail_.begin() + ptrdiff_t(bytes));
    last = last.first(last.size() - moved_bytes);
    if (last.empty()) batch_.pop_back();
  }
}

Result<void> CoalescingWriter::flush() {
  if (gathered_.empty()) return success();
  PENSTOCK_TRY(writer_->append(gathered_));
  gathered_.clear();
  return success();
}

Result<void> CoalescingWriter::append_placeholder(std::span<const std::byte> bytes) {
  placeholder_offset_ = offset_;
  placeholder_bytes_ = bytes.size();
  placeholder_crc32c_ = crc32c(bytes);
  return append(bytes);
}

Result<void> CoalescingWriter::replace_placeholder(std::span<const std::byte> bytes) {
  if (bytes.size() != placeholder_bytes_)
    return make_error(Errc::internal, "a placeholder was replaced by another number of bytes");
  // Updates the checksum without reading the object again. A CRC is linear, so the XOR of the CRCs of the old
  // and the new bytes is the CRC of their difference. crc32c_combine() extends it over the bytes after the
  // placeholder. The XOR with the old checksum of the object then gives the new one.
  const uint64_t bytes_after = offset_ - placeholder_offset_ - placeholder_bytes_;
  crc32c_ ^= crc32c_combine(placeholder_crc32c_ ^ crc32c(bytes), 0, bytes_after);
  PENSTOCK_TRY(flush());
  return writer_->write_at(placeholder_offset_, bytes);
}

Result<PublishedObject> CoalescingWriter::publish(Durability durability, const Approval& approve) {
  PENSTOCK_TRY(flush());
  const PublishedObject written{offset_, crc32c_};
  if (approve) PENSTOCK_TRY(approve(written));
  PENSTOCK_TRY(writer_->publish(durability));
  return written;
}

namespace {

class BufferedWriter final : public Writer {
 public:
  BufferedWriter(std::unique_ptr<Writer> inner, std::string_view name)
      : inner_(std::move(inner)), name_(name) {}

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    if (bytes.size() > kMostBufferedBytes - buffered_.size())
      return make_error(Errc::unsupported,
                        "'{}' must be updated after it is written. Its back end cannot do that, and the "
                        "object exceeds the {} MiB that can wait in memory: put fewer samples into an object",
                        name_, kMostBufferedBytes >> 20U);
    buffered_.insert(buffered_.end(), bytes.begin(), bytes.end());
    return success();
  }

  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset > buffered_.size() || bytes.size() > buffered_.size() - offset)
      return make_error(Errc::internal, "a write at an offset after the end of '{}'", name_);
    std::copy(bytes.begin(), bytes.end(), buffered_.begin() + ptrdiff_t(offset));
    return success();
  }

  Result<void> publish(Durability wanted, IfExists if_exists) override {
    PENSTOCK_TRY(inner_->append(buffered_));
    return inner_->publish(wanted, if_exists);
  }

 private:
  const std::unique_ptr<Writer> inner_;
  const std::string name_;
  std::vector<std::byte> buffered_;
};

}  // namespace

Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 uint64_t bytes_hint) {
  PENSTOCK_ASSIGN(auto writer, backend.create(name, bytes_hint));
  if (backend.caps().write_at) return writer;
  return std::unique_ptr<Writer>(std::make_unique<BufferedWriter>(std::move(writer), name));
}

}  // namespace penstock
