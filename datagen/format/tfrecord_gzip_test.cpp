// Tests compressed TFRecord: how it is written, scanned and opened.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/format/tf_example.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

const Field kJpegField{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
constexpr std::string_view kCodec = "jpeg.tfrecord.gz";

Bytes operator+(Bytes a, std::span<const std::byte> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes record_of(std::span<const std::byte> payload) {
  const auto header = tfrecord_header(payload.size());
  const auto footer = tfrecord_footer(crc32c(payload));
  return Bytes(header.begin(), header.end()) + payload + footer;
}

// Makes a field of a protobuf message from its number and its content of at most 2^28 bytes.
Bytes field(unsigned number, std::span<const std::byte> content) {
  Bytes out{static_cast<std::byte>(number << 3U | 2U)};
  for (int shift = 0; shift < 28; shift += 7)
    out.push_back(static_cast<std::byte>((content.size() >> shift & 0x7fU) | (shift < 21 ? 0x80U : 0U)));
  return out + content;
}

class TfRecordGzip : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
    maker_.emplace(GzipMaker::start().value());
  }

  Bytes gzip(std::span<const std::byte> bytes) {
    Bytes out;
    EXPECT_OK(maker_->make({&bytes, 1}, [&](std::span<const std::byte> made) {
      out = std::move(out) + made;
      return success();
    }));
    return out;
  }

  // Three pictures as a TFRecord, plain and compressed.
  struct Written {
    Bytes plain;
    Bytes compressed;
    std::vector<TestSample> samples;
    std::vector<Placement> placed;  // places of the samples in `compressed`
  };
  static Written write() {
    Written out;
    out.samples = test_samples({&kJpegField, 1}, 3);
    for (TestSample& sample : out.samples)
      sample.fields[0] = bytes_of("\xff\xd8\xff JPEG") + sample.fields[0];
    out.samples[1].fields[0] = out.samples[1].fields[0] + Bytes(300, std::byte{'x'});
    const Tier tier = open_tier("mem:tfrecord-gzip-test", kNoNamedTiers).value();
    EXPECT_OK(make_object(*tier.backend, *format_of("tfrecord"), "plain", {&kJpegField, 1}, out.samples));
    const auto format = format_of("tfrecord", {{"compression", "gzip"}});
    out.placed =
        make_object(*tier.backend, *format, "compressed", {&kJpegField, 1}, out.samples).value().placed;
    out.plain = content(*tier.backend, "plain");
    out.compressed = content(*tier.backend, "compressed");
    return out;
  }

  std::optional<GzipMaker> maker_;
};

TEST_F(TfRecordGzip, EveryRecordIsAMemberOfItsOwn) {
  const Written written = write();
  StreamInflater inflater = StreamInflater::start(DeflateFormat::gzip).value();
  Bytes all;
  uint64_t at = 0;
  for (const Placement& placement : written.placed) {
    EXPECT_EQ(placement.offset, at);
    at += placement.length;
    const auto member = std::span(written.compressed).subspan(placement.offset, placement.length);
    EXPECT_EQ(placement.crc32c, crc32c(member));
    Bytes record(1000);
    inflater.begin();
    const auto step = inflater.step(member, record).value();
    EXPECT_TRUE(step.ended);
    EXPECT_EQ(step.in_bytes, member.size());
    record.resize(step.out_bytes);
    all = std::move(all) + record;
  }
  EXPECT_EQ(at, written.compressed.size());
  EXPECT_EQ(all, written.plain);
}

TEST_F(TfRecordGzip, AScanFindsTheWrittenSamples) {
  const Written written = write();
  ScanFixture fixture("tfrecord");
  const auto found = fixture.scan(written.compressed).value();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < found.size(); ++i) {
    const Placement at{written.placed[i].offset, written.placed[i].length};
    EXPECT_EQ(found[i],
              (ScanFixture::Sample{std::to_string(written.samples[i].label), at, std::string(kCodec)}));
  }
  EXPECT_EQ(format_of("tfrecord", {{"compression", "gzip"}})->wrapping(), ".tfrecord.gz");
}

TEST_F(TfRecordGzip, NamesEndInGz) {
  const auto format = format_of("tfrecord", {{"compression", "gzip"}});
  EXPECT_EQ(format->object_name(0, 54, "imagenet", "a/b", ".JPEG"), "imagenet-00000-of-00054.tfrecord.gz");
  for (const char* name : {"a.tfrecord.gz", "b/a.tfrecords.gz", "a.tfrec.gz", "train-00003-of-01024.gz",
                           "a.tfrecord.zst", "a.record.zz"})
    EXPECT_TRUE(format->claims(name)) << name;
  for (const char* name : {"a.gz", "a.jpg.gz", ".a.tfrecord.gz", ".gz", "a.tfrecord.gz.gz", "a.zst"})
    EXPECT_FALSE(format->claims(name)) << name;
}

TEST_F(TfRecordGzip, TruncationIsAnErrorOrLeavesWholeRecords) {
  const Written written = write();
  ScanFixture fixture("tfrecord");
  size_t whole = 0;
  for (size_t cut = 0; cut < written.compressed.size(); ++cut) {
    if (whole < 3 && cut == written.placed[whole].offset) {
      EXPECT_EQ(fixture.scan(std::span(written.compressed).first(cut)).value().size(), whole++);
      continue;
    }
    const auto samples = fixture.scan(std::span(written.compressed).first(cut));
    ASSERT_FALSE(samples.ok()) << cut;
    if (cut > 1) {
      EXPECT_EQ(samples.error().code, Errc::truncated) << samples.error().what;
    }
  }
  EXPECT_EQ(whole, 3U);
}

TEST_F(TfRecordGzip, EveryFlippedBitIsAnErrorOrHarmless) {
  const Written written = write();
  ScanFixture fixture("tfrecord");
  const auto right = fixture.scan(written.compressed).value();
  Bytes bytes = written.compressed;
  size_t error_count = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto samples = fixture.scan(bytes);
    if (samples.ok()) {
      EXPECT_EQ(*samples, right) << bit;
    } else {
      EXPECT_NE(samples.error().what.find("at byte "), std::string::npos);
      ++error_count;
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_GE(error_count, 8 * (bytes.size() - size_t{3} * 7))
      << "of a member's header, 7 bytes may say what they like";
}

TEST_F(TfRecordGzip, BytesBetweenAndAfterMembers) {
  const Written written = write();
  ScanFixture fixture("tfrecord");
  const Bytes nothing = gzip({});
  EXPECT_TRUE(fixture.scan(nothing).value().empty());
  EXPECT_EQ(fixture.scan(nothing + written.compressed + nothing).value().size(), 3U);
  for (const Bytes& appended : {Bytes(512), bytes_of("something else"), written.plain}) {
    const auto samples = fixture.scan(written.compressed + appended);
    ASSERT_FALSE(samples.ok());
    EXPECT_EQ(samples.error().code, Errc::corrupt);
    const std::string where = "at byte " + std::to_string(written.compressed.size());
    EXPECT_NE(samples.error().what.find(where), std::string::npos) << samples.error().what;
  }
}

TEST_F(TfRecordGzip, LabelsAfterALargePayload) {
  const Bytes large = bytes_of("\xff\xd8\xff") + pattern(3 << 20, 5);
  const std::span<const std::byte> content(large);
  TfExampleWriter example;
  example.add("image/encoded", FieldBytes{.pieces = {&content, 1}, .bytes = large.size()});
  const uint64_t label = 42;
  example.add("image/class/label", std::span(&label, 1));
  std::vector<std::span<const std::byte>> pieces;
  const auto message = example.finish(pieces);
  const Bytes member = gzip(record_of(joined({.pieces = pieces, .bytes = message.bytes})));
  ScanFixture fixture("tfrecord");
  const auto samples = fixture.scan(member + member).value();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1], (ScanFixture::Sample{"42", {member.size(), member.size()}, std::string(kCodec)}));
  EXPECT_TRUE(std::ranges::equal(SampleOpener::make(kCodec).value().open(member).value(), large));
}

// When the scan has found the label, the bytes of the payload are no longer in memory.
TEST_F(TfRecordGzip, LargeFeaturesAfterThePayload) {
  const Bytes small = bytes_of("\xff\xd8\xff") + pattern(1000, 5);
  const Bytes mask = pattern(400'000, 6);
  Bytes records;
  Bytes members;
  for (uint64_t i = 0; i < 2; ++i) {
    TfExampleWriter example;
    const std::span<const std::byte> content(small);
    const std::span<const std::byte> mask_content(mask);
    example.add("image/encoded", FieldBytes{.pieces = {&content, 1}, .bytes = small.size()});
    example.add("mask", FieldBytes{.pieces = {&mask_content, 1}, .bytes = mask.size()});
    example.add("image/class/label", std::span(&i, 1));
    std::vector<std::span<const std::byte>> pieces;
    const auto message = example.finish(pieces);
    const Bytes record = record_of(joined({.pieces = pieces, .bytes = message.bytes}));
    records = std::move(records) + record;
    members = std::move(members) + gzip(record);
  }
  ScanFixture fixture("tfrecord");
  for (const Bytes& object : {members, gzip(records)}) {
    const auto samples = fixture.scan(object);
    ASSERT_OK(samples);
    ASSERT_EQ(samples->size(), 2U);
    EXPECT_EQ((*samples)[1].label, "1");
  }
}

TEST_F(TfRecordGzip, ANameAfterItsBytesIsAnError) {
  const Bytes value = field(2, field(1, field(1, pattern(300000, 1))));
  const Bytes record = record_of(field(1, field(1, value + field(1, bytes_of("image/encoded")))));
  ScanFixture fixture("tfrecord");
  ASSERT_OK(fixture.scan(record));  // in an uncompressed object a scan can go back
  const auto samples = fixture.scan(gzip(record));
  ASSERT_FALSE(samples.ok());
  EXPECT_EQ(samples.error().code, Errc::unsupported);
  EXPECT_NE(samples.error().what.find("decompress the file first"), std::string::npos)
      << samples.error().what;
}

TEST_F(TfRecordGzip, AbsurdLengthsAndOtherThingsInside) {
  ScanFixture fixture("tfrecord");
  for (const uint64_t length : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX - 3, UINT64_MAX}) {
    const auto header = tfrecord_header(length);
    const Bytes member = gzip(header);
    EXPECT_EQ(fixture.scan(member).error().code, Errc::truncated) << length;
    EXPECT_EQ(SampleOpener::make(kCodec).value().open(member).error().code, Errc::truncated) << length;
  }
  // Each compressed byte here inflates to hundreds of zeros, which must neither be kept in memory nor taken
  // for a record.
  const Bytes zeros = gzip(Bytes(size_t{64} << 20U));
  for (const Bytes& member : {zeros, gzip(bytes_of("12 letters!!")), gzip(bytes_of("short"))}) {
    EXPECT_FALSE(fixture.scan(member).ok());
    EXPECT_FALSE(SampleOpener::make(kCodec).value().open(member).ok());
  }
}

TEST_F(TfRecordGzip, OpensTheWrittenSamples) {
  const Written written = write();
  for (const std::string_view codec : {kCodec, std::string_view("mixed")}) {
    SampleOpener opener = SampleOpener::make(codec).value();
    for (size_t i = 0; i < 3; ++i) {
      const auto member = std::span<const std::byte>(written.compressed)
                              .subspan(written.placed[i].offset, written.placed[i].length);
      EXPECT_TRUE(opener.is_wrapped(member));
      EXPECT_TRUE(std::ranges::equal(opener.open(member).value(), written.samples[i].fields[0])) << i;
    }
  }
  EXPECT_EQ(payload_codec(kCodec), "jpeg");
}

TEST_F(TfRecordGzip, OtherSamplesAreReturnedUnchanged) {
  const Bytes picture = bytes_of("\xff\xd8\xff and so on");
  const Bytes member = gzip(record_of(picture));
  for (const char* codec : {"jpeg", "raw", ""}) {
    SampleOpener opener = SampleOpener::make(codec).value();
    EXPECT_FALSE(opener.is_wrapped(member));
    EXPECT_EQ(opener.open(member).value().data(), member.data());
    EXPECT_EQ(payload_codec(codec), codec);
  }
  SampleOpener mixed = SampleOpener::make("mixed").value();
  EXPECT_EQ(mixed.open(picture).value().data(), picture.data());
  EXPECT_FALSE(SampleOpener::make(kCodec).value().open(picture).ok());
}

TEST_F(TfRecordGzip, AnOpenedSampleIsRightOrAnError) {
  const Written written = write();
  const Bytes whole(
      written.compressed.begin() + ptrdiff_t(written.placed[1].offset),
      written.compressed.begin() + ptrdiff_t(written.placed[1].offset + written.placed[1].length));
  SampleOpener opener = SampleOpener::make(kCodec).value();
  for (size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_EQ(opener.open(std::span(whole).first(cut)).error().code, Errc::truncated) << cut;
  Bytes bytes = whole;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto opened = opener.open(bytes);
    if (opened.ok()) {
      EXPECT_TRUE(std::ranges::equal(*opened, written.samples[1].fields[0])) << bit;
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_TRUE(opener.open(whole).ok());
  EXPECT_EQ(opener.open(whole + whole).error().code, Errc::corrupt);
  EXPECT_EQ(opener.open(gzip(written.plain)).error().code, Errc::corrupt);
}

TEST_F(TfRecordGzip, ChecksumsOfTheRecordCount) {
  Bytes record =
      record_of(field(1, field(1, field(1, bytes_of("x")) + field(2, field(1, field(1, Bytes(9)))))));
  SampleOpener opener = SampleOpener::make(kCodec).value();
  ASSERT_EQ(opener.open(gzip(record)).value().size(), 9U);
  for (const size_t at : {size_t{8}, size_t{20}, record.size() - 1}) {
    Bytes wrong = record;
    wrong[at] ^= std::byte{1};
    EXPECT_EQ(opener.open(gzip(wrong)).error().code, Errc::corrupt) << at;
  }
}

TEST_F(TfRecordGzip, ARecordLargerThanAllowedIsRefused) {
  const Bytes member = gzip(record_of(field(1, field(1, field(2, field(1, field(1, Bytes(100000))))))));
  EXPECT_OK(SampleOpener::make(kCodec, 200000).value().open(member));
  const auto refused = SampleOpener::make(kCodec, 50000).value().open(member);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::unsupported);
}

TEST(TfRecordWithoutZlib, SaysWhatTheBuildLacks) {
  if (gzip_available().ok()) GTEST_SKIP() << "this build has zlib";
  const FormatInfo* const info = format_registry().find("tfrecord").value();
  const OptionWord word{"compression", "gzip"};
  const auto refused = info->make(Options::parse(info->options, {&word, 1}, "format option").value());
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().what.find("zlib"), std::string::npos);
  ScanFixture fixture("tfrecord");
  const auto samples = fixture.scan(Bytes{std::byte{0x1f}, std::byte{0x8b}, std::byte{8}});
  EXPECT_EQ(samples.error().code, Errc::unsupported);
  EXPECT_NE(samples.error().what.find("decompress the file first"), std::string::npos);
  const auto opener = SampleOpener::make(kCodec);
  EXPECT_EQ(opener.error().code, Errc::unsupported);
  for (const char* part : {"zlib", "gunzip", "--scan"})
    EXPECT_NE(opener.error().what.find(part), std::string::npos) << opener.error().what;
}

}  // namespace
}  // namespace penstock
