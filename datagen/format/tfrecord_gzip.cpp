#include "datagen/format/tfrecord_gzip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/byte_order.hpp"
#include "datagen/format/tf_example.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {

namespace {

constexpr size_t kStepBytes = size_t{64} << 10U;     // bytes of the object that are inflated per step
constexpr size_t kBufferBytes = size_t{128} << 10U;  // the most inflated bytes in memory

// A window on the inflated bytes of a member. Only a part of them is in memory. A read may drop the bytes
// before its offset, and a read of dropped bytes is `unsupported`.
class MemberWindow final : public ByteWindow {
 public:
  MemberWindow(ObjectWindow& object, GzipInflater inflater)
      : object_(object), inflater_(std::move(inflater)), bytes_(kBufferBytes) {}

  // Moves the window to the member at this offset of the object.
  void begin_member(uint64_t offset) {
    inflater_.begin();
    member_offset_ = compressed_end_ = offset;
    begin_ = end_ = 0;
    member_ended_ = false;
  }

  // Like ByteWindow::at(). `length` is at most kBufferBytes / 2.
  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override {
    if (offset < begin_)
      return error(Errc::unsupported, offset, "the name of a feature is after its bytes; gunzip it first");
    while (end_ < offset + length) {
      if (member_ended_)
        return error(Errc::truncated, offset,
                     fmt::format("{} bytes should be here, but the record ends at {}", length, end_));
      PENSTOCK_TRY(inflate(offset));
    }
    return std::span<const std::byte>(bytes_).subspan(size_t(offset - begin_), length);
  }

  // Whether the member has exactly `offset` inflated bytes. To find out, it inflates at most kBufferBytes
  // more than `offset` bytes.
  Result<bool> ends_at(uint64_t offset) {
    while (end_ <= offset && !member_ended_) PENSTOCK_TRY(inflate(offset));
    return end_ == offset;
  }

  // The offset in the object where the member ends. Call it only after ends_at() returned true.
  uint64_t end_offset() const { return compressed_end_; }

  Error error(Errc code, uint64_t offset, std::string_view what) const override {
    return object_.error(code, member_offset_,
                         fmt::format("{} (at byte {} of what is compressed here)", what, offset));
  }

 private:
  // Inflates more bytes. If bytes_ is full, first drops the bytes before `keep_from`.
  Result<void> inflate(uint64_t keep_from) {
    auto buffered_bytes = size_t(end_ - begin_);
    if (buffered_bytes == kBufferBytes) {
      const auto dropped_bytes = size_t(std::min(keep_from, end_) - begin_);
      std::copy(bytes_.begin() + ptrdiff_t(dropped_bytes), bytes_.end(), bytes_.begin());
      begin_ += dropped_bytes;
      buffered_bytes -= dropped_bytes;
    }
    const auto step_bytes = size_t(std::min<uint64_t>(kStepBytes, object_.size() - compressed_end_));
    PENSTOCK_ASSIGN(const auto in, object_.at(compressed_end_, step_bytes));
    const auto step = inflater_.step(in, std::span(bytes_).subspan(buffered_bytes));
    if (!step.ok()) return error(step.error().code, end_, step.error().what);
    compressed_end_ += step->in_bytes;
    end_ += step->out_bytes;
    member_ended_ = step->member_ended;
    if (!member_ended_ && step->in_bytes == 0 && step->out_bytes == 0)
      return error(Errc::truncated, end_,
                   fmt::format("a gzip member does not end, but the object does at {}", object_.size()));
    return success();
  }

  ObjectWindow& object_;
  GzipInflater inflater_;
  std::vector<std::byte> bytes_;  // inflated bytes of the member, from begin_ to end_
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t member_offset_ = 0;   // offset of the member in the object
  uint64_t compressed_end_ = 0;  // offset in the object after the last byte that was inflated
  bool member_ended_ = false;
};

// Returns where the message of the member's first record is. Offsets are those in the inflated bytes.
Result<Extent> first_message(MemberWindow& member, uint64_t object_bytes_left) {
  PENSTOCK_ASSIGN(const auto header, member.at(0, kTfRecordHeaderBytes));
  const uint64_t length = number_at(header, 0, 8);
  if (kVerifyChecksums && !tfrecord_payload_bytes(header.first<kTfRecordHeaderBytes>()))
    return member.corrupt(0, "gzip, but no TFRecord: the checksum of a record's length is wrong");
  if (length / kMostGzipInflation > object_bytes_left)
    return member.error(
        Errc::truncated, 0,
        fmt::format("a record of {} bytes, but only {} compressed ones", length, object_bytes_left));
  return Extent{kTfRecordHeaderBytes, length};
}

}  // namespace

Result<void> scan_tfrecord_gzip(ObjectWindow& object, const Format::Visit& visit_sample) {
  auto inflater = GzipInflater::start();
  if (!inflater.ok())
    return object.error(inflater.error().code, 0,
                        "compressed with gzip, and " + inflater.error().what + "; gunzip it first");
  MemberWindow member(object, *std::move(inflater));
  std::string codec;
  for (uint64_t at = 0; at < object.size(); at = member.end_offset()) {
    member.begin_member(at);
    PENSTOCK_ASSIGN(const bool is_empty, member.ends_at(0));
    if (is_empty) continue;
    PENSTOCK_ASSIGN(const Extent message, first_message(member, object.size() - at));
    PENSTOCK_ASSIGN(const TfExampleParts example, find_in_record(member, message));
    const uint64_t end = message.offset + message.length + kTfRecordFooterBytes;
    PENSTOCK_TRY(member.at(end - kTfRecordFooterBytes, kTfRecordFooterBytes));
    PENSTOCK_ASSIGN(const bool is_one_record, member.ends_at(end));
    if (!is_one_record)
      return object.error(Errc::unsupported, at,
                          "a gzip member holds more than one record, so that no sample has a place of its "
                          "own; gunzip it, or make the data set with --set compression=gzip");
    codec = fmt::format("{}{}", example.codec, kTfRecordGzip);
    visit_sample({.label_name = example.label,
                  .placement = {at, member.end_offset() - at},
                  .codec = codec,
                  .holds_statistics = example.holds_statistics});
  }
  return success();
}

}  // namespace penstock
