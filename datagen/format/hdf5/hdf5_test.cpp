#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/format/hdf5/hdf5_checksum.hpp"
#include "datagen/format/hdf5/hdf5_reader.hpp"
#include "datagen/format/hdf5/hdf5_writer.hpp"
#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/system/subprocess.hpp"

namespace penstock {
namespace {

const Field kData{.name = "climate/data",
                  .codec = "raw",
                  .extension = ".bin",
                  .element = Element::f32,
                  .shape = {8, 8},
                  .one_chunk = true};
const Field kStats{
    .name = "climate/stats", .codec = "raw", .extension = ".bin", .element = Element::f64, .shape = {2}};
const Field kPair{.name = "pair", .codec = "raw", .extension = ".bin", .element = Element::i32, .shape = {2}};
const Field kWeight{
    .name = "weight", .codec = "raw", .extension = ".bin", .element = Element::i32, .shape = {}};
const Field kJpeg{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
const Field kTrack{.name = "track",
                   .codec = "raw",
                   .extension = ".bin",
                   .element = Element::i64,
                   .shape = {},
                   .varies = true};

const std::vector<OptionWord> kOneSamplePerFile{{"samples_per_file", "1"}};

class Hdf5 : public ::testing::Test {
 protected:
  Tier tier_ = open_tier("mem:hdf5", kNoNamedTiers).value();
  Backend& backend_ = *tier_.backend;
};

// The test driver of lookup3.c prints these values.
TEST(Hdf5Checksum, KnownAnswers) {
  EXPECT_EQ(hdf5_checksum({}), 0xdeadbeefU);
  EXPECT_EQ(hdf5_checksum(bytes_of("Four score and seven years ago")), 0x17770551U);
}

TEST_F(Hdf5, ScansFindSamplesAtTheirPlacements) {
  for (const std::vector<Field>& fields : {std::vector<Field>{kData, kStats, kWeight, kTrack},
                                           std::vector<Field>{kJpeg}, std::vector<Field>{kPair}}) {
    for (const bool is_one_sample : {true, false}) {
      const auto format = is_one_sample ? format_of("hdf5", kOneSamplePerFile) : format_of("hdf5");
      const auto samples = test_samples(fields, is_one_sample ? 1 : 7);
      const auto made = make_object(backend_, *format, "a.h5", fields, samples);
      ASSERT_OK(made);
      EXPECT_EQ(made->placed[0].offset % 64, 0U);
      const auto scanned = scan_object(backend_, *format, "a.h5");
      ASSERT_OK(scanned);
      ASSERT_EQ(scanned->size(), samples.size()) << fields[0].name;
      for (size_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ((*scanned)[i].placement.offset, made->placed[i].offset);
        EXPECT_EQ((*scanned)[i].placement.length, samples[i].fields[0].size());
        EXPECT_EQ((*scanned)[i].label, std::to_string(samples[i].label));
      }
    }
  }
}

TEST_F(Hdf5, OneDimensionalArraysAreOneSample) {
  expect_one_sample_of_two_signals(backend_, "hdf5");
}

TEST_F(Hdf5, AppendOnlyBackEndsGetTheSameBytes) {
  Field chunked = kJpeg;  // a field of varying size is never chunked
  chunked.one_chunk = true;
  const std::vector<Field> fields{chunked, kTrack};
  const auto samples = test_samples(fields, 9);
  Tier tier = open_tier("mem:hdf5-appending", kNoNamedTiers).value();
  AppendingBackend appending(std::move(tier.backend));
  ASSERT_OK(make_object(backend_, *format_of("hdf5"), "a.h5", fields, samples));
  ASSERT_OK(make_object(appending, *format_of("hdf5"), "a.h5", fields, samples));
  EXPECT_TRUE(content(appending, "a.h5") == content(backend_, "a.h5"));
}

TEST_F(Hdf5, RefusesDatasetsThatNoFileCanContain) {
  const auto refused = [&](std::vector<Field> fields, std::string_view words) {
    EXPECT_ERRC(Errc::invalid_argument, format_of("hdf5")->check(fields), words);
  };
  refused({kData, kData}, "climate/data");
  refused({kData, {.name = "climate", .codec = "raw", .extension = ".bin", .shape = {}}}, "'climate'");
  refused({{.name = "label/x", .codec = "raw", .extension = ".bin", .shape = {}}}, "'label'");
  refused({{.name = "deep", .codec = "raw", .extension = ".bin", .shape = std::vector<uint64_t>(32, 1)}},
          "33 dimensions");
  EXPECT_OK(
      format_of("hdf5", kOneSamplePerFile)
          ->check(std::vector<Field>{
              {.name = "deep", .codec = "raw", .extension = ".bin", .shape = std::vector<uint64_t>(32, 1)}}));
}

// A node of a chunk tree has at most 64 children. The counts below give one leaf (1 and 64 chunks), two
// leaves (65), and a tree of three levels (4101).
TEST_F(Hdf5, ManyChunksAreOneTree) {
  const std::vector<Field> fields{kData};
  for (const size_t count : {1U, 64U, 65U, 4101U}) {
    const auto made = make_object(backend_, *format_of("hdf5"), "a.h5", fields, test_samples(fields, count));
    ASSERT_OK(made);
    const auto scanned = scan_object(backend_, *format_of("hdf5"), "a.h5");
    ASSERT_OK(scanned);
    ASSERT_EQ(scanned->size(), count);
    EXPECT_EQ(scanned->back().placement.offset, made->placed.back().offset);
  }
}

std::string python_with_h5py() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    const auto code = run_program(std::vector<std::string>{
        "/bin/sh", "-c", fmt::format("exec {} -c 'import h5py' 2> /dev/null", python)});
    if (code.ok() && *code == 0) return python;
  }
  return {};
}

// h5py must read the same names, shapes, types, chunks and bytes as were written.
TEST_F(Hdf5, H5pyReadsThem) {
  const std::string python = python_with_h5py();
  if (python.empty()) GTEST_SKIP() << "no python3 here has h5py";
  const ScratchFolder scratch;
  const Tier disk = open_tier("posix:" + scratch.path().string(), kNoNamedTiers).value();
  const std::vector<Field> fields{kData, kStats, kWeight, kTrack};
  // 0 means: one sample, whose arrays have the shapes of its fields, without a first axis for samples
  for (const size_t count : {0U, 1U, 7U, 4101U}) {
    const bool is_one_sample = count == 0;
    const auto samples = test_samples(fields, is_one_sample ? 1 : count);
    ASSERT_OK(make_object(*disk.backend,
                          *format_of("hdf5", is_one_sample ? kOneSamplePerFile : std::vector<OptionWord>{}),
                          "a.h5", fields, samples));
    std::string expected;
    for (size_t f = 0; f < fields.size(); ++f) {
      uint32_t crc = 0;
      for (const TestSample& sample : samples) crc = crc32(sample.fields[f], crc);
      expected += fmt::format("'{}': {}, ", fields[f].name, crc);
    }
    const std::string rows = is_one_sample ? "()" : fmt::format("({},)", count);
    const std::string script = fmt::format(R"(
import h5py, zlib
file = h5py.File('{}/a.h5', 'r')
rows = {}
chunk = (1,) if rows else ()
shapes = {{'climate/data': rows + (8, 8), 'climate/stats': rows + (2,), 'weight': rows}}
types = {{'climate/data': '<f4', 'climate/stats': '<f8', 'weight': '<i4', 'track': '<i8', 'label': '<i8'}}
for name, crc in {{{}}}.items():
    assert zlib.crc32(file[name][()].tobytes()) == crc, name
for name, shape in shapes.items():
    assert file[name].shape == shape, (name, file[name].shape)
for name, kind in types.items():
    assert file[name].dtype == kind, (name, file[name].dtype)
assert file['climate/data'].chunks == chunk + (8, 8), file['climate/data'].chunks
assert file['climate/stats'].chunks is None
assert file['label'].shape == (rows or (1,))
assert sorted(file) == sorted({{'climate', 'weight', 'track', 'label'}} | ({{'track_offsets'}} if rows else set()))
if rows:
    assert file['track_offsets'].shape == (rows[0] + 1,)
    assert file['climate/data'][rows[0] - 1].shape == (8, 8)
)",
                                           scratch.path().string(), rows, expected);
    EXPECT_EQ(run_program(std::vector<std::string>{"/usr/bin/env", python, "-c", script}).value(), 0)
        << count;
  }
}

TEST_F(Hdf5, DamageIsAnError) {
  ScanFixture fixture("hdf5");
  for (const std::vector<Field>& fields : {std::vector<Field>{kData, kWeight}, std::vector<Field>{kJpeg}}) {
    ASSERT_OK(make_object(backend_, fixture.format(), "a.h5", fields, test_samples(fields, 3)));
    expect_hardened(fixture, content(backend_, "a.h5"), 0, 0);
  }
}

TEST_F(Hdf5, FilesThatAreStillOpenForWritingAreRefused) {
  constexpr size_t kVersionAt = 8;
  constexpr size_t kFlagsAt = 11;
  constexpr size_t kChecksumAt = 44;
  ScanFixture fixture("hdf5");
  const std::vector<Field> fields{kData};
  ASSERT_OK(make_object(backend_, fixture.format(), "a.h5", fields, test_samples(fields, 3)));
  for (const int version : {2, 3})
    for (const int flags : {0, 1, 4, 5}) {
      std::vector<std::byte> file = content(backend_, "a.h5");
      file[kVersionAt] = static_cast<std::byte>(version);
      file[kFlagsAt] = static_cast<std::byte>(flags);
      const uint32_t sum = hdf5_checksum(std::span(file).first(kChecksumAt));
      for (size_t i = 0; i < 4; ++i) file[kChecksumAt + i] = static_cast<std::byte>(sum >> (8 * i));
      const auto scanned = fixture.scan(file);
      EXPECT_EQ(scanned.ok(), version == 2 || flags == 0) << version << " " << flags;
      if (scanned.ok()) continue;
      EXPECT_NE(scanned.error().what.find("h5clear"), std::string::npos);
    }
}

// Flips bits in the superblock and in every header and then computes the checksums again, as if the file had
// been damaged before its checksums were computed.
TEST_F(Hdf5, DamageWithCorrectChecksumsIsHarmless) {
  ScanFixture fixture("hdf5");
  const std::vector<Field> fields{kData, kStats, kTrack};
  ASSERT_OK(make_object(backend_, fixture.format(), "a.h5", fields, test_samples(fields, 3)));
  const auto whole = content(backend_, "a.h5");
  std::vector<std::pair<size_t, size_t>> blocks{{0, 44}};
  for (size_t at = 48; number_at(whole, at, 4) == 0x5244484f; at = blocks.back().second + 4)
    blocks.emplace_back(at, at + 10 + number_at(whole, at + 6, 4));
  ASSERT_EQ(blocks.size(), 1U + 2 + 5);  // the superblock, the groups and the data sets
  size_t failed = 0;
  for (const auto& [begin, end] : blocks)
    for (size_t at = begin; at < end; ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> damaged = whole;
        damaged[at] ^= static_cast<std::byte>(1U << bit);
        const uint32_t sum = hdf5_checksum(std::span(damaged).subspan(begin, end - begin));
        for (size_t i = 0; i < 4; ++i) damaged[end + i] = static_cast<std::byte>(sum >> (8 * i));
        failed += fixture.scan(damaged).ok() ? 0U : 1U;
      }
  EXPECT_GT(failed, 100U);
}

// ---- Files in the oldest format, made by hand ----------------------------------------------------------
// They have superblock 0, the root's tree, heap and symbol table, and one contiguous dataset "d" of three
// bytes, whose header has a continuation.
constexpr size_t kTreeOffset = 136;
constexpr size_t kSymbolsOffset = 176;
constexpr size_t kHeapOffset = 264;
constexpr size_t kNamesOffset = 296;
constexpr size_t kHeaderOffset = 312;
constexpr size_t kContinuationOffset = 400;
constexpr size_t kDataOffset = 448;

std::vector<std::byte> old_file(uint64_t link_address = kHeaderOffset,
                                uint64_t continuation = kContinuationOffset) {
  HeaderBytes file;
  file.text("\x89HDF\r\n\x1a\n").zeros(5).u8(8).u8(8).u8(0).u16(4).u16(16).u32(0);
  file.u64(0).u64(UINT64_MAX).u64(kDataOffset + 3).u64(UINT64_MAX);
  file.u64(0).u64(96).u32(0).u32(0).zeros(16);
  file.u8(1).u8(0).u16(1).u32(1).u32(24).u32(0);                    // the root's header at 96
  file.u16(0x11).u16(16).u32(0).u64(kTreeOffset).u64(kHeapOffset);  // the root's symbol table message
  file.text("TREE").u8(0).u8(0).u16(1).u64(UINT64_MAX).u64(UINT64_MAX);
  file.u64(0).u64(kSymbolsOffset);
  file.text("SNOD").u8(1).u8(0).u16(2);
  file.u64(8).u64(link_address).u32(0).u32(0).zeros(16);
  file.u64(8).u64(kHeaderOffset).u32(2).u32(0).zeros(16);  // an entry that is a soft link
  file.text("HEAP").u32(0).u64(16).u64(UINT64_MAX).u64(kNamesOffset);
  file.zeros(8).text("d").zeros(7);
  file.u8(1).u8(0).u16(3).u32(1).u32(72).u32(0);
  file.u16(0x01).u16(16).u32(0).u8(1).u8(1).u16(0).u32(0).u64(3);                   // the shape: 3
  file.u16(0x03).u16(16).u32(0).u8(0x10).u8(0).u16(0).u32(1).u16(0).u16(8).u32(0);  // the type: one byte
  file.u16(0x10).u16(16).u32(0).u64(continuation).u64(continuation == kContinuationOffset ? 32 : 24);
  // at 400: the layout, with the data's offset
  file.u16(0x08).u16(24).u32(0).u8(3).u8(1).u64(kDataOffset).u64(3).zeros(6);
  return file.zeros(kDataOffset - file.size()).text("abc").take();
}

// Scans a file whose dataset claims `chunks` chunks of one byte and the chunk index at `index`. The object is
// large enough for all of them.
Result<std::vector<ScannedSample>> scan_chunks(uint64_t chunks, uint64_t index) {
  auto bytes = old_file();
  const auto set = [&bytes](size_t at, uint64_t value) {
    for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  const uint64_t end = chunks + bytes.size();
  set(40, end);
  set(kHeaderOffset + 16 + 8 + 8, chunks);  // length of the dataset's dimension
  const auto layout = HeaderBytes{}.u8(3).u8(2).u8(2).u64(index).u32(1).u32(1).zeros(5).take();
  std::copy(layout.begin(), layout.end(), bytes.begin() + kContinuationOffset + 8);
  const ScratchFolder scratch;
  const Tier disk = open_tier("posix:" + scratch.path().string(), kNoNamedTiers).value();
  put(*disk.backend, "a.h5", bytes);
  std::filesystem::resize_file(scratch.path() / "a.h5", end);
  return scan_object(*disk.backend, *format_of("hdf5"), "a.h5");
}

TEST_F(Hdf5, ClaimedChunksTakeNoMemory) {
  EXPECT_ERRC(Errc::unsupported, scan_chunks(uint64_t{1} << 40, UINT64_MAX), "claims 1099511627776 chunks");
  EXPECT_ERRC(Errc::unsupported, scan_chunks(kMostSamplesPerObject, UINT64_MAX), "never written");
  EXPECT_ERRC(Errc::corrupt, scan_chunks(kMostSamplesPerObject, kHeaderOffset), "no node of a tree");
}

TEST_F(Hdf5, OldFilesAreRead) {
  ScanFixture fixture("hdf5");
  const auto samples = fixture.scan(old_file());
  ASSERT_OK(samples);
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].placement.offset, kDataOffset);
  EXPECT_EQ((*samples)[0].placement.length, 3U);
  expect_hardened(fixture, old_file(), 0, 0);
}

// Chunks without an index are numbered by the shape that the array can become. If that were smaller than the
// array, chunks would share their bytes, and a small file could claim millions of them.
TEST_F(Hdf5, NoArrayIsLargerThanItCanBecome) {
  const auto file_with_second_side = [](uint64_t most) {
    constexpr uint64_t kRows = 1U << 18U;
    HeaderBytes group;
    put_hdf5_message(group, 0x02, HeaderBytes().u8(0).u8(0).u64(UINT64_MAX).u64(UINT64_MAX));
    const auto with_link = [&](uint64_t address) {
      HeaderBytes messages;
      messages.append(group.view());
      put_hdf5_message(messages, 0x06, HeaderBytes().u8(1).u8(0).u8(1).text("d").u64(address));
      return hdf5_object_header(messages);
    };
    const uint64_t dataset = 48 + with_link(0).size();
    HeaderBytes messages;
    put_hdf5_message(messages, 0x01,
                     HeaderBytes().u8(2).u8(2).u8(1).u8(1).u64(kRows).u64(4).u64(kRows).u64(most));
    put_hdf5_message(messages, 0x03, HeaderBytes().u8(0x10).zeros(3).u32(1).u16(0).u16(8));
    constexpr uint64_t kFirstChunk = 512;
    put_hdf5_message(messages, 0x08,
                     HeaderBytes().u8(4).u8(2).u8(0).u8(3).u8(8).u64(1).u64(1).u64(1).u8(2).u64(kFirstChunk));
    HeaderBytes file;
    file.text("\x89HDF\r\n\x1a\n")
        .u8(2)
        .u8(8)
        .u8(8)
        .u8(0)
        .u64(0)
        .u64(UINT64_MAX)
        .u64(kFirstChunk + 4 * kRows)
        .u64(48);
    file.u32(hdf5_checksum(file.view()));
    file.append(with_link(dataset));
    file.append(hdf5_object_header(messages));
    file.zeros(kFirstChunk + 4 * kRows - file.size());
    return file.take();
  };
  ScanFixture fixture("hdf5");
  EXPECT_OK(fixture.scan(file_with_second_side(4)));
  EXPECT_ERRC(Errc::corrupt, fixture.scan(file_with_second_side(0)), "than its maximum size");
  EXPECT_ERRC(Errc::corrupt, fixture.scan(file_with_second_side(3)), "than its maximum size");
}

// HDF5 before 1.6 wrote the first version of references to named types: like entries of a group.
TEST_F(Hdf5, OldReferencesToNamedTypesAreRead) {
  auto bytes = old_file();
  const uint64_t block = bytes.size();
  const uint64_t type = block + 64;
  HeaderBytes end;
  end.append(std::span<const std::byte>(bytes).subspan(kContinuationOffset, 32));  // the layout
  end.u16(0x03).u16(24).u8(2).zeros(3).u8(1).u8(0).zeros(6).u64(8).u64(type);
  end.u8(1).u8(0).u16(1).u32(1).u32(24).u32(0);  // the header of the named type
  end.u16(0x03).u16(16).u32(0).u8(0x10).u8(0).u16(0).u32(1).u16(0).u16(8).u32(0);
  const auto set = [&bytes](size_t at, uint64_t value) {
    for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  const std::vector<std::byte> added = end.take();
  set(40, block + added.size());
  bytes[kHeaderOffset + 40] = {};  // the message with the type becomes empty
  set(kHeaderOffset + 72, block);  // where the header goes on, and how long
  set(kHeaderOffset + 80, 64);
  bytes.insert(bytes.end(), added.begin(), added.end());
  ScanFixture fixture("hdf5");
  const auto samples = fixture.scan(bytes);
  ASSERT_OK(samples);
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].placement.offset, kDataOffset);
  EXPECT_EQ((*samples)[0].placement.length, 3U);
}

TEST_F(Hdf5, FilesAfterAUserBlockAreRead) {
  auto bytes = old_file();
  bytes.insert(bytes.begin(), 512, std::byte{'x'});
  bytes[512 + 24 + 1] = std::byte{2};  // the base address: 512
  bytes[512 + 40 + 1] = std::byte{2 + (kDataOffset + 3) / 256};
  ScanFixture fixture("hdf5");
  const auto samples = fixture.scan(bytes);
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].placement.offset, 512 + kDataOffset);
}

TEST_F(Hdf5, CirclesEnd) {
  ScanFixture fixture("hdf5");
  EXPECT_ERRC(Errc::unsupported, fixture.scan(old_file(96)),
              "no numeric array");  // the root group contains itself
  EXPECT_ERRC(Errc::corrupt, fixture.scan(old_file(kHeaderOffset, kContinuationOffset - 24)), "in a cycle");
  auto tree = old_file();
  tree[kTreeOffset + 5] = std::byte{1};  // the node has level 1 and is its own child
  tree[kTreeOffset + 32] = static_cast<std::byte>(kTreeOffset);
  EXPECT_ERRC(Errc::corrupt, fixture.scan(tree), "tree");
}

TEST_F(Hdf5, AbsurdNumbersAreErrors) {
  ScanFixture fixture("hdf5");
  const auto with = [&](size_t at, uint64_t value, size_t count) {
    auto bytes = old_file();
    for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
    return fixture.scan(bytes);
  };
  constexpr size_t kDimensionOffset = kHeaderOffset + 16 + 8 + 8;
  EXPECT_ERRC(Errc::corrupt, with(kDimensionOffset, 4, 8), "needs 4 bytes and has 3");
  EXPECT_ERRC(Errc::corrupt, with(kDimensionOffset, UINT64_MAX, 8), "has 3");
  EXPECT_ERRC(Errc::corrupt, with(kDimensionOffset - 7, 33, 1), "message of type 0x1");
  EXPECT_ERRC(Errc::truncated, with(kContinuationOffset + 8 + 2, 1U << 20U, 8), "451");
  EXPECT_ERRC(Errc::unsupported, with(kContinuationOffset + 8 + 2, UINT64_MAX, 8), "never written");
  EXPECT_ERRC(Errc::unsupported, with(kContinuationOffset + 8, 6, 1), "layout has version 6");
  EXPECT_ERRC(Errc::truncated, with(kHeaderOffset + 8, 0xffffffff, 4), "bytes should be here");
  EXPECT_ERRC(Errc::corrupt, with(kHeaderOffset + 16 + 2, 0xffff, 2), "longer than its header");
  EXPECT_ERRC(Errc::truncated, with(40, kDataOffset + 4, 8), "should end at byte 452");
  EXPECT_ERRC(Errc::unsupported, with(13, 4, 1), "8 bytes");
  EXPECT_ERRC(Errc::unsupported, with(8, 4, 1), "version 4");
  EXPECT_ERRC(Errc::corrupt, with(kSymbolsOffset + 8, 99, 8), "after the end of its heap");
  EXPECT_ERRC(Errc::corrupt, with(kSymbolsOffset + 6, 0xffff, 2), "after the end of its heap");
}

}  // namespace
}  // namespace penstock
