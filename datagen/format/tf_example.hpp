// Writes tf.Example messages, TensorFlow's protobuf messages of named features, and finds the payload and
// label in such a message.
// The wire format is that of tensorflow/core/example/{example,feature}.proto, with these field numbers: An
// Example has Features (1). These have map entries (1), each with a key (1) and a Feature (2). A Feature has
// one list: of bytes (1), floats (2) or int64s (3). The values of a list are its field 1.
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

// The largest message in bytes. Readers of protobuf refuse larger messages.
inline constexpr uint64_t kMostExampleBytes = 0x7fffffff;

// Makes one Example after another and reuses its memory. Only one thread at a time may use it.
class TfExampleWriter {
 public:
  void clear();
  // Adds a feature: a byte string, numbers, or the bytes of a field. Byte strings and numbers are copied. The
  // bytes of a field are not copied, so they must be valid until the next clear().
  void add(std::string_view name, std::string_view bytes);
  void add(std::string_view name, std::span<const uint64_t> values);
  void add(std::string_view name, const FieldBytes& field);

  struct Message {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;  // CRC32C of the message; computed from the fields' CRC32Cs where these are known
    uint64_t first_field_offset = 0;  // offset in the message of the first field's bytes
  };
  // Finishes the message. It has the features in the order in which they were added. Appends spans of its
  // bytes to `pieces`; the spans are valid until the next clear().
  Message finish(std::vector<std::span<const std::byte>>& pieces);

 private:
  struct Borrowed {
    size_t copied_before;  // number of bytes of copied_ that come before this field
    FieldBytes field;
  };
  std::byte* begin_feature(std::string_view name, uint64_t list, uint64_t value_bytes,
                           uint64_t reserved_bytes);

  std::vector<std::byte> copied_;  // all bytes of the message except those of fields; never shrinks
  size_t copied_bytes_ = 0;        // number of bytes of copied_ in use
  std::vector<Borrowed> borrowed_;
  // the tag and the length with which the message begins; large enough for the longest length
  std::array<std::byte, 11> head_{};
};

// The payload and label that a scan needs from an Example. The payload is `image/encoded`, or else the
// feature with the longest byte string. The label is the text in `image/class/text` or `label/text`, or else
// the number in `image/class/label` or `label`.
struct TfExampleParts {
  std::optional<Extent> payload;  // its range in the object; nothing if no feature has bytes
  std::string_view codec;         // by its first bytes: "jpeg", "png" or "raw"
  std::string label;              // "" if none
  // Whether all features except a file name are statistics, such as "climate/stats/shape".
  bool holds_statistics = false;
};

// Finds payload and label in the Example whose bytes are at `message` in the object. A SequenceExample has a
// label, but no payload of its own: the whole message is its sample. Reads only the first 8 bytes of the
// payload, for its codec. `corrupt` or `truncated`, with the offset, if these bytes are no Example.
Result<TfExampleParts> find_in_example(ByteWindow& object, Extent message);

// As find_in_example(), for the message of a TFRecord record. If the message is no Example, but has the
// checksum that follows it in the object, it is a sound record of another kind (such as a bare picture, or
// text): then the result has no payload, and the codec of the message. `corrupt` if the checksum is wrong,
// too.
Result<TfExampleParts> find_in_record(ByteWindow& object, Extent message);

}  // namespace penstock
