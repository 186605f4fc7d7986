#include "datagen/format/gathering_writer.hpp"

#include <utility>

namespace penstock {

Result<void> GatheringWriter::append(std::span<const std::span<const std::byte>> pieces) {
  std::uint64_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) bytes += piece.size();
  offset_ += bytes;
  if (bytes < kLarge) {
    for (const std::span<const std::byte> piece : pieces)
      gathered_.insert(gathered_.end(), piece.begin(), piece.end());
    return gathered_.size() < kGathered ? success() : flush();
  }
  together_.clear();
  if (!gathered_.empty()) together_.emplace_back(gathered_);
  together_.insert(together_.end(), pieces.begin(), pieces.end());
  PENSTOCK_TRY(writer_->append(together_));
  gathered_.clear();
  return success();
}

Result<void> GatheringWriter::flush() {
  if (gathered_.empty()) return success();
  PENSTOCK_TRY(writer_->append(gathered_));
  gathered_.clear();
  return success();
}

Result<void> GatheringWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  PENSTOCK_TRY(flush());
  return writer_->write_at(offset, bytes);
}

Result<std::uint64_t> GatheringWriter::publish(Durability durability) {
  PENSTOCK_TRY(flush());
  PENSTOCK_TRY(writer_->publish(durability));
  return offset_;
}

}  // namespace penstock
