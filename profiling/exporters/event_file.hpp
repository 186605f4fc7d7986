// Writes an event file of TensorBoard: TFRecords of tensorflow.Event messages
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/exporters/wire_message.hpp"

namespace penstock {

// Writes an event file. Parameters: `tag` is the name of a chart or text, in the form "group/name". Tags and
// texts must be UTF-8. `wall_s` is a time in seconds since 1970. Only one thread may use an instance.
class EventFile {
 public:
  explicit EventFile(WholeFile& to) : output_(&to) {}

  // Writes the first record of the file. Must be called before all other functions.
  Result<void> begin(double wall_s);
  Result<void> add_scalar(std::string_view tag, double wall_s, uint64_t step, double value);
  // Adds a histogram of sizes. `counts` has the number of sizes in each bucket, and `ends` has the largest
  // size of each bucket. `least` is the smallest size of the first bucket. `sum` is the sum of all sizes.
  Result<void> add_histogram(std::string_view tag, double wall_s, double least, double sum,
                             std::span<const double> ends, std::span<const double> counts);
  // Adds a text in Markdown with tables and emphasis; TensorBoard shows no HTML in it.
  Result<void> add_text(std::string_view tag, double wall_s, std::string_view markdown);
  uint64_t value_count() const { return value_count_; }

 private:
  Result<void> write_value(double wall_s, uint64_t step, const WireMessage& summary_value);
  Result<void> write_record(const WireMessage& event);

  WholeFile* output_;
  uint64_t value_count_ = 0;
};

}  // namespace penstock
