// Pictures that other readers decode with a warning at most.
#include <algorithm>
#include <string>

#include "datagen/codec/jpeg_testing.hpp"

namespace penstock {
namespace {

Bytes insert(Bytes bytes, size_t at, const Bytes& inserted) {
  bytes.insert(bytes.begin() + ptrdiff_t(at), inserted.begin(), inserted.end());
  return bytes;
}

// Returns the JPEG without its segments of this marker.
Bytes without_segments(const Bytes& jpeg, std::byte marker) {
  Bytes out(jpeg.begin(), jpeg.begin() + 2);
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    const auto begin = jpeg.begin() + ptrdiff_t(at);
    const size_t bytes =
        2 + std::to_integer<size_t>(jpeg[at + 2]) * 256 + std::to_integer<size_t>(jpeg[at + 3]);
    const bool is_scan = jpeg[at + 1] == std::byte{0xda};
    if (jpeg[at + 1] != marker) out.insert(out.end(), begin, is_scan ? jpeg.end() : begin + ptrdiff_t(bytes));
    if (is_scan) break;
    at += bytes;
  }
  return out;
}

// Bytes that other readers decode with a warning at most.
struct OddPicture {
  const char* name;
  Bytes bytes;
  PictureWarnings expected;
  bool same_pixels;  // as the picture that it was made of
};
std::vector<OddPicture> odd_pictures(const Bytes& jpeg) {
  const Bytes zeros(99, std::byte{0});
  const size_t end = jpeg.size() - 2;
  const Bytes end_marker{std::byte{0xff}, std::byte{0xd9}};
  return {
      {"sound", jpeg, {}, true},
      {"stray bytes before the end", insert(jpeg, end, zeros), warnings({PictureWarning::stray_bytes}), true},
      {"stray bytes in the header", insert(jpeg, 2, zeros), warnings({PictureWarning::stray_bytes}), true},
      {"no end marker", Bytes(jpeg.begin(), jpeg.end() - 2), warnings({PictureWarning::no_end_marker}), true},
      {"an end marker in the middle", insert(jpeg, jpeg.size() / 2, end_marker),
       warnings({PictureWarning::early_end, PictureWarning::bytes_after_end}), false},
      {"bytes after the end", insert(jpeg, jpeg.size(), zeros), warnings({PictureWarning::bytes_after_end}),
       true},
      {"a second picture", insert(jpeg, jpeg.size(), jpeg), warnings({PictureWarning::more_pictures}), true},
      {"a second picture after zeros", insert(insert(jpeg, jpeg.size(), zeros), jpeg.size() + 99, jpeg),
       warnings({PictureWarning::more_pictures}), true},
      {"the usual Huffman tables left out", without_segments(jpeg, std::byte{0xc4}), {}, true},
  };
}

TEST(JpegWarnings, EveryWayOfDecodingHasTheSamePixelsAndWarnings) {
  JpegDecoder decoder;
  Image sound;
  Image whole;
  Image part;
  Image shrunk;
  const Bytes jpeg = baseline(speckles(90, 61, 4));
  ASSERT_TRUE(decoder.decode(jpeg, sound).ok());
  for (const OddPicture& odd : odd_pictures(jpeg)) {
    ASSERT_TRUE(decoder.decode(odd.bytes, whole).ok()) << odd.name;
    EXPECT_EQ(whole.warnings, odd.expected) << odd.name;
    EXPECT_EQ(whole.pixels == sound.pixels, odd.same_pixels) << odd.name;
    ASSERT_TRUE(decoder.decode_part(odd.bytes, {0, 0, 90, 61}, part).ok()) << odd.name;
    EXPECT_EQ(part.warnings, odd.expected) << odd.name;
    EXPECT_EQ(part.pixels, whole.pixels) << odd.name;
    ASSERT_TRUE(decoder.decode(odd.bytes, shrunk, 2).ok()) << odd.name;
    EXPECT_EQ(shrunk.warnings, odd.expected) << odd.name;
    expect_parts_of(odd.bytes);
  }
}

TEST(JpegWarnings, ProgressivePicturesToo) {
  JpegDecoder decoder;
  Image whole;
  for (const OddPicture& odd : odd_pictures(progressive(speckles(61, 47, 3)))) {
    if (odd.name == std::string("the usual Huffman tables left out")) continue;  // its tables are its own
    ASSERT_TRUE(decoder.decode(odd.bytes, whole).ok()) << odd.name;
    expect_parts_of(odd.bytes);
  }
}

TEST(JpegWarnings, RestartMarkersOutOfOrder) {
  Kind kind;
  kind.restart_rows = 1;
  Bytes jpeg = encode_kind(kind, 64, 64, speckles(64, 64, 5).pixels);
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(jpeg, decoded).ok());
  EXPECT_TRUE(decoded.warnings.none());
  const Bytes second{std::byte{0xff}, std::byte{0xd1}};
  const auto at = std::search(jpeg.begin(), jpeg.end(), second.begin(), second.end());
  ASSERT_NE(at, jpeg.end());
  at[1] = std::byte{0xd2};
  ASSERT_TRUE(decoder.decode(jpeg, decoded).ok());
  EXPECT_TRUE(decoded.warnings[size_t(PictureWarning::wrong_restarts)]);
  expect_parts_of(jpeg);
}

TEST(JpegWarnings, CmykWithoutAdobesMarker) {
  JpegDecoder decoder;
  Image marked;
  Image unmarked;
  const std::vector<uint8_t> ink(size_t{16} * 16 * 4, 77);
  Kind kind{JCS_CMYK, JCS_CMYK, 4, false, true};
  ASSERT_TRUE(decoder.decode(encode_kind(kind, 16, 16, ink), marked).ok());
  EXPECT_TRUE(marked.warnings.none());
  kind.adobe = false;
  ASSERT_TRUE(decoder.decode(encode_kind(kind, 16, 16, ink), unmarked).ok());
  EXPECT_EQ(unmarked.warnings, warnings({PictureWarning::cmyk_without_adobe}));
  EXPECT_EQ(marked.pixels, unmarked.pixels);
}

TEST(JpegWarnings, TablesOfAnEarlierPictureAreNotUsed) {
  const Bytes tableless = without_segments(baseline(slopes(16, 16)), std::byte{0xdb});
  JpegDecoder decoder;
  Image decoded;
  EXPECT_FALSE(decoder.decode(tableless, decoded).ok());
  ASSERT_TRUE(decoder.decode(baseline(slopes(16, 16)), decoded).ok());
  EXPECT_FALSE(decoder.decode(tableless, decoded).ok());
}

TEST(JpegWarnings, CountsNameTheFirstSample) {
  PictureWarningCounts counts;
  counts.add(warnings({PictureWarning::stray_bytes, PictureWarning::no_end_marker}), "'a.jpg'");
  counts.add(warnings({PictureWarning::stray_bytes}), "'b.jpg'");
  PictureWarningCounts all = PictureWarningCounts::from_json(counts.json());
  all.add(counts);
  EXPECT_EQ(all.samples, 4U);
  EXPECT_EQ(all.by_warning[size_t(PictureWarning::stray_bytes)], 4U);
  EXPECT_EQ(all.by_warning[size_t(PictureWarning::no_end_marker)], 2U);
  EXPECT_EQ(all.first, counts.first);
  EXPECT_TRUE(all.first.starts_with("'a.jpg'"));
}

}  // namespace
}  // namespace penstock
