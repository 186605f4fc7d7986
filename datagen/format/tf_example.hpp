// tf.Example, TensorFlow's protobuf message of named features: written, and looked through for what a scan
// wants. The wire format is that of tensorflow/core/example/{example,feature}.proto: an Example has Features
// (1), those have map entries (1) of a key (1) and a Feature (2), and a Feature has one list: bytes (1),
// floats (2) or int64s (3), whose values are field 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/byte_window.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What a message may have at most: protobuf's readers refuse more.
inline constexpr std::uint64_t kMostExampleBytes = 0x7fffffff;

// Makes one Example after another; everything is reused. One thread.
class TfExampleWriter {
 public:
  void clear();
  // A feature of one byte string, copied; of numbers; of a field's bytes, borrowed until the next clear().
  void add(std::string_view name, std::string_view bytes);
  void add(std::string_view name, std::span<const std::uint64_t> values);
  void add(std::string_view name, const FieldBytes& field);

  struct Message {
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;          // from the fields' own where they are known
    std::uint64_t first_field_at = 0;  // where in the message the first field's bytes lie
  };
  // The features in the order in which they were added. Appends the message to `pieces`, borrowed until the
  // next clear().
  Message finish(std::vector<std::span<const std::byte>>& pieces);

 private:
  struct Borrowed {
    std::size_t before;  // bytes of small_ that come first
    FieldBytes field;
  };
  std::byte* begin_feature(std::string_view name, std::uint64_t list, std::uint64_t value_bytes,
                           std::uint64_t here);

  std::vector<std::byte> small_;  // all but the fields; room is never given back
  std::size_t used_ = 0;          // of it
  std::vector<Borrowed> borrowed_;
  std::array<std::byte, 11> head_{};  // a tag and the longest number
};

// What a scan wants of an Example: where its payload lies (of `image/encoded`, else of the feature with the
// longest byte string), and its label: `image/class/text` or `label/text` where there is one, else the number
// in `image/class/label` or `label`.
struct TfExampleFound {
  std::optional<Extent> payload;  // in the object; none: no feature has bytes
  std::string_view codec;         // by its first bytes: "jpeg", "png" or "raw"
  std::string label;              // "" if none
  bool statistics = false;        // all features but a file's name are of `stats`: "climate/stats/shape"
};

// Looks through the message that lies at `message` of the object. `corrupt` or `truncated` where it is no
// Example, with the offset. Its payload is not read.
Result<TfExampleFound> look_through_example(ByteWindow& object, Extent message);

}  // namespace penstock
