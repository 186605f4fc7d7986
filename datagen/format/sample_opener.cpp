#include "datagen/format/sample_opener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/tf_example.hpp"
#include "datagen/format/tfrecord_gzip.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {

namespace {

constexpr std::uint64_t kFramingBytes = kTfRecordHeaderBytes + kTfRecordFooterBytes;

// Fills `out`, or stops earlier at the end of the member. Removes the bytes that it used from `in`.
Result<std::size_t> inflate_into(std::span<std::byte> out, GzipInflater& inflater,
                                 std::span<const std::byte>& in, bool& end) {
  std::size_t made = 0;
  while (made < out.size() && !end) {
    PENSTOCK_ASSIGN(const GzipInflater::Step step, inflater.step(in, out.subspan(made)));
    if (!step.end && step.taken == 0 && step.made == 0)
      return make_error(Errc::truncated, "a compressed sample breaks off");
    in = in.subspan(step.taken);
    made += step.made;
    end = step.end;
  }
  return made;
}

}  // namespace

std::string_view payload_codec(std::string_view codec) {
  return codec.ends_with(kTfRecordGzip) ? codec.substr(0, codec.size() - kTfRecordGzip.size()) : codec;
}

Result<SampleOpener> SampleOpener::make(std::string_view codec, std::uint64_t most) {
  SampleOpener opener(codec.ends_with(kTfRecordGzip), codec == "mixed", most);
  if (opener.all_wrapped_) {
    auto inflater = GzipInflater::start();
    if (!inflater.ok())
      return make_error(inflater.error().code,
                        fmt::format("the samples are {}, compressed with gzip, and {}: gunzip the files and "
                                    "add --scan, or build with zlib",
                                    codec, inflater.error().what));
    opener.inflater_ = *std::move(inflater);
  }
  return opener;
}

Result<std::span<const std::byte>> SampleOpener::open(std::span<const std::byte> stored) {
  if (!is_wrapped(stored)) return stored;
  PENSTOCK_ASSIGN(const std::span<const std::byte> record, inflate(stored));
  const auto payload = record.subspan(kTfRecordHeaderBytes, record.size() - kFramingBytes);
  const auto footer = tfrecord_footer(crc32c(payload));
  if (kChecksumsCount && !std::equal(footer.begin(), footer.end(), record.end() - kTfRecordFooterBytes))
    return make_error(Errc::corrupt, "the checksum of a record is wrong");
  MemoryWindow window(record);
  const Extent message{kTfRecordHeaderBytes, payload.size()};
  PENSTOCK_ASSIGN(const TfExampleParts example, find_in_example(window, message));
  const Extent found = example.payload.value_or(message);
  return record.subspan(static_cast<std::size_t>(found.offset), static_cast<std::size_t>(found.length));
}

Result<std::span<std::byte>> SampleOpener::inflate(std::span<const std::byte> stored) {
  if (!inflater_) {
    PENSTOCK_ASSIGN(inflater_, GzipInflater::start());
  }
  inflater_->begin();
  std::span<const std::byte> in = stored;
  bool end = false;
  std::array<std::byte, kTfRecordHeaderBytes> header{};
  PENSTOCK_ASSIGN(const std::size_t head, inflate_into(header, *inflater_, in, end));
  if (head < header.size()) return make_error(Errc::truncated, "a compressed sample is no record");
  const std::uint64_t length = number_at(header, 0, 8);
  if (kChecksumsCount && !tfrecord_payload_bytes(header))
    return make_error(Errc::corrupt,
                      "a compressed sample is no TFRecord: the checksum of its length is wrong");
  if (length / kMostGzipInflation > stored.size())
    return make_error(Errc::truncated, fmt::format("a record of {} bytes, but only {} compressed ones",
                                                   length, stored.size()));
  if (length > most_)
    return make_error(Errc::unsupported,
                      fmt::format("a record of {} bytes, and at most {} are inflated here", length, most_));
  const auto bytes = static_cast<std::size_t>(length + kFramingBytes);
  try {
    record_.grow(bytes + 1);  // one extra byte, which must stay empty
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, fmt::format("no memory for a record of {} bytes", length));
  }
  std::copy(header.begin(), header.end(), record_.data());
  PENSTOCK_ASSIGN(const std::size_t rest,
                  inflate_into(record_.first(bytes + 1).subspan(header.size()), *inflater_, in, end));
  if (header.size() + rest < bytes) return make_error(Errc::truncated, "a record ends too early");
  if (header.size() + rest > bytes || !in.empty())
    return make_error(Errc::corrupt, "a compressed sample is more than one record");
  return record_.first(bytes);
}

}  // namespace penstock
