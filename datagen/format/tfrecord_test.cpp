#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/format/format_testing.hpp"
#include "datagen/format/scan_fixture.hpp"
#include "datagen/format/tf_example.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// One record with the filename "a/b.jpg", label 300 "cat", format "JPEG" and ten bytes of picture at offset
// 153. A few lines of Python computed it from the specifications alone.
const std::string_view kKnown =
    "9700000000000000e47640f30a94010a1d0a0e696d6167652f66696c656e616d65120b0a090a07612f622e6a70670a1b0a11696d"
    "61"
    "67652f636c6173732f6c6162656c12061a040a02ac020a1b0a10696d6167652f636c6173732f7465787412070a050a036361740a"
    "18"
    "0a0c696d6167652f666f726d617412080a060a044a5045470a1f0a0d696d6167652f656e636f646564120e0a0c0a0affd8ffe04a"
    "50"
    "4547ffd9be9680a0";
const std::string_view kPictureText = "\xff\xd8\xff\xe0JPEG\xff\xd9";
const Field kImage{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};

struct Written {
  Bytes bytes;
  std::vector<Placement> placements;
};

Written write(std::span<const Field> fields, std::span<const SampleBytes> samples) {
  const Tier tier = open_tier("mem:tfrecord-test", kNoNamedTiers).value();
  ScanFixture fixture("tfrecord");
  auto writer = fixture.format()
                    .create(*tier.backend, {.name = "o", .samples = samples.size(), .fields = fields})
                    .value();
  Written out;
  for (const SampleBytes& sample : samples) out.placements.push_back(writer->add(sample).value());
  out.bytes.resize(writer->publish(Durability::visible).value().bytes);
  EXPECT_TRUE(tier.backend->open("o").value()->read_at(0, out.bytes).ok());
  return out;
}

Written write_picture(std::optional<uint32_t> crc, std::string_view picture = kPictureText) {
  const auto bytes = std::as_bytes(std::span(picture));
  const std::vector<std::span<const std::byte>> pieces{bytes.first(3), bytes.subspan(3)};
  const FieldBytes field{.pieces = pieces, .bytes = bytes.size(), .crc32c = crc};
  const SampleBytes sample{.key = "a/b", .label = 300, .label_name = "cat", .fields = {&field, 1}};
  return write({&kImage, 1}, {&sample, 1});
}

Bytes framed(std::span<const std::byte> payload) {
  Bytes out;
  const auto header = tfrecord_header(payload.size());
  const auto footer = tfrecord_footer(crc32c(payload));
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), footer.begin(), footer.end());
  return out;
}

Bytes twice(std::span<const std::byte> record) {
  Bytes two;
  for (int i = 0; i < 2; ++i) two.insert(two.end(), record.begin(), record.end());
  return two;
}

TEST(TfRecord, BytesAreThoseOfTheSpecification) {
  const Written written = write_picture(std::nullopt);
  EXPECT_EQ(written.bytes, from_hex(kKnown));
  EXPECT_EQ(written.placements.at(0).offset, 153U);
  EXPECT_EQ(written.placements.at(0).length, 10U);
}

// DLIO's reader needs the features `image` and `size`, whatever the field's name is. A scan must find the
// same samples.
TEST(TfRecord, FeaturesAreThoseOfDlio) {
  const auto format = format_of("tfrecord", {{"features", "dlio"}});
  const Tier tier = open_tier("mem:tfrecord-test", kNoNamedTiers).value();
  for (const bool picture : {true, false}) {
    const Field field =
        picture ? kImage : Field{.name = "x", .codec = "raw", .extension = ".bin", .varies = true};
    const std::string payload = std::string(picture ? kPictureText : "0123456789") + std::string(10, 'x');
    const auto bytes = std::as_bytes(std::span(payload));
    const FieldBytes payload_field{.pieces = {&bytes, 1}, .bytes = bytes.size()};
    auto writer = format->create(*tier.backend, {.name = "o", .samples = 1, .fields = {&field, 1}}).value();
    const Placement placed =
        writer->add({.key = "a", .label = 300, .label_name = "cat", .fields = {&payload_field, 1}}).value();
    Bytes whole(size_t(writer->publish(Durability::visible).value().bytes));
    ASSERT_TRUE(tier.backend->open("o").value()->read_at(0, whole).ok());
    const std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
    // The expected bytes of each feature: its key, then one byte string, or one number (the square
    // root of 20, rounded down).
    EXPECT_EQ(text.find("\x0a\x05image\x12\x18\x0a\x16\x0a\x14" + payload) + 13, placed.offset);
    EXPECT_NE(text.find(std::string("\x0a\x04size\x12\x05\x1a\x03\x0a\x01\x04", 13)), std::string::npos);
    for (const char* other : {"image/", "x/"}) EXPECT_EQ(text.find(other), std::string::npos) << other;
    ScanFixture fixture("tfrecord");
    EXPECT_EQ(fixture.scan(whole).value().at(0),
              (ScanFixture::Sample{"cat", placed, picture ? "jpeg" : "raw"}));
  }
  const std::vector<Field> two{{.name = "x", .codec = "raw", .extension = ".bin"},
                               {.name = "size", .codec = "raw", .extension = ".bin"}};
  EXPECT_EQ(format->check(two).error().code, Errc::invalid_argument);
  EXPECT_TRUE(format->check({two.data() + 1, 1}).ok());
}

TEST(TfRecord, AKnownChecksumIsUsed) {
  const std::string large(100000, 'x');
  const uint32_t crc = crc32c(std::as_bytes(std::span(large)));
  EXPECT_EQ(write_picture(crc, large).bytes, write_picture(std::nullopt, large).bytes);
  // A wrong checksum makes a different object. So the writer used it as it is, and did not read the bytes to
  // compute it.
  EXPECT_NE(write_picture(crc + 1, large).bytes, write_picture(std::nullopt, large).bytes);
}

TEST(TfRecord, AScanFindsPictureLabelAndCodec) {
  ScanFixture fixture("tfrecord");
  const auto samples = fixture.scan(from_hex(kKnown)).value();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0], (ScanFixture::Sample{"cat", {153, 10}, "jpeg"}));
  EXPECT_TRUE(fixture.scan({}).value().empty());
}

TEST(TfRecord, ArraysHaveShapesAndTheFirstFieldIsThePayload) {
  const std::vector<Field> fields{
      {.name = "data", .codec = "raw", .extension = ".bin", .element = Element::f32, .shape = {2, 3}},
      {.name = "label", .codec = "raw", .extension = ".bin", .element = Element::i32, .shape = {}}};
  const Bytes data(24, std::byte{0x5a});
  const Bytes label(4, std::byte{7});
  const std::span<const std::byte> pieces[] = {data, label};
  const FieldBytes bytes[] = {{.pieces = {pieces, 1}, .bytes = 24}, {.pieces = {pieces + 1, 1}, .bytes = 4}};
  const SampleBytes sample{.key = "s", .label = 1, .label_name = "signal", .fields = bytes};
  const Written written = write(fields, {&sample, 1});
  const std::string text(reinterpret_cast<const char*>(written.bytes.data()), written.bytes.size());
  EXPECT_EQ(written.placements.at(0).offset, text.find(std::string(24, '\x5a')));
  EXPECT_NE(text.find(std::string("\n\x0a"
                                  "data/shape\x12\x06\x1a\x04\x0a\x02\x02\x03",
                                  20)),
            std::string::npos);
  EXPECT_NE(text.find("data/dtype"), std::string::npos);
  EXPECT_NE(text.find("float32"), std::string::npos);
  EXPECT_NE(text.find("label/dtype"), std::string::npos);
  ScanFixture fixture("tfrecord");
  EXPECT_EQ(fixture.scan(written.bytes).value().at(0),
            (ScanFixture::Sample{"signal", {written.placements[0].offset, 24}, "raw"}));
}

TEST(TfRecord, LabelsAfterAPayloadLargerThanTheWindow) {
  std::string large(3 << 20, 'x');
  large.replace(0, 3, "\xff\xd8\xff");
  const auto content = std::as_bytes(std::span(large));
  const FieldBytes field{.pieces = {&content, 1}, .bytes = content.size()};
  TfExampleWriter example;
  example.add("image/encoded", field);
  const uint64_t label = 42;
  example.add("image/class/label", std::span(&label, 1));
  std::vector<std::span<const std::byte>> pieces;
  const auto message = example.finish(pieces);
  const Bytes record = framed(joined({.pieces = pieces, .bytes = message.bytes}));
  const Bytes two = twice(record);
  ScanFixture fixture("tfrecord");
  const auto samples = fixture.scan(two).value();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(
      samples[1],
      (ScanFixture::Sample{"42", {record.size() + 12 + message.first_field_offset, content.size()}, "jpeg"}));
}

// The message of kKnown, with one more field.
TEST(TfRecord, OnlyFeatureListsMakeASequenceExample) {
  ScanFixture fixture("tfrecord");
  Bytes known = from_hex(kKnown);
  const std::span<const std::byte> message =
      std::span(known)
          .subspan(kTfRecordHeaderBytes)
          .first(known.size() - kTfRecordHeaderBytes - kTfRecordFooterBytes);
  const auto scan_with = [&](const char* hex) {
    Bytes more(message.begin(), message.end());
    const Bytes field = from_hex(hex);
    more.insert(more.end(), field.begin(), field.end());
    return fixture.scan(framed(more)).value().at(0);
  };
  // Field 2 as a number, field 3 as a number and as bytes, and field 1 as a number.
  for (const char* hex : {"1007", "1807", "1a0161", "0807"})
    EXPECT_EQ(scan_with(hex), (ScanFixture::Sample{"cat", {153, 10}, "jpeg"})) << hex;
  for (const char* hex : {"1200", "12020a00"})
    EXPECT_EQ(scan_with(hex),
              (ScanFixture::Sample{"cat", {12, message.size() + from_hex(hex).size()}, "raw"}))
        << hex;
}

// A feature may have a list of byte strings.
TEST(TfRecord, TheLongestOfSeveralValuesIsTheSample) {
  const auto field = [](char number, const std::string& content) {
    return std::string{char(number * 8 + 2), char(content.size())} + content;
  };
  const auto scan = [&](const std::string& name) {
    std::string list;
    for (const char* value : {"first", "", "the longest", "last"}) list += field(1, value);
    const std::string entry = field(1, name) + field(2, field(1, list));
    const std::string record = field(1, field(1, entry));
    const auto found =
        ScanFixture("tfrecord").scan(framed(std::as_bytes(std::span(record)))).value().at(0).placement;
    return record.substr(size_t(found.offset - kTfRecordHeaderBytes), size_t(found.length));
  };
  EXPECT_EQ(scan("any"), "the longest");
  EXPECT_EQ(scan("image/encoded"), "first");
}

TEST(TfRecord, ARecordWithoutBytesFeaturesIsTheSample) {
  ScanFixture fixture("tfrecord");
  EXPECT_EQ(fixture.scan(framed({})).value().at(0), (ScanFixture::Sample{"", {12, 0}, "raw"}));
}

TEST(TfRecord, ClaimsTensorFlowsNamesOfShards) {
  ScanFixture fixture("tfrecord");
  for (const char* name :
       {"a.tfrecord", "b/a.tfrecords", "a.tfrec", "A.TFRECORD", "a.tfrecord.GZ", "v1.0/train-00003-of-01024",
        "mnist/3.0.1/mnist-train.tfrecord-00000-of-00001", "v1.0-train.tfrecords-00000-of-00010",
        "a.TFREC-00000-of-00010", "a.tfrecord-00000-of-00010.gz"})
    EXPECT_TRUE(fixture.format().claims(name)) << name;
  for (const char* name : {"a.jpg", "train-00003-of-0102x", "train-00003-of-01024.idx",
                           "model.ckpt.data-00000-of-00001", "a.tfrecord-0000-of-00010", ""})
    EXPECT_FALSE(fixture.format().claims(name)) << name;
}

TEST(TfRecord, TruncationIsAnErrorOrLeavesWholeRecords) {
  ScanFixture fixture("tfrecord");
  const Bytes record = from_hex(kKnown);
  const Bytes two = twice(record);
  for (size_t cut = 0; cut < two.size(); ++cut) {
    const auto samples = fixture.scan(std::span(two).first(cut));
    if (cut % record.size() == 0) {
      EXPECT_EQ(samples.value().size(), cut / record.size());
    } else {
      ASSERT_FALSE(samples.ok()) << cut;
      EXPECT_EQ(samples.error().code, Errc::truncated) << samples.error().what;
    }
  }
}

TEST(TfRecord, EveryFlippedBitIsAnErrorOrHarmless) {
  ScanFixture fixture("tfrecord");
  Bytes bytes = from_hex(kKnown);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto samples = fixture.scan(bytes);
    if (bit / 8 < kTfRecordHeaderBytes) {
      ASSERT_FALSE(samples.ok());
      EXPECT_EQ(samples.error().code, Errc::corrupt);
      EXPECT_NE(samples.error().what.find("at byte 0"), std::string::npos) << samples.error().what;
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

TEST(TfRecord, AbsurdLengths) {
  ScanFixture fixture("tfrecord");
  for (const uint64_t length : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX - 3, UINT64_MAX}) {
    const auto header = tfrecord_header(length);
    Bytes bytes(header.begin(), header.end());
    bytes.resize(16);
    EXPECT_EQ(fixture.scan(bytes).error().code, Errc::truncated) << length;
  }
  // Messages that are no Example: fields that claim to be longer than the message, and numbers that do not
  // end. With the right checksum each is a sound record of another kind, and the sample. Else it is damaged.
  for (const char* hex :
       {"0affffffffffffffffff01", "0a7f", "0a020a7f", "0a050a030affff", "ffffffffffffffffffff01",
        "0affffffffffffffffff7f", "80", "00", "0b", "09000000", "0a00ff"}) {
    Bytes record = framed(from_hex(hex));
    const auto sound = fixture.scan(record);
    ASSERT_TRUE(sound.ok()) << hex << ": " << sound.error().what;
    ASSERT_EQ(sound->size(), 1U);
    EXPECT_EQ(sound->front().placement.length, from_hex(hex).size());
    record.back() ^= std::byte{1};
    const auto damaged = fixture.scan(record);
    ASSERT_FALSE(damaged.ok()) << hex;
    EXPECT_EQ(damaged.error().code, Errc::corrupt) << damaged.error().what;
  }
}

}  // namespace
}  // namespace penstock
