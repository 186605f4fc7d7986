#include "profiling/exporters/event_file.hpp"

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {
namespace {

// Field numbers of Event.
constexpr unsigned kWallTime = 1;
constexpr unsigned kStep = 2;
constexpr unsigned kFileVersion = 3;
constexpr unsigned kSummary = 5;
// Field numbers of Summary.
constexpr unsigned kSummaryValue = 1;
// Field numbers of Summary.Value.
constexpr unsigned kTag = 1;
constexpr unsigned kSimpleValue = 2;
constexpr unsigned kHistogram = 5;
constexpr unsigned kTensor = 8;
constexpr unsigned kMetadata = 9;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> EventFile::record(const WireMessage& event) {
  const std::string& bytes = event.text();
  const auto header = tfrecord_header(bytes.size());
  const auto footer = tfrecord_footer(crc32c(std::as_bytes(std::span(bytes))));
  PENSTOCK_TRY(to_->write(text_of(header)));
  PENSTOCK_TRY(to_->write(bytes));
  return to_->write(text_of(footer));
}

Result<void> EventFile::begin(double wall_s) {
  return record(WireMessage().real(kWallTime, wall_s).bytes(kFileVersion, "brain.Event:2"));
}

Result<void> EventFile::value(double wall_s, std::uint64_t step, const WireMessage& summary_value) {
  ++values_;
  return record(WireMessage()
                    .real(kWallTime, wall_s)
                    .number(kStep, step)
                    .message(kSummary, WireMessage().message(kSummaryValue, summary_value)));
}

Result<void> EventFile::scalar(std::string_view tag, double wall_s, std::uint64_t step, double number) {
  return value(wall_s, step, WireMessage().bytes(kTag, tag).real(kSimpleValue, static_cast<float>(number)));
}

Result<void> EventFile::histogram(std::string_view tag, double wall_s, double least, double sum,
                                  std::span<const double> ends, std::span<const double> counts) {
  double all = 0;
  for (const double count : counts) all += count;
  // The numbers are those of HistogramProto.
  const WireMessage histogram = WireMessage()
                                    .real(1, least)
                                    .real(2, ends.back())
                                    .real(3, all)
                                    .real(4, sum)
                                    .packed(6, ends)
                                    .packed(7, counts);
  return value(wall_s, 0, WireMessage().bytes(kTag, tag).message(kHistogram, histogram));
}

Result<void> EventFile::text(std::string_view tag, double wall_s, std::string_view markdown) {
  constexpr std::uint64_t kString = 7;  // the value of DT_STRING in DataType
  // A TensorProto of one string: its type, a shape without dimensions, the string.
  const WireMessage tensor = WireMessage().number(1, kString).message(2, {}).bytes(8, markdown);
  constexpr std::uint64_t kClassTensor = 2;
  const WireMessage metadata =
      WireMessage().message(1, WireMessage().bytes(1, "text")).number(4, kClassTensor);
  return value(wall_s, 0,
               WireMessage().bytes(kTag, tag).message(kTensor, tensor).message(kMetadata, metadata));
}

}  // namespace penstock
