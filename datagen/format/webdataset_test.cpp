#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "datagen/format/format_testing.hpp"
#include "datagen/format/scan_fixture.hpp"
#include "datagen/format/tar.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;
using ScanSample = ScanFixture::Sample;

void put(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void write_header_checksum(Bytes& archive, size_t at) {
  for (size_t i = 0; i < 8; ++i) archive[at + 148 + i] = std::byte{' '};
  uint32_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) sum += std::to_integer<uint32_t>(archive[at + i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  for (size_t i = 0; i < 7; ++i) archive[at + 148 + i] = static_cast<std::byte>(text[i]);
}

// Adds a member to a tar archive: a regular file, or an entry of another type.
void add(Bytes& out, std::string_view name, std::string_view content, char type = '0') {
  const size_t at = out.size();
  put_tar_header(out, name, content.size());
  if (type != '0') {
    out[at + 156] = static_cast<std::byte>(type);
    write_header_checksum(out, at);
  }
  put(out, content);
  out.resize(out.size() + tar_padding(content.size()));
}

void close(Bytes& out) {
  out.resize(out.size() + 2 * kTarBlockBytes);
}

std::string pax(std::string_view key, std::string_view value) {
  const std::string rest = " " + std::string(key) + "=" + std::string(value) + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

Result<std::vector<ScanSample>> scan(const Bytes& bytes) {
  return ScanFixture("webdataset").scan(bytes);
}

Bytes small_archive() {
  Bytes archive;
  add(archive, "n1/n1_7.cls", "1");
  add(archive, "n1/n1_7.jpg", "JPEG");
  add(archive, "n2/n2_8.cls", "2");
  add(archive, "n2/n2_8.jpg", std::string(600, 'x'));
  close(archive);
  return archive;
}

TEST(Tar, HeadersAreThoseOfUstar) {
  Bytes header;
  put_tar_header(header, "n1/a.jpg", 1000);
  ASSERT_EQ(header.size(), kTarBlockBytes);
  const std::string text(reinterpret_cast<const char*>(header.data()), header.size());
  EXPECT_EQ(text.substr(0, 9), std::string("n1/a.jpg\0", 9));
  EXPECT_EQ(text.substr(100, 48), std::string("0000644\0"
                                              "0000000\0"
                                              "0000000\0"
                                              "00000001750\0"
                                              "00000000000\0",
                                              48));
  // The checksum that Python's tarfile computes.
  EXPECT_EQ(text.substr(148, 9), std::string("007210\0 0", 9));
  EXPECT_EQ(text.substr(257, 8), std::string("ustar\00000", 8));
}

TEST(Tar, NamesAndSizesOfAnyLengthAreReadBack) {
  for (const size_t length : {1U, 98U, 99U, 100U, 101U, 150U, 255U, 256U, 257U, 1000U, 5000U}) {
    for (const size_t folder : {0U, 1U, 50U, 99U, 100U, 101U, 150U, 155U, 156U, 300U}) {
      std::string name(length, 'a');
      if (folder >= 1 && folder + 1 < length) name[folder] = '/';
      Bytes archive;
      add(archive, name + ".jpg", "content");
      close(archive);
      const auto samples = scan(archive).value();
      ASSERT_EQ(samples.size(), 1U) << length << " " << folder;
      EXPECT_EQ(samples[0].placement.length, 7U);
      const Tier tier = open_tier("mem:tar-names", kNoNamedTiers).value();
      const auto writer = tier.backend->create("o").value();
      ASSERT_TRUE(writer->append(archive).ok());
      ASSERT_TRUE(writer->publish(Durability::visible).ok());
      auto window = ObjectWindow::open(*tier.backend, {.name = "o", .bytes = archive.size()}).value();
      TarReader reader(window);
      EXPECT_EQ(reader.next().value()->name, name + ".jpg");
    }
  }
  // Sizes of 8 GiB and more use base 256. The archive ends before such a member does. The error contains the
  // size, which shows that the size was understood.
  for (const uint64_t bytes : {uint64_t{1} << 33, uint64_t{1} << 40, (uint64_t{1} << 62) + 5}) {
    Bytes archive;
    put_tar_header(archive, "a.jpg", bytes);
    close(archive);
    const auto samples = scan(archive);
    ASSERT_FALSE(samples.ok());
    EXPECT_EQ(samples.error().code, Errc::truncated);
    EXPECT_NE(samples.error().what.find(std::to_string(bytes)), std::string::npos) << samples.error().what;
  }
}

TEST(WebDataset, FilesOfASampleShareTheirKey) {
  Bytes archive;
  add(archive, "./a/one.json", "{}");
  add(archive, "./a/one.left.JPG", "left");
  add(archive, "./a/one.right.jpg", "right");
  add(archive, "./a/one.cls", " 12\n");
  add(archive, "two.txt", "only text");
  add(archive, "three.cls", "5");
  add(archive, "README", "no extension");
  add(archive, "._one.jpg", "hidden");
  add(archive, "four.v1/x.png", "png");
  close(archive);
  const auto samples = scan(archive).value();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0], (ScanSample{"12", {1536, 4}, "jpeg"}));
  EXPECT_EQ(samples[1], (ScanSample{"", {4608, 9}, "raw"}));
  EXPECT_EQ(samples[2].codec, "png");
}

// Returns the number of parts of the archive that are left out, the first of them, and why.
std::string left_out_of(const Bytes& archive) {
  Tier tier = open_tier("mem:left-out", kNoNamedTiers).value();
  put(*tier.backend, "a.tar", archive);
  uint64_t count = 0;
  std::string first;
  const auto scanned =
      format_of("webdataset")
          ->scan(*tier.backend, {.name = "a.tar", .bytes = archive.size()},
                 [&](const Format::FoundSample& found) {
                   const Format::LeftOutParts& files = found.files_left_out;
                   if (count == 0 && files.count > 0)
                     first = " from " + std::string(files.first_name) + ", " + std::string(files.reason);
                   count += files.count;
                 });
  EXPECT_OK(scanned);
  return std::to_string(count) + first;
}

std::string left_out(const std::vector<std::string>& names) {
  Bytes archive;
  for (const std::string& name : names) add(archive, name, name.ends_with(".cls") ? "7" : "content");
  close(archive);
  return left_out_of(archive);
}

TEST(WebDataset, LinksAndWhatFollowsTheEndAreCountedAndNamed) {
  Bytes archive;
  add(archive, "a.jpg", "content");
  add(archive, "b.jpg", "", '2');
  add(archive, "c.jpg", "", '1');
  add(archive, "d/", "", '5');
  close(archive);
  EXPECT_EQ(left_out_of(archive), "2 from b.jpg, a link");
  Bytes joined;
  add(joined, "a.jpg", "content");
  close(joined);
  joined.resize(10240);
  EXPECT_EQ(left_out_of(joined), "0") << "tar fills its last block with zeros";
  add(joined, "b.jpg", "content");
  close(joined);
  EXPECT_EQ(left_out_of(joined), "1 from the 2048 bytes after the end of the archive, ");
}

TEST(WebDataset, TheFilesOfASampleNeedNotBeAdjacent) {
  for (const auto& names :
       {std::vector<std::string>{"a.jpg", "b.jpg", "a.json", "b.json", "a.cls", "b.cls"},
        std::vector<std::string>{"a.json", "b.json", "a.cls", "b.cls", "a.jpg", "b.jpg"}}) {
    Bytes archive;
    for (const std::string& name : names)
      add(archive, name, name.ends_with(".cls") ? name.substr(0, 1) : name);
    close(archive);
    const auto samples = scan(archive).value();
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0].codec, "jpeg");
    EXPECT_EQ(samples[0].label, "a");
    EXPECT_EQ(samples[1].label, "b");
  }
  Bytes archive;  // a second picture of a key is another sample
  for (const char* name : {"a.jpg", "b.jpg", "a.jpg", "a.json"}) add(archive, name, name);
  close(archive);
  EXPECT_EQ(scan(archive).value().size(), 3U);
}

TEST(WebDataset, FilesThatBelongToNoSampleAreCountedAndNamed) {
  EXPECT_EQ(left_out({"a.jpg", "a.jpg", "b.jpg"}), "1 from a.jpg, the second file of that name");
  EXPECT_EQ(left_out({"a.cls", "b.png", "b.jpg"}), "2 from b.jpg, whose sample is 'b.png'");
  EXPECT_EQ(left_out({"b.png", "b.jpg"}), "1 from b.jpg, whose sample is 'b.png'");
  EXPECT_EQ(left_out({"a.jpg", "a.cls", "a.cls"}), "1 from a.cls, the second label of its sample");
  EXPECT_EQ(left_out({"a.jpg", "b.jpg", "a.cls", "b.cls"}), "0")
      << "other files may be between those of a sample";
  EXPECT_EQ(left_out({"a.jpg", ".b.jpg", ".c.jpg"}), "2 from .b.jpg, hidden");
  EXPECT_EQ(left_out({"a.jpg", "README"}), "1 from README, a name without an extension");
  EXPECT_EQ(left_out({"2024.05.01.jpg", "2024.05.02.jpg", "2024.05.03.jpg"}),
            "2 from 2024.05.02.jpg, whose sample is '2024.05.01.jpg'");
  EXPECT_EQ(left_out({"a.json", "a.cls", "a.jpg", "a.txt", "a.mask.png", "b.left.jpg", "b.right.jpg"}), "0");
}

TEST(WebDataset, ArraysAreNumPyFilesAndTheFirstFieldIsThePayload) {
  const std::vector<Field> fields{
      {.name = "climate/data", .codec = "raw", .extension = ".bin", .element = Element::f32, .shape = {5, 3}},
      {.name = "x", .codec = "raw", .extension = ".NPY", .element = Element::i64},
      {.name = "y", .codec = "raw", .extension = ".npy", .element = Element::i32, .varies = true}};
  const Tier tier = open_tier("mem:webdataset-test", kNoNamedTiers).value();
  ScanFixture fixture("webdataset");
  const auto samples = test_samples(fields, 3);
  const MadeObject made = make_object(*tier.backend, fixture.format(), "o", fields, samples).value();
  const Bytes bytes = content(*tier.backend, "o");
  const auto scanned = fixture.scan(bytes).value();
  ASSERT_EQ(scanned.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scanned[i], (ScanSample{std::to_string(samples[i].label), made.placed[i], "raw"}));
    EXPECT_TRUE(std::equal(samples[i].fields[0].begin(), samples[i].fields[0].end(),
                           bytes.begin() + ptrdiff_t(made.placed[i].offset)));
  }
  auto window = ObjectWindow::open(*tier.backend, {.name = "o", .bytes = bytes.size()}).value();
  TarReader reader(window);
  std::vector<std::string> names;
  for (const ArchiveMember* member = reader.next().value(); member != nullptr; member = reader.next().value())
    names.push_back(member->name);
  ASSERT_EQ(names.size(), 12U);
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 4),
            (std::vector<std::string>{"k0.cls", "k0.climate_data.npy", "k0.x.npy", "k0.y.npy"}));
}

TEST(WebDataset, UnderstandsOtherPeoplesArchives) {
  Bytes archive;
  add(archive, "pax_global_header", pax("comment", "made by hand"), 'g');
  add(archive, "folder.d/", "", '5');
  add(archive, "link.jpg", "", '2');
  add(archive, "././@LongLink", std::string(200, 'l') + ".jpg" + '\0', 'L');
  add(archive, "short", "gnu");
  add(archive, "././@PaxHeader", pax("mtime", "1.5") + pax("path", "p/" + std::string(300, 'p') + ".png"),
      'x');
  add(archive, "short", "pax");
  add(archive, "strange.jpg", "of an unknown type", 'Z');
  add(archive, "old.jpg", "old", '\0');
  close(archive);
  const auto samples = scan(archive).value();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].codec, "jpeg");
  EXPECT_EQ(samples[1].codec, "png");
  for (const ScanSample& sample : samples) EXPECT_EQ(sample.placement.length, 3U);
}

TEST(WebDataset, RefusesNamesThatLeadOutOfTheArchive) {
  for (const std::string_view name :
       {"../a.jpg", "/etc/a.jpg", "a/../../b.jpg", "..", "a/..", "./../x.jpg"}) {
    Bytes archive;
    add(archive, "fine.jpg", "fine");
    add(archive, name, "content");
    close(archive);
    const auto samples = scan(archive);
    ASSERT_FALSE(samples.ok()) << name;
    EXPECT_EQ(samples.error().code, Errc::corrupt);
    EXPECT_NE(samples.error().what.find("at byte 1024"), std::string::npos) << samples.error().what;
    EXPECT_NE(samples.error().what.find(name), std::string::npos) << samples.error().what;
  }
  for (const std::string& path :
       {std::string("../x.jpg"), std::string("a\0b.jpg", 7), std::string("/x.jpg")}) {
    Bytes archive;
    add(archive, "././@PaxHeader", pax("path", path), 'x');
    add(archive, "fine.jpg", "fine");
    close(archive);
    EXPECT_EQ(scan(archive).error().code, Errc::corrupt);
  }
}

TEST(WebDataset, RefusesSparseFiles) {
  Bytes old;
  add(old, "a.jpg", "x", 'S');
  Bytes by_pax;
  add(by_pax, "././@PaxHeader", pax("GNU.sparse.major", "1"), 'x');
  add(by_pax, "a.jpg", "x");
  for (Bytes* archive : {&old, &by_pax}) {
    close(*archive);
    const auto samples = scan(*archive);
    ASSERT_FALSE(samples.ok());
    EXPECT_EQ(samples.error().code, Errc::unsupported);
    EXPECT_NE(samples.error().what.find("--sparse"), std::string::npos);
  }
}

TEST(WebDataset, DamagedExtensionHeadersAreErrors) {
  const std::string good = pax("path", "x.jpg");
  const std::vector<std::string> damaged{"",  // an empty header is valid: it changes nothing
                                         "x",
                                         "9",
                                         "99999999999999999999 path=x\n",
                                         "3 =\n",
                                         "4 a\n",
                                         "12 path=abcd",
                                         "900 path=x.jpg\n",
                                         "-9 path=x\n",
                                         "0 path=x\n",
                                         good + "1",
                                         pax("size", "-1"),
                                         pax("size", "9223372036854775808"),
                                         pax("size", ""),
                                         pax("size", "1x")};
  for (const std::string& record : damaged) {
    Bytes archive;
    add(archive, "././@PaxHeader", record, 'x');
    add(archive, "a.jpg", "x");
    close(archive);
    const auto samples = scan(archive);
    EXPECT_EQ(samples.ok(), record.empty()) << record;
    if (samples.ok()) continue;
    EXPECT_EQ(samples.error().code, Errc::corrupt);
  }
  for (const char type : {'x', 'L', 'K', 'g'}) {
    Bytes archive;
    add(archive, "long", std::string(600 << 10, 'n'), type);
    close(archive);
    const auto samples = scan(archive);
    ASSERT_FALSE(samples.ok()) << type;
    EXPECT_EQ(samples.error().code, Errc::corrupt);
  }
}

TEST(WebDataset, TruncationAnywhereIsAnError) {
  const Bytes archive = small_archive();
  for (size_t cut = 0; cut < archive.size(); ++cut) {
    const auto samples = scan(Bytes(archive.begin(), archive.begin() + ptrdiff_t(cut)));
    if (cut >= archive.size() - kTarBlockBytes) {  // one block of zeros is enough to close an archive
      EXPECT_TRUE(samples.ok()) << cut;
    } else {
      ASSERT_FALSE(samples.ok()) << cut;
      EXPECT_EQ(samples.error().code, Errc::truncated) << samples.error().what;
    }
  }
}

TEST(WebDataset, NoFlippedBitOfAHeaderPasses) {
  Bytes archive = small_archive();
  ScanFixture fixture("webdataset");
  for (size_t bit = 0; bit < 8 * kTarBlockBytes; ++bit) {
    archive[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto samples = fixture.scan(archive);
    const size_t at = bit / 8;
    if (at < 148 || at >= 156) {
      ASSERT_FALSE(samples.ok()) << bit;
      EXPECT_EQ(samples.error().code, Errc::corrupt);
      EXPECT_NE(samples.error().what.find("at byte 0"), std::string::npos) << samples.error().what;
    }
    archive[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_EQ(fixture.scan(archive).value().size(), 2U);
}

TEST(WebDataset, AbsurdSizes) {
  const auto with_size = [](std::string_view size) {
    Bytes archive;
    add(archive, "a.jpg", "x");
    close(archive);
    std::transform(size.begin(), size.end(), archive.begin() + 124,
                   [](char c) { return static_cast<std::byte>(c); });
    write_header_checksum(archive, 0);
    return archive;
  };
  EXPECT_TRUE(scan(with_size("00000000001")).ok());
  EXPECT_TRUE(scan(with_size(std::string_view("         1 \0", 12))).ok());
  EXPECT_EQ(scan(with_size("777777777777")).error().code, Errc::truncated);
  for (const std::string_view bad :
       {std::string_view("0000000000x"), std::string_view("0000 000001"), std::string_view("-0000000001"),
        std::string_view("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")})
    EXPECT_EQ(scan(with_size(bad)).error().code, Errc::corrupt);
  EXPECT_EQ(scan(with_size(std::string_view("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12))).error().code,
            Errc::truncated);
}

}  // namespace
}  // namespace penstock
