#include "profiling/exporters/event_file.hpp"

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {
namespace {

// Field numbers of Event.
constexpr unsigned kWallTimeField = 1;
constexpr unsigned kStepField = 2;
constexpr unsigned kFileVersionField = 3;
constexpr unsigned kSummaryField = 5;
// Field numbers of Summary.
constexpr unsigned kSummaryValueField = 1;
// Field numbers of Summary.Value.
constexpr unsigned kTagField = 1;
constexpr unsigned kSimpleValueField = 2;
constexpr unsigned kHistogramField = 5;
constexpr unsigned kTensorField = 8;
constexpr unsigned kMetadataField = 9;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> EventFile::write_record(const WireMessage& event) {
  const std::string& bytes = event.text();
  const auto header = tfrecord_header(bytes.size());
  const auto footer = tfrecord_footer(crc32c(std::as_bytes(std::span(bytes))));
  PENSTOCK_TRY(output_->write(text_of(header)));
  PENSTOCK_TRY(output_->write(bytes));
  return output_->write(text_of(footer));
}

Result<void> EventFile::begin(double wall_s) {
  return write_record(WireMessage().real(kWallTimeField, wall_s).bytes(kFileVersionField, "brain.Event:2"));
}

Result<void> EventFile::write_value(double wall_s, uint64_t step, const WireMessage& summary_value) {
  ++value_count_;
  return write_record(WireMessage()
                          .real(kWallTimeField, wall_s)
                          .number(kStepField, step)
                          .message(kSummaryField, WireMessage().message(kSummaryValueField, summary_value)));
}

Result<void> EventFile::add_scalar(std::string_view tag, double wall_s, uint64_t step, double number) {
  return write_value(wall_s, step,
                     WireMessage().bytes(kTagField, tag).real(kSimpleValueField, float(number)));
}

Result<void> EventFile::add_histogram(std::string_view tag, double wall_s, double least, double sum,
                                      std::span<const double> ends, std::span<const double> counts) {
  double total_count = 0;
  for (const double count : counts) total_count += count;
  // The field numbers are those of HistogramProto.
  const WireMessage histogram = WireMessage()
                                    .real(1, least)
                                    .real(2, ends.back())
                                    .real(3, total_count)
                                    .real(4, sum)
                                    .packed(6, ends)
                                    .packed(7, counts);
  return write_value(wall_s, 0, WireMessage().bytes(kTagField, tag).message(kHistogramField, histogram));
}

Result<void> EventFile::add_text(std::string_view tag, double wall_s, std::string_view markdown) {
  constexpr uint64_t kStringType = 7;  // the value of DT_STRING in DataType
  // A TensorProto of one string: its type, a shape without dimensions, the string.
  const WireMessage tensor = WireMessage().number(1, kStringType).message(2, {}).bytes(8, markdown);
  constexpr uint64_t kTensorDataClass = 2;
  const WireMessage metadata =
      WireMessage().message(1, WireMessage().bytes(1, "text")).number(4, kTensorDataClass);
  return write_value(
      wall_s, 0,
      WireMessage().bytes(kTagField, tag).message(kTensorField, tensor).message(kMetadataField, metadata));
}

}  // namespace penstock
