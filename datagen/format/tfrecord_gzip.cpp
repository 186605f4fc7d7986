#include "datagen/format/tfrecord_gzip.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/tf_example.hpp"
#include "datagen/format/unpacked_window.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {

namespace {

// Returns where the message of the record at `at` is. Offsets are those in the inflated bytes.
Result<Extent> message_at(StreamWindow& stream, uint64_t at, uint64_t object_bytes) {
  PENSTOCK_ASSIGN(const auto header, stream.at(at, kTfRecordHeaderBytes));
  const uint64_t length = number_at(header, 0, 8);
  if (kVerifyChecksums && !tfrecord_payload_bytes(header.first<kTfRecordHeaderBytes>()))
    return stream.corrupt(at, "compressed, but not a TFRecord: the checksum of a record's length is wrong");
  if (length / kMostGzipInflation > object_bytes)
    return stream.error(
        Errc::truncated, at,
        fmt::format("a record of {} bytes, but only {} compressed ones", length, object_bytes));
  return Extent{at + kTfRecordHeaderBytes, length};
}

}  // namespace

Result<void> scan_tfrecord_stream(ObjectWindow& object, DeflateFormat format,
                                  const Format::Visit& visit_sample) {
  PENSTOCK_ASSIGN(const auto stream, StreamWindow::make(object, format, {0, object.size()}));
  std::string codec;
  bool needs_form = false;
  for (uint64_t at = 0; true;) {
    PENSTOCK_ASSIGN(const bool is_end, stream->ends_at(at));
    if (is_end) break;
    PENSTOCK_ASSIGN(const Extent message, message_at(*stream, at, object.size()));
    PENSTOCK_ASSIGN(const TfExampleParts example, find_in_record(*stream, message));
    const uint64_t end = message.offset + message.length + kTfRecordFooterBytes;
    const Extent payload = example.payload.value_or(message);
    Format::FoundSample found{.label_name = example.label,
                              .placement = {},
                              .codec = example.codec,
                              .holds_statistics = example.holds_statistics};
    const SampleExtent extent{payload.offset, payload.length};
    PENSTOCK_ASSIGN(const Extent stored, stream->stored_range(extent));
    PENSTOCK_TRY(stream->at(end - kTfRecordFooterBytes, kTfRecordFooterBytes));
    PENSTOCK_TRY(stream->ends_at(end));
    const std::optional<Extent> member = stream->stream_between(at, end);
    if (member && format == DeflateFormat::gzip) {
      found.placement = {member->offset, member->length};
      codec = fmt::format("{}{}", example.codec, kTfRecordGzip);
      found.codec = codec;
    } else {
      needs_form = true;
      found.placement = {stored.offset, stored.length};
      found.form = stream->form();
      found.extent = extent;
    }
    visit_sample(found);
    at = end;
  }
  return needs_form ? stream->finish() : success();
}

}  // namespace penstock
