#include "datagen/format/sample_opener.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/tf_example.hpp"
#include "datagen/format/tfrecord_gzip.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {

namespace {

constexpr uint64_t kFramingBytes = kTfRecordHeaderBytes + kTfRecordFooterBytes;

// Inflates bytes of the gzip member in `in` to `out`, until `out` is full or the member ends. Returns the
// number of inflated bytes. Removes the bytes that it has read from the front of `in`.
Result<size_t> inflate_into(std::span<std::byte> out, StreamInflater& inflater,
                            std::span<const std::byte>& in, bool& member_ended) {
  size_t inflated_bytes = 0;
  while (inflated_bytes < out.size() && !member_ended) {
    PENSTOCK_ASSIGN(const StreamInflater::Step step, inflater.step(in, out.subspan(inflated_bytes)));
    if (!step.ended && step.in_bytes == 0 && step.out_bytes == 0)
      return make_error(Errc::truncated, "a compressed sample is truncated");
    in = in.subspan(step.in_bytes);
    inflated_bytes += step.out_bytes;
    member_ended = step.ended;
  }
  return inflated_bytes;
}

}  // namespace

std::string_view payload_codec(std::string_view codec) {
  return codec.ends_with(kTfRecordGzip) ? codec.substr(0, codec.size() - kTfRecordGzip.size()) : codec;
}

Result<SampleOpener> SampleOpener::make(std::string_view codec, uint64_t max_record_bytes) {
  SampleOpener opener(codec.ends_with(kTfRecordGzip), codec == "mixed", max_record_bytes);
  if (opener.all_wrapped_) {
    auto inflater = StreamInflater::start(DeflateFormat::gzip);
    if (!inflater.ok())
      return make_error(inflater.error().code,
                        "the samples are {}, compressed with gzip, and {}: decompress the files and add "
                        "--scan, or build with zlib",
                        codec, inflater.error().what);
    opener.inflater_ = *std::move(inflater);
  }
  return opener;
}

Result<SampleOpener> SampleOpener::make(const Manifest& manifest, uint64_t max_record_bytes) {
  PENSTOCK_ASSIGN(SampleOpener opener, make(manifest.facts().codec, max_record_bytes));
  if (manifest.forms() > 0) opener.unpacker_.emplace(manifest, max_record_bytes);
  return opener;
}

Result<std::span<const std::byte>> SampleOpener::open(std::span<const std::byte> stored) {
  if (!is_wrapped(stored)) return stored;
  PENSTOCK_ASSIGN(const std::optional<std::span<std::byte>> inflated, inflate(stored));
  if (!inflated) return stored;
  const std::span<const std::byte> record = *inflated;
  const auto payload = record.subspan(kTfRecordHeaderBytes, record.size() - kFramingBytes);
  const auto footer = tfrecord_footer(crc32c(payload));
  if (kVerifyChecksums && !std::equal(footer.begin(), footer.end(), record.end() - kTfRecordFooterBytes))
    return make_error(Errc::corrupt, "the checksum of a record is wrong");
  MemoryWindow window(record);
  const Extent message{kTfRecordHeaderBytes, payload.size()};
  PENSTOCK_ASSIGN(const TfExampleParts example, find_in_record(window, message));
  const Extent found = example.payload.value_or(message);
  return record.subspan(size_t(found.offset), size_t(found.length));
}

Result<std::optional<std::span<std::byte>>> SampleOpener::inflate(std::span<const std::byte> stored) {
  if (!inflater_) {
    PENSTOCK_ASSIGN(inflater_, StreamInflater::start(DeflateFormat::gzip));
  }
  inflater_->begin();
  std::span<const std::byte> in = stored;
  bool member_ended = false;
  std::array<std::byte, kTfRecordHeaderBytes> header{};
  PENSTOCK_ASSIGN(const size_t header_bytes, inflate_into(header, *inflater_, in, member_ended));
  const bool is_record =
      header_bytes == header.size() && (tfrecord_payload_bytes(header) || !kVerifyChecksums);
  if (!is_record && !all_wrapped_) return std::optional<std::span<std::byte>>();  // gzip of something else
  if (header_bytes < header.size()) return make_error(Errc::truncated, "a compressed sample is not a record");
  const uint64_t length = number_at(header, 0, 8);
  if (!is_record)
    return make_error(Errc::corrupt,
                      "a compressed sample is not a TFRecord: the checksum of its length is wrong");
  if (length / kMostGzipInflation > stored.size())
    return make_error(Errc::truncated, "a record of {} bytes, but only {} compressed ones", length,
                      stored.size());
  if (length > max_record_bytes_)
    return make_error(Errc::unsupported, "a record of {} bytes, and the limit is {}", length,
                      max_record_bytes_);
  const auto record_bytes = size_t(length + kFramingBytes);
  if (!record_.try_grow(record_bytes + 1))  // one extra byte: if it is filled, the record is too long
    return make_error(Errc::exhausted, "no memory for a record of {} bytes", length);
  std::copy(header.begin(), header.end(), record_.data());
  PENSTOCK_ASSIGN(
      const size_t rest_bytes,
      inflate_into(record_.first(record_bytes + 1).subspan(header.size()), *inflater_, in, member_ended));
  if (header.size() + rest_bytes < record_bytes) return make_error(Errc::truncated, "a record is truncated");
  if (header.size() + rest_bytes > record_bytes || !in.empty())
    return make_error(Errc::corrupt, "a compressed sample is more than one record");
  return std::optional(record_.first(record_bytes));
}

}  // namespace penstock
