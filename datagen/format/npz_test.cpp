#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/format/npy_header.hpp"
#include "datagen/format/zip_archive.hpp"
#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

const Field kPixels{.name = "x", .codec = "raw", .extension = ".bin", .shape = {2, 3}};
const Field kWeight{
    .name = "weight", .codec = "raw", .extension = ".bin", .element = Element::f32, .shape = {}};
const Field kTrack{.name = "track",
                   .codec = "raw",
                   .extension = ".bin",
                   .element = Element::i32,
                   .shape = {},
                   .varies = true};
const Field kJpeg{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};

class Arrays : public ::testing::Test {
 protected:
  Tier tier_ = open_tier("mem:arrays", kNoNamedTiers).value();
  Backend& backend_ = *tier_.backend;
};
using Npy = Arrays;
using Npz = Arrays;

const std::vector<OptionWord> kOneSamplePerFile{{"samples_per_file", "1"}};

std::string header_text(Backend& backend, std::string_view name) {
  const std::string text = text_of(content(backend, name));
  return text.substr(10, text.find('\n') - 10);
}

TEST_F(Npy, AnArrayIsOneSampleOrAllSamples) {
  const std::vector<Field> fields{kPixels};
  const auto samples = test_samples(fields, 5);
  const auto one = make_object(backend_, *format_of("npy", kOneSamplePerFile), "one.npy", fields,
                               std::span(samples).first(1));
  ASSERT_OK(one);
  EXPECT_EQ(header_text(backend_, "one.npy").substr(0, 59),
            "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }");
  EXPECT_EQ(one->placed[0].offset % 64, 0U);
  ASSERT_OK(make_object(backend_, *format_of("npy"), "all-00000-of-00001.npy", fields, samples));
  EXPECT_NE(header_text(backend_, "all-00000-of-00001.npy").find("(5, 2, 3)"), std::string::npos);
  EXPECT_EQ(scan_object(backend_, *format_of("npy"), "all-00000-of-00001.npy")->size(), 5U);
  put(backend_, "somebody.npy", content(backend_, "all-00000-of-00001.npy"));
  EXPECT_EQ(scan_object(backend_, *format_of("npy"), "somebody.npy")->size(), 1U);
}

TEST_F(Npy, RefusesWhatIsNoArray) {
  EXPECT_ERRC(Errc::invalid_argument, format_of("npy")->check({&kJpeg, 1}), "samples_per_file=1");
  EXPECT_OK(format_of("npy", kOneSamplePerFile)->check({&kJpeg, 1}));
  const std::vector<Field> two{kPixels, kWeight};
  EXPECT_ERRC(Errc::invalid_argument, format_of("npy")->check(two), "npz");
}

TEST_F(Npy, HeadersOfOtherProgramsAreRead) {
  const auto parsed = [](std::string_view text) { return parse_npy_text(text); };
  const NpyArray big = parsed("{\"shape\":(3L,4), \"descr\" : '>i2','fortran_order':True}").value();
  EXPECT_TRUE(big.big_endian && big.fortran_order && big.is_integer());
  EXPECT_EQ(big.data_bytes, 24U);
  EXPECT_EQ(parsed("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }")->data_bytes, 24U);
  EXPECT_EQ(parsed("{'descr': '<f8', 'fortran_order': False, 'shape': (), }")->data_bytes, 8U);
  EXPECT_EQ(parsed("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 99999999999, 99999999999), }")
                ->data_bytes,
            0U);
  EXPECT_ERRC(Errc::unsupported, parsed("{'descr': '|O', 'fortran_order': False, 'shape': (), }"), "pickle");
  EXPECT_ERRC(Errc::unsupported, parsed("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
              "structured");
  for (const char* text :
       {"", "{", "{}", "()", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "{'descr': 'f4",
        "{'descr': '<i3', 'shape': (",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more", "{'descr': '<f4', 'a': False}",
        "{'descr': '<f99999999999', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<q8', 'fortran_order': False, 'shape': ()}"})
    EXPECT_ERRC(Errc::corrupt, parsed(text)) << text;
  std::string sides;
  for (int i = 0; i < 1000; ++i) sides += "1,";
  EXPECT_ERRC(Errc::corrupt, parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (" + sides + ")}"));
}

TEST_F(Npy, DamageIsAnError) {
  const std::vector<Field> fields{kPixels};
  const auto made =
      make_object(backend_, *format_of("npy"), "a.npy", fields, test_samples(fields, 3)).value();
  auto bytes = content(backend_, "a.npy");
  ScanFixture fixture("npy");
  expect_hardened(fixture, bytes, made.placed[0].offset, bytes.size());
  // NumPy reads the first array of a file, whatever follows it.
  bytes.push_back(std::byte{});
  EXPECT_TRUE(fixture.scan(bytes).ok());
  bytes.resize(bytes.size() - 2);
  EXPECT_ERRC(Errc::corrupt, fixture.scan(bytes), "NumPy array of");
}

TEST_F(Npy, TheUserStopsAScanOfManyRows) {
  const std::vector<Field> fields{{.name = "x", .codec = "raw", .extension = ".bin", .shape = {1}}};
  const std::string name = "all-00000-of-00001.npy";
  ASSERT_OK(make_object(backend_, *format_of("npy"), name, fields, test_samples(fields, 200000)));
  uint64_t samples = 0;
  const auto stopped = format_of("npy")->scan(backend_, backend_.names().stat(name).value(),
                                              [&](const Format::FoundSample& /*found*/) {
                                                if (++samples == 1) simulate_interrupt(2);
                                              });
  simulate_interrupt(0);
  EXPECT_ERRC(Errc::interrupted, stopped, "");
  EXPECT_LT(samples, 100000U);
}

TEST_F(Npz, OneDimensionalArraysAreOneSample) {
  expect_one_sample_of_two_signals(backend_, "npz");
}

TEST_F(Npz, EveryFieldIsAnArray) {
  const std::vector<Field> fields{kPixels, kWeight, kTrack, kJpeg};
  for (const size_t count : {1U, 4U}) {
    const auto samples = test_samples(fields, count);
    const auto format = count == 1 ? format_of("npz", kOneSamplePerFile) : format_of("npz");
    const auto made = make_object(backend_, *format, "all.npz", fields, samples);
    ASSERT_OK(made);
    const auto whole = content(backend_, "all.npz");
    const auto scanned = scan_object(backend_, *format, "all.npz");
    ASSERT_OK(scanned);
    ASSERT_EQ(scanned->size(), count);
    EXPECT_EQ((*scanned)[count - 1].label, std::to_string(samples[count - 1].label));
    auto window = ObjectWindow::open(backend_, {.name = "all.npz", .bytes = whole.size()});
    ASSERT_OK(window);
    const auto members = read_zip(*window);
    ASSERT_OK(members);
    std::string names;
    for (const ArchiveMember& member : *members) {
      EXPECT_EQ(member.content.offset % kZipAlignment, 0U) << member.name;
      names += member.name + " ";
    }
    EXPECT_EQ(names,
              count == 1
                  ? "x.npy weight.npy track.npy image.npy label.npy "
                  : "x.npy weight.npy track.npy track_offsets.npy image.npy image_offsets.npy label.npy ");
  }
}

TEST_F(Npz, AFieldNamedYIsTheLabels) {
  const std::vector<Field> fields{kPixels, {.name = "y", .codec = "raw", .extension = ".bin", .shape = {}}};
  auto samples = test_samples(fields, 3);
  ASSERT_OK(make_object(backend_, *format_of("npz"), "y.npz", fields, samples));
  const auto scanned = scan_object(backend_, *format_of("npz"), "y.npz");
  ASSERT_OK(scanned);
  ASSERT_EQ(scanned->size(), 3U);
  EXPECT_EQ((*scanned)[2].label, std::to_string(std::to_integer<int>(samples[2].fields[1][0])));
}

TEST_F(Npz, SamplesOfVaryingSizeAreRanges) {
  const std::vector<Field> fields{kJpeg};
  auto samples = test_samples(fields, 6);
  samples[0].fields[0] =
      std::vector<std::byte>{std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}, {}, {}, {}, {}, {}};
  const auto format = format_of("npz");
  const auto made = make_object(backend_, *format, "v.npz", fields, samples).value();
  const auto scanned = scan_object(backend_, *format, "v.npz").value();
  ASSERT_EQ(scanned.size(), 6U);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(scanned[i].placement.offset, made.placed[i].offset);
    EXPECT_EQ(scanned[i].placement.length, samples[i].fields[0].size());
    EXPECT_EQ(scanned[i].codec, "jpeg");
  }
  // On a back end that cannot overwrite, the result must have the same bytes.
  Tier tier = open_tier("mem:appending", kNoNamedTiers).value();
  AppendingBackend appending(std::move(tier.backend));
  ASSERT_OK(make_object(appending, *format, "v.npz", fields, samples));
  EXPECT_TRUE(content(appending, "v.npz") == content(backend_, "v.npz"));
}

TEST_F(Npz, VaryingLengthsMayBeFollowedByDimensionsOfOne) {
  const std::vector<Field> fields{
      {.name = "x", .codec = "raw", .extension = ".npy", .varies = true, .trailing_ones = 2},
      {.name = "y", .codec = "raw", .extension = ".npy", .element = Element::i64, .shape = {1}}};
  const auto samples = test_samples(fields, 4);  // with x of 0, 13, 26 and 10 bytes
  for (const size_t i : {0U, 2U}) {
    const auto made = make_object(backend_, *format_of("npz", kOneSamplePerFile), "one.npz", fields,
                                  std::span(samples).subspan(i, 1));
    ASSERT_OK(made);
    const std::string text = text_of(content(backend_, "one.npz"));
    EXPECT_NE(text.find(i == 0 ? "(0, 1, 1)" : "(26, 1, 1)"), std::string::npos);
    EXPECT_NE(text.find("'shape': (1,)"), std::string::npos);
    const auto scanned = scan_object(backend_, *format_of("npz"), "one.npz");
    ASSERT_OK(scanned);
    ASSERT_EQ(scanned->size(), 1U);
    EXPECT_EQ((*scanned)[0].placement.offset, made->placed[0].offset);
    EXPECT_EQ((*scanned)[0].placement.length, samples[i].fields[0].size());
  }
  // In an object of several samples, x is one array with all samples one after another.
  ASSERT_OK(make_object(backend_, *format_of("npz"), "all.npz", fields, samples));
  EXPECT_NE(text_of(content(backend_, "all.npz")).find("'shape': (49,)"), std::string::npos);
  EXPECT_EQ(scan_object(backend_, *format_of("npz"), "all.npz")->size(), 4U);
}

TEST_F(Npz, RefusesNamesThatCollide) {
  const std::vector<Field> twice{kJpeg,
                                 {.name = "image_offsets", .codec = "raw", .extension = ".bin", .shape = {}}};
  EXPECT_ERRC(Errc::invalid_argument, format_of("npz")->check(twice), "image_offsets");
  const std::vector<Field> bad{{.name = "../x", .codec = "raw", .extension = ".bin", .shape = {}}};
  EXPECT_ERRC(Errc::invalid_argument, format_of("npz")->check(bad), "../x");
}

TEST_F(Npz, DamageIsAnError) {
  ScanFixture fixture("npz");
  for (const std::vector<Field>& fields : {std::vector<Field>{kPixels, kWeight}, std::vector<Field>{kJpeg}}) {
    ASSERT_OK(make_object(backend_, fixture.format(), "a.npz", fields, test_samples(fields, 3)));
    expect_hardened(fixture, content(backend_, "a.npz"), 0, 0);
  }
}

TEST_F(Npz, AbsurdNumbersAreErrors) {
  const std::vector<Field> fields{kPixels};
  ScanFixture fixture("npz");
  ASSERT_OK(make_object(backend_, fixture.format(), "a.npz", fields, test_samples(fields, 3)));
  const auto whole = content(backend_, "a.npz");
  const size_t end = whole.size() - 22;
  const size_t directory = number_at(whole, end + 16, 4);
  const auto with = [&](size_t at, size_t count, uint64_t value) {
    auto bytes = whole;
    for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
    return fixture.scan(bytes);
  };
  EXPECT_ERRC(Errc::corrupt, with(end + 10, 2, 0xfffe), "65534 members");
  EXPECT_ERRC(Errc::corrupt, with(end + 12, 4, 0xfffffff0), "ZIP directory");
  EXPECT_ERRC(Errc::corrupt, with(end + 16, 4, 0xfffffff0), "ZIP directory");
  EXPECT_ERRC(Errc::unsupported, with(directory + 10, 2, 14), "'x.npy' uses ZIP compression method 14");
  EXPECT_FALSE(with(directory + 10, 2, 8).ok()) << "no stream of deflate is there";
  EXPECT_ERRC(Errc::unsupported, with(directory + 8, 2, 1), "encrypted");
  EXPECT_ERRC(Errc::corrupt, with(directory + 42, 4, 0xfffffff0), "'x.npy'");
  EXPECT_ERRC(Errc::corrupt, with(directory + 28, 2, 0xffff), "directory");
  EXPECT_ERRC(Errc::corrupt, with(0, 4, 0), "no ZIP member");
}

std::vector<std::byte> archive(const std::vector<std::pair<std::string, std::vector<std::byte>>>& files) {
  HeaderBytes out;
  std::vector<ZipMember> members;
  for (const auto& [name, bytes] : files) {
    members.push_back(
        {.name = name, .header_offset = out.size(), .bytes = bytes.size(), .crc32 = crc32(bytes)});
    out.append(zip_local_header(members.back())).append(bytes);
  }
  out.append(zip_directory(members, out.size()));
  return out.take();
}

TEST_F(Npz, InvalidOffsetsAreReported) {
  const std::vector<uint64_t> sides{3};
  const auto image = HeaderBytes().append(npy_header(Element::u8, sides)).text("abc").take();
  HeaderBytes offsets;
  offsets.append(npy_header(Element::i64, sides));
  for (const int64_t offset : {0, -5, 3}) offsets.u64(uint64_t(offset));
  EXPECT_ERRC(Errc::corrupt,
              ScanFixture("npz").scan(archive({{"x.npy", image}, {"x_offsets.npy", offsets.take()}})),
              "sample 0 of 'x' from element 0 to -5 of 3");
}

// Arrays that only Python can read are skipped; the samples next to them are found.
TEST_F(Npz, ArraysThatAreNotReadAreSkipped) {
  constexpr std::string_view kPickled = "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n";
  const auto pickle =
      HeaderBytes().text("\x93NUMPY").u8(1).u8(0).u16(kPickled.size()).text(kPickled).text("(lp0").take();
  const auto numbers =
      HeaderBytes().append(npy_header(Element::u8, std::vector<uint64_t>{2, 3})).text("abcdef").take();
  ScanFixture fixture("npz");
  const auto samples =
      fixture.scan(archive({{"info.npy", pickle}, {"x.npy", numbers}, {"more.npy", pickle}}));
  ASSERT_OK(samples);
  EXPECT_EQ(samples->size(), 2U);
  EXPECT_ERRC(Errc::unsupported, fixture.scan(archive({{"info.npy", pickle}})), "pickle");
  EXPECT_ERRC(Errc::corrupt,
              fixture.scan(archive({{"x.npy", numbers}, {"bad.npy", std::vector<std::byte>(20)}})),
              "no NumPy array");
}

// NumPy reads the first array of a member.
TEST_F(Npz, BytesAfterAnArrayAreLeftOut) {
  const auto member =
      HeaderBytes().append(npy_header(Element::u8, std::vector<uint64_t>{2, 3})).text("abcdefg").take();
  const auto whole = archive({{"x.npy", member}});
  const auto samples = ScanFixture("npz").scan(whole);
  ASSERT_OK(samples);
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ(as_text(whole).substr(size_t((*samples)[1].placement.offset), 3), "def");
  const auto cut =
      HeaderBytes().append(npy_header(Element::u8, std::vector<uint64_t>{2, 3})).text("abcde").take();
  EXPECT_ERRC(Errc::corrupt, ScanFixture("npz").scan(archive({{"x.npy", cut}})), "6 bytes, and 5 bytes");
}

// As NumPy does: a member is an array by its first bytes, and "x" is read rather than "x.npy".
TEST_F(Npz, MembersWithoutSuffixAreArraysToo) {
  const auto rows = [](uint64_t count) {
    return HeaderBytes()
        .append(npy_header(Element::u8, std::vector<uint64_t>{count, 1}))
        .text(std::string(count, 'x'))
        .take();
  };
  const auto text = HeaderBytes().text("no array").take();
  ScanFixture fixture("npz");
  const auto count = [&](const std::vector<std::pair<std::string, std::vector<std::byte>>>& files) {
    const auto samples = fixture.scan(archive(files));
    EXPECT_OK(samples);
    return samples.ok() ? samples->size() : 0;
  };
  EXPECT_EQ(count({{"x", rows(2)}}), 2U);
  EXPECT_EQ(count({{"x.npy", rows(3)}, {"x", rows(2)}}), 2U);
  EXPECT_EQ(count({{"x", rows(2)}, {"x.npy", rows(3)}}), 2U);
  EXPECT_EQ(count({{"x", rows(2)}, {"x", rows(3)}}), 3U);
  EXPECT_EQ(count({{"x.npy", rows(3)}, {"notes.txt", text}, {"short", {}}}), 3U);
  EXPECT_ERRC(Errc::unsupported, fixture.scan(archive({{"notes.txt", text}})));
  EXPECT_EQ(count({{"x", text}, {"x.npy", rows(3)}}), 3U);
  EXPECT_EQ(count({{"x.npy", rows(3)}, {"x", text}}), 3U);
  // A member without the suffix may be damaged or packed.
  const auto with = [](std::vector<std::byte> whole, size_t entry_offset, uint8_t value) {
    whole[number_at(whole, whole.size() - 22 + 16, 4) + entry_offset] = std::byte{value};
    return whole;
  };
  const auto two = archive({{"notes", text}, {"x.npy", rows(3)}});
  const auto one = archive({{"x", rows(3)}});
  for (const auto& [entry_offset, value, words] : {std::tuple{8U, 1, "encrypted"},
                                                   {10U, 14, "compressed"},
                                                   {10U, 8, ""},
                                                   {42U, 7, "there is no ZIP member here"}}) {
    const auto samples = fixture.scan(with(two, entry_offset, uint8_t(value)));
    ASSERT_OK(samples);
    EXPECT_EQ(samples->size(), 3U) << words;
    EXPECT_FALSE(fixture.scan(with(one, entry_offset, uint8_t(value))).ok());
    EXPECT_NE(fixture.scan(with(one, entry_offset, uint8_t(value))).error().what.find(words),
              std::string::npos);
  }
}

TEST_F(Npz, BytesBehindTheArchiveAreIgnored) {
  const auto numbers =
      HeaderBytes().append(npy_header(Element::u8, std::vector<uint64_t>{2, 3})).text("abcdef").take();
  const auto whole = archive({{"x.npy", numbers}});
  ScanFixture fixture("npz");
  for (const size_t bytes_after : {1U, 22U, 512U, 0xffffU}) {
    auto longer = whole;
    longer.resize(whole.size() + bytes_after);
    const auto samples = fixture.scan(longer);
    ASSERT_OK(samples);
    EXPECT_EQ(samples->size(), 2U) << bytes_after;
  }
  auto without_end = whole;
  without_end.resize(whole.size() - 1);
  EXPECT_ERRC(Errc::truncated, fixture.scan(without_end), "no end");
}

// An archive whose members share bytes is refused: repeated members would make the work unbounded.
TEST_F(Npz, MembersShareNoBytes) {
  const Field large{.name = "x", .codec = "raw", .extension = ".bin", .shape = {1000}};
  ScanFixture fixture("npz");
  ASSERT_OK(make_object(backend_, fixture.format(), "a.npz", {&large, 1}, test_samples({&large, 1}, 1)));
  const auto whole = content(backend_, "a.npz");
  const size_t end = whole.size() - 22;
  const size_t directory = number_at(whole, end + 16, 4);
  constexpr size_t kEntryBytes = 46 + 5;
  HeaderBytes twice;
  twice.append(std::span(whole).first(directory));
  for (int i = 0; i < 2; ++i) twice.append(std::span(whole).subspan(directory, kEntryBytes));
  twice.u32(0x06054b50).zeros(4).u16(2).u16(2).u32(2 * kEntryBytes).u32(directory).u16(0);
  EXPECT_ERRC(Errc::corrupt, fixture.scan(twice.view()), "'x.npy' overlaps other members");
}

TEST(Zip, LargeArchivesUseZip64) {
  std::vector<ZipMember> members{{.name = "big", .header_offset = 0, .bytes = 0x123456789a, .crc32 = 7},
                                 {.name = "far", .header_offset = 0x2345678900, .bytes = 5, .crc32 = 8}};
  const auto local = zip_local_header(members[0]);
  EXPECT_EQ(local.size() % kZipAlignment, 0U);
  EXPECT_EQ(number_at(local, 18, 4), 0xffffffffU);
  EXPECT_EQ(number_at(local, 30 + 3 + 4, 8), members[0].bytes);
  const auto directory = zip_directory(members, 0x3000000000);
  EXPECT_EQ(number_at(directory, directory.size() - 22, 4), 0x06054b50U);
  EXPECT_EQ(number_at(directory, directory.size() - 22 - 20, 4), 0x07064b50U);
}

// A small archive whose directory has ZIP64 numbers, like the directory of a large archive.
TEST(Zip, Zip64IsRead) {
  const auto array = npy_header(Element::u8, std::vector<uint64_t>{2, 3});
  const uint64_t bytes = array.size() + 6;
  HeaderBytes file;
  file.append(zip_local_header({.name = "x.npy", .bytes = bytes})).append(array).text("abcdef");
  const uint64_t directory = file.size();
  file.u32(0x02014b50)
      .zeros(16)
      .u32(0xffffffff)
      .u32(0xffffffff)
      .u16(5)
      .u16(4 + 4 + 28)
      .zeros(10)
      .u32(0xffffffff);
  file.text("x.npy").u16(0x9999).u16(0).u16(1).u16(28).u64(bytes).u64(bytes).u64(0).u32(0);
  const uint64_t end = file.size();
  file.u32(0x06064b50).u64(44).zeros(12).u64(1).u64(1).u64(end - directory).u64(directory);
  file.u32(0x07064b50).u32(0).u64(end).u32(1);
  file.u32(0x06054b50)
      .zeros(4)
      .u16(0xffff)
      .u16(0xffff)
      .u32(0xffffffff)
      .u32(0xffffffff)
      .u16(7)
      .text("comment");
  ScanFixture fixture("npz");
  const auto samples = fixture.scan(file.view());
  ASSERT_OK(samples);
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[1].placement.offset, directory - 3);
  const std::vector<std::byte> whole = file.take();
  expect_hardened(fixture, whole, 0, 0);
}

}  // namespace
}  // namespace penstock
