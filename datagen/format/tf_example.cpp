#include "datagen/format/tf_example.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "datagen/format/sample_arrays.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

namespace {

constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kDelimited = 2;
constexpr unsigned kFixed32 = 5;

constexpr uint64_t kBytesList = 1;
constexpr uint64_t kInt64List = 3;

constexpr size_t kMostVarintBytes = 10;
constexpr size_t kMostKeyBytes = 256;
constexpr size_t kMostLabelTextBytes = 1024;

size_t varint_bytes(uint64_t value) {
  size_t bytes = 1;
  while ((value >>= 7U) != 0) ++bytes;
  return bytes;
}

// The three functions below write to `at`, where the caller must have made enough space. They return the
// address after the last byte written.
std::byte* put_varint(std::byte* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7U) *at++ = static_cast<std::byte>(value | 0x80U);
  *at++ = static_cast<std::byte>(value);
  return at;
}

std::byte* put_delimited(std::byte* at, uint64_t field, uint64_t bytes) {
  *at++ = static_cast<std::byte>(field << 3U | kDelimited);
  return put_varint(at, bytes);
}

std::byte* put_bytes(std::byte* at, std::string_view text) {
  return std::copy_n(std::as_bytes(std::span(text)).data(), text.size(), at);
}

// The size of a delimited field: its tag, its length and its content of `bytes` bytes. The tag takes one
// byte, because field numbers are below 16.
uint64_t delimited_bytes(uint64_t bytes) {
  return 1 + varint_bytes(bytes) + bytes;
}

// ---- Parsing ---------------------------------------------------------------------------------------------
struct Tag {
  uint64_t field_number = 0;
  unsigned wire_type = 0;
};

// Iterates over the fields of one message.
class MessageReader {
 public:
  MessageReader(ByteWindow& object, Extent extent)
      : object_(object), at_(extent.offset), end_(extent.offset + extent.length) {}

  bool at_end() const { return at_ == end_; }

  Result<uint64_t> read_varint() {
    const auto max_bytes = size_t(std::min<uint64_t>(kMostVarintBytes, end_ - at_));
    PENSTOCK_ASSIGN(const auto bytes, object_.at(at_, max_bytes));
    uint64_t value = 0;
    for (size_t i = 0; i < max_bytes; ++i) {
      const auto byte = std::to_integer<uint64_t>(bytes[i]);
      if (i == kMostVarintBytes - 1 && byte > 1) break;
      value |= (byte & 0x7fU) << (7 * i);
      if (byte < 0x80) {
        at_ += i + 1;
        return value;
      }
    }
    return object_.corrupt(at_, "not a tf.Example: a number does not end");
  }

  Result<Tag> read_tag() {
    const uint64_t begin = at_;
    PENSTOCK_ASSIGN(const uint64_t value, read_varint());
    const Tag tag{value >> 3U, unsigned(value & 7U)};
    if (tag.field_number == 0) return object_.corrupt(begin, "not a tf.Example: a field has the number 0");
    return tag;
  }

  // Returns the range of a delimited field's content and moves past it. The caller has read the field's tag.
  Result<Extent> read_delimited() {
    const uint64_t begin = at_;
    PENSTOCK_ASSIGN(const uint64_t bytes, read_varint());
    if (bytes > end_ - at_)
      return object_.corrupt(
          begin, fmt::format("not a tf.Example: a field of {} bytes where {} are left", bytes, end_ - at_));
    const Extent extent{at_, bytes};
    at_ += bytes;
    return extent;
  }

  Result<void> skip(Tag tag) {
    if (tag.wire_type == kVarint) {
      PENSTOCK_TRY(read_varint());
      return success();
    }
    if (tag.wire_type == kDelimited) {
      PENSTOCK_TRY(read_delimited());
      return success();
    }
    const uint64_t bytes = tag.wire_type == kFixed64 ? 8 : 4;
    if ((tag.wire_type != kFixed64 && tag.wire_type != kFixed32) || bytes > end_ - at_)
      return object_.corrupt(at_, "not a tf.Example: a field of unknown type");
    at_ += bytes;
    return success();
  }

  Result<Extent> rest() const { return Extent{at_, end_ - at_}; }

  // Calls `visit` with the content of every delimited field whose number is `field`. Skips all other fields.
  template <class Visit>
  Result<void> for_each(uint64_t field, Visit visit) {
    while (!at_end()) {
      PENSTOCK_ASSIGN(const Tag next, read_tag());
      if (next.field_number == field && next.wire_type == kDelimited) {
        PENSTOCK_ASSIGN(const Extent content, read_delimited());
        PENSTOCK_TRY(visit(content));
      } else {
        PENSTOCK_TRY(skip(next));
      }
    }
    return success();
  }

 private:
  ByteWindow& object_;
  uint64_t at_;
  const uint64_t end_;
};

Result<std::string> read_string(ByteWindow& object, Extent extent) {
  PENSTOCK_ASSIGN(const auto bytes, object.at(extent.offset, size_t(extent.length)));
  return std::string(as_text(bytes));
}

// Names of the features that a scan reads. The payload is kPayloadKey, or else the longest value of all
// features of bytes. The label is the first that exists of kLabelTextKeys, or else of kLabelNumberKeys.
constexpr std::string_view kPayloadKey = "image/encoded";
constexpr std::array<std::string_view, 2> kLabelTextKeys{"image/class/text", "label/text"};
constexpr std::array<std::string_view, 2> kLabelNumberKeys{"image/class/label", "label"};

constexpr std::string_view kFileName = "filename";

// Whether a part of the feature's name is "stats". Slashes separate the parts.
bool names_statistics(std::string_view key) {
  while (!key.empty())
    if (take_part(key, '/') == kStatisticsName) return true;
  return false;
}

class ExampleScanner {
 public:
  explicit ExampleScanner(ByteWindow& object) : object_(object) {}

  Result<TfExampleParts> scan(Extent message) {
    // Field 1 of an Example is its features, that of a SequenceExample its context, which has the same form.
    // Only a SequenceExample has field 2, the lists of features. As protobuf does, this skips other fields.
    constexpr uint64_t kFeatures = 1;
    constexpr uint64_t kFeatureLists = 2;
    bool is_sequence = false;
    MessageReader fields(object_, message);
    while (!fields.at_end()) {
      PENSTOCK_ASSIGN(const Tag tag, fields.read_tag());
      if (tag.field_number != kFeatures || tag.wire_type != kDelimited) {
        is_sequence = is_sequence || (tag.field_number == kFeatureLists && tag.wire_type == kDelimited);
        PENSTOCK_TRY(fields.skip(tag));
        continue;
      }
      PENSTOCK_ASSIGN(const Extent features, fields.read_delimited());
      PENSTOCK_TRY(MessageReader(object_, features).for_each(1, [this](Extent entry) {
        return inspect_entry(entry);
      }));
    }
    if (is_sequence) {
      payload_.reset();
      codec_ = "raw";
    }
    TfExampleParts found{.payload = payload_,
                         .codec = codec_,
                         .label = {},
                         .holds_statistics = has_statistics_ && !has_other_features_};
    for (const auto* names : {&label_texts_, &label_numbers_})
      for (const std::string& name : *names)
        if (found.label.empty()) found.label = name;
    return found;
  }

 private:
  Result<void> inspect_entry(Extent entry) {
    std::string key;
    std::optional<Extent> feature;
    MessageReader message(object_, entry);
    while (!message.at_end()) {
      PENSTOCK_ASSIGN(const Tag tag, message.read_tag());
      if (tag.wire_type != kDelimited || tag.field_number > 2) {
        PENSTOCK_TRY(message.skip(tag));
        continue;
      }
      PENSTOCK_ASSIGN(const Extent content, message.read_delimited());
      if (tag.field_number == 2) {
        feature = content;
      } else if (content.length <= kMostKeyBytes) {
        PENSTOCK_ASSIGN(key, read_string(object_, content));
      }
    }
    if (!feature) return success();
    if (names_statistics(key))
      has_statistics_ = true;
    else if (key != kFileName)
      has_other_features_ = true;
    return inspect_feature(key, *feature);
  }

  Result<void> inspect_feature(const std::string& key, Extent feature) {
    MessageReader message(object_, feature);
    while (!message.at_end()) {
      PENSTOCK_ASSIGN(const Tag tag, message.read_tag());
      if (tag.wire_type != kDelimited) {
        PENSTOCK_TRY(message.skip(tag));
        continue;
      }
      PENSTOCK_ASSIGN(const Extent list, message.read_delimited());
      if (tag.field_number == kBytesList) PENSTOCK_TRY(inspect_bytes(key, list));
      if (tag.field_number == kInt64List) PENSTOCK_TRY(inspect_numbers(key, list));
    }
    return success();
  }

  Result<void> inspect_bytes(const std::string& key, Extent list) {
    bool is_first_value = true;
    return MessageReader(object_, list).for_each(1, [&](Extent value) -> Result<void> {
      const bool is_first = std::exchange(is_first_value, false);
      const bool is_preferred = key == kPayloadKey && is_first;
      if (is_preferred || (!payload_is_preferred_ && (!payload_ || value.length > payload_->length))) {
        payload_ = value;
        payload_is_preferred_ = is_preferred;
        PENSTOCK_ASSIGN(codec_, codec_at(object_, {value.offset, value.length}));
      }
      if (!is_first) return success();
      for (size_t i = 0; i < kLabelTextKeys.size(); ++i)
        if (key == kLabelTextKeys[i] && value.length <= kMostLabelTextBytes) {
          PENSTOCK_ASSIGN(label_texts_[i], read_string(object_, value));
        }
      return success();
    });
  }

  Result<void> inspect_numbers(const std::string& key, Extent list) {
    const auto* const label_key = std::find(kLabelNumberKeys.begin(), kLabelNumberKeys.end(), key);
    if (label_key == kLabelNumberKeys.end() || list.length == 0) return success();
    MessageReader message(object_, list);
    PENSTOCK_ASSIGN(const Tag tag, message.read_tag());
    if (tag.field_number != 1 || (tag.wire_type != kDelimited && tag.wire_type != kVarint)) return success();
    PENSTOCK_ASSIGN(const Extent packed,
                    tag.wire_type == kDelimited ? message.read_delimited() : message.rest());
    if (packed.length == 0) return success();
    PENSTOCK_ASSIGN(const uint64_t number, MessageReader(object_, packed).read_varint());
    label_numbers_[size_t(label_key - kLabelNumberKeys.begin())] = std::to_string(int64_t(number));
    return success();
  }

  ByteWindow& object_;
  std::optional<Extent> payload_;
  bool payload_is_preferred_ = false;
  bool has_statistics_ = false;
  bool has_other_features_ = false;  // whether there are features other than statistics and a file name
  std::string_view codec_ = "raw";
  std::array<std::string, kLabelTextKeys.size()> label_texts_;
  std::array<std::string, kLabelNumberKeys.size()> label_numbers_;
};

}  // namespace

void TfExampleWriter::clear() {
  copied_bytes_ = 0;
  borrowed_.clear();
}

// Writes everything of a feature that comes before its value of `value_bytes` bytes. Then makes space in
// copied_ for `reserved_bytes` bytes of the value and returns the address of the space, which the caller
// fills. `reserved_bytes` is 0 if the value is not copied.
std::byte* TfExampleWriter::begin_feature(std::string_view name, uint64_t list, uint64_t value_bytes,
                                          uint64_t reserved_bytes) {
  const uint64_t list_bytes = delimited_bytes(value_bytes);
  const uint64_t feature_bytes = delimited_bytes(list_bytes);
  const size_t max_bytes = copied_bytes_ + 5 * (1 + kMostVarintBytes) + name.size() + reserved_bytes;
  if (copied_.size() < max_bytes) copied_.resize(2 * max_bytes);
  std::byte* at = copied_.data() + copied_bytes_;
  at = put_delimited(at, 1, delimited_bytes(name.size()) + delimited_bytes(feature_bytes));
  at = put_delimited(at, 1, name.size());
  at = put_bytes(at, name);
  at = put_delimited(at, 2, feature_bytes);
  at = put_delimited(at, list, list_bytes);
  at = put_delimited(at, 1, value_bytes);
  copied_bytes_ = size_t(at - copied_.data()) + reserved_bytes;
  return at;
}

void TfExampleWriter::add(std::string_view name, std::string_view bytes) {
  put_bytes(begin_feature(name, kBytesList, bytes.size(), bytes.size()), bytes);
}

void TfExampleWriter::add(std::string_view name, std::span<const uint64_t> values) {
  uint64_t bytes = 0;
  for (const uint64_t value : values) bytes += varint_bytes(value);
  std::byte* at = begin_feature(name, kInt64List, bytes, bytes);
  for (const uint64_t value : values) at = put_varint(at, value);
}

void TfExampleWriter::add(std::string_view name, const FieldBytes& field) {
  begin_feature(name, kBytesList, field.bytes, 0);
  borrowed_.push_back({copied_bytes_, field});
}

TfExampleWriter::Message TfExampleWriter::finish(std::vector<std::span<const std::byte>>& pieces) {
  uint64_t bytes = copied_bytes_;
  for (const Borrowed& one : borrowed_) bytes += one.field.bytes;
  const std::byte* const head_end = put_delimited(head_.data(), 1, bytes);
  const std::span<const std::byte> head(head_.data(), size_t(head_end - head_.data()));
  Message message{.bytes = head.size() + bytes, .crc32c = crc32c(head), .first_field_offset = 0};
  if (!borrowed_.empty()) message.first_field_offset = head.size() + borrowed_.front().copied_before;
  pieces.push_back(head);
  size_t written = 0;
  const auto append_copied = [&](size_t end) {
    const std::span<const std::byte> piece =
        std::span<const std::byte>(copied_).subspan(written, end - written);
    message.crc32c = crc32c(piece, message.crc32c);
    pieces.push_back(piece);
    written = end;
  };
  for (const Borrowed& one : borrowed_) {
    append_copied(one.copied_before);
    message.crc32c = crc32c_of(one.field, message.crc32c);
    pieces.insert(pieces.end(), one.field.pieces.begin(), one.field.pieces.end());
  }
  append_copied(copied_bytes_);
  return message;
}

Result<TfExampleParts> find_in_example(ByteWindow& object, Extent message) {
  return ExampleScanner(object).scan(message);
}

Result<TfExampleParts> find_in_record(ByteWindow& object, Extent message) {
  Result<TfExampleParts> found = find_in_example(object, message);
  if (found.ok() || found.error().code != Errc::corrupt) return found;
  PENSTOCK_ASSIGN(const std::string_view codec, codec_at(object, {message.offset, message.length}));
  constexpr size_t kPieceBytes = size_t{64} << 10U;
  uint32_t crc = 0;
  for (uint64_t done = 0; done < message.length;) {
    const auto piece_bytes = size_t(std::min<uint64_t>(kPieceBytes, message.length - done));
    PENSTOCK_ASSIGN(const auto piece, object.at(message.offset + done, piece_bytes));
    crc = crc32c(piece, crc);
    done += piece_bytes;
  }
  PENSTOCK_ASSIGN(const auto stored, object.at(message.offset + message.length, kTfRecordFooterBytes));
  const auto footer = tfrecord_footer(crc);
  if (kVerifyChecksums && !std::equal(footer.begin(), footer.end(), stored.begin()))
    return object.corrupt(message.offset, "the checksum of a record is wrong");
  return TfExampleParts{.payload = {}, .codec = codec, .label = {}};
}

}  // namespace penstock
