// Opens manifests that are truncated, damaged or hostile. The result must be an error or harmless, never a
// crash (the sanitizer builds check memory).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest_fixture.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using manifest_layout::Header;

std::vector<std::byte> good_manifest(uint64_t samples = 50) {
  ManifestBuilder builder({.recipe = "imagenet",
                           .format = "files",
                           .codec = "jpeg",
                           .seed = 7,
                           .settings = {{"quality", "75"}},
                           .checksums = true,
                           .label_names = {"cat", "dog"}});
  for (uint64_t i = 0; i < samples; ++i) {
    const uint32_t object = builder.add_object("class/" + std::to_string(1000 + i) + ".jpg", 100 + i);
    builder.add_sample(
        {.length = 100 + i, .object = object, .label = uint32_t(i % 2), .crc32c = uint32_t(mix64(i))});
  }
  auto bytes = builder.finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

// A manifest with five samples per object and checksums of the objects.
std::vector<std::byte> good_shards(uint64_t objects = 10) {
  ManifestBuilder builder(with_checksums(true));
  for (uint64_t i = 0; i < objects; ++i) {
    const uint32_t object = builder.add_object("shard-" + std::to_string(i), 1000 + i);
    builder.set_object_crc32c(object, uint32_t(mix64(~i)));
    for (uint64_t at = 0; at < 5; ++at)
      builder.add_sample({.offset = 100 * at + 12,
                          .length = 80 + at,
                          .object = object,
                          .crc32c = uint32_t(mix64(i * 5 + at))});
  }
  auto bytes = builder.finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

// A manifest with samples in chunks, in a compressed stream, and as they are.
std::vector<std::byte> good_forms() {
  ManifestBuilder builder(with_checksums(false));
  const std::vector<ChunkedArray::Chunk> chunks{ChunkedArray::Chunk::make(100, 50, 0),
                                                ChunkedArray::Chunk::make(200, 60, 1)};
  const ChunkedArray array{.item_bytes = 4,
                           .shape = {4, 8},
                           .chunk_shape = {2, 8},
                           .filters = {{ChunkFilter::kShuffle, {4}}, {ChunkFilter::kDeflate, {6}}},
                           .chunks = chunks};
  const std::vector<std::byte> window(100, std::byte{7});
  const CompressedStream stream{
      .format = DeflateFormat::gzip,
      .begin = 10,
      .stored_bytes = 400,
      .bytes = 3000,
      .points = {{.stored_offset = 100, .offset = 1000, .bits = 3, .window = window},
                 {.stored_offset = 200, .offset = 2000, .window = std::span(window).first(9)}}};
  const uint32_t object = builder.add_object("a.h5", 1000);
  builder.add_sample({.offset = 5, .length = 6, .object = object});
  const uint32_t in_chunks = builder.add_form(encode_form(array));
  const uint32_t in_stream = builder.add_form(encode_form(stream));
  builder.add_sample({.offset = 100, .length = 50, .object = object, .form = in_chunks}, {32, 32});
  builder.add_sample({.offset = 200, .length = 60, .object = object, .form = in_chunks}, {64, 32});
  builder.add_sample({.offset = 109, .length = 90, .object = object, .form = in_stream}, {1500, 700});
  auto bytes = builder.finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

// Returns a small manifest of each kind.
std::vector<std::vector<std::byte>> good_manifests() {
  return {good_manifest(20), good_shards(), good_forms(), as_version_1(good_manifest(20))};
}

template <class Change>
std::vector<std::byte> with_header(std::vector<std::byte> bytes, Change change) {
  Header header = header_of(bytes);
  change(header);
  put_header(bytes, header);
  return bytes;
}

class HostileManifest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-hostile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Manifest> open(std::span<const std::byte> bytes) const {
    const std::filesystem::path path = folder_ / "manifest";
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return Manifest::open(path);
  }
  // Opens the manifest mapped without a check, and from memory with one: neither may crash. Returns whether
  // the check accepted it.
  bool survives(const std::vector<std::byte>& bytes) const {
    if (const auto mapped = open(bytes); mapped.ok()) {
      call_all_accessors(*mapped);
      static_cast<void>(mapped->check());
    }
    const auto loaded = Manifest::from_bytes(bytes);
    if (loaded.ok()) call_all_accessors(*loaded);
    return loaded.ok();
  }

  std::filesystem::path folder_;
};

TEST_F(HostileManifest, TruncationAnywhereIsCorrupt) {
  for (const auto& bytes : good_manifests()) {
    std::vector<size_t> cuts;
    for (size_t cut = 0; cut <= sizeof(Header); ++cut) cuts.push_back(cut);
    for (const auto& row : header_of(bytes).rows)
      for (const uint64_t edge : {row.offset, row.offset + row.bytes})
        for (const uint64_t near : {edge - 1, edge, edge + 1})
          if (near < bytes.size()) cuts.push_back(near);
    for (const size_t cut : cuts) {
      const std::vector<std::byte> part(bytes.begin(), bytes.begin() + ptrdiff_t(cut));
      const auto mapped = open(part);
      ASSERT_FALSE(mapped.ok()) << cut;
      EXPECT_EQ(mapped.error().code, Errc::corrupt) << cut;
      const auto loaded = Manifest::from_bytes(part);
      ASSERT_FALSE(loaded.ok()) << cut;
      EXPECT_EQ(loaded.error().code, Errc::corrupt) << cut;
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(Manifest::from_bytes(longer).ok());
  }
}

TEST_F(HostileManifest, EveryFlippedBitOfTheHeaderIsSeenOnOpening) {
  for (const auto& good : good_manifests()) {
    auto bytes = good;
    for (size_t at = 0; at < sizeof(Header); ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        bytes[at] = good[at] ^ static_cast<std::byte>(1U << bit);
        const auto mapped = open(bytes);
        ASSERT_FALSE(mapped.ok()) << at << "." << bit;
        EXPECT_EQ(mapped.error().code, Errc::corrupt) << at << "." << bit;
        bytes[at] = good[at];
      }
  }
}

TEST_F(HostileManifest, EveryFlippedBitOfTheRestIsSeenByTheCheck) {
  for (const auto& good : good_manifests()) {
    auto bytes = good;
    for (size_t at = sizeof(Header); at < bytes.size(); ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        bytes[at] = good[at] ^ static_cast<std::byte>(1U << bit);
        const auto loaded = Manifest::from_bytes(bytes);
        ASSERT_FALSE(loaded.ok()) << at << "." << bit;
        EXPECT_EQ(loaded.error().code, Errc::corrupt) << at << "." << bit;
        bytes[at] = good[at];
      }
  }
}

TEST_F(HostileManifest, ANewerVersionIsDistinguishedFromDamage) {
  auto bytes = good_manifest();
  Header header = header_of(bytes);
  header.version = 4;
  put_header(bytes, header);
  const auto mapped = open(bytes);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().code, Errc::unsupported);
  EXPECT_NE(mapped.error().what.find("version 4"), std::string::npos);
}

TEST_F(HostileManifest, ForgedCountsAreRefused) {
  const auto good = good_shards(50);
  const auto forged = [&](auto change) { return survives(with_header(good, change)); };
  for (const uint64_t count : {uint64_t{0}, uint64_t{51}, uint64_t{1} << 32, uint64_t{1} << 59, UINT64_MAX}) {
    EXPECT_FALSE(forged([&](Header& h) { h.samples = count; })) << count;
    EXPECT_FALSE(forged([&](Header& h) { h.objects = count; })) << count;
    EXPECT_FALSE(forged([&](Header& h) { h.payload_bytes = count; })) << count;
    EXPECT_FALSE(forged([&](Header& h) { h.largest_sample = count; })) << count;
    EXPECT_FALSE(forged([&](Header& h) { h.file_bytes = count; })) << count;
    for (size_t i = 0; i < manifest_layout::kForms; ++i) {
      EXPECT_FALSE(forged([&](Header& h) { h.rows[i].offset = count; })) << count;
      EXPECT_FALSE(forged([&](Header& h) { h.rows[i].bytes = count; })) << count;
    }
  }
  EXPECT_FALSE(forged([](Header& h) { h.names_per_block = 0; }));
  EXPECT_FALSE(forged([](Header& h) { h.names_per_block = 1; }));
  EXPECT_FALSE(forged([](Header& h) { h.names_per_block = UINT32_MAX; }));
  EXPECT_FALSE(forged([](Header& h) { h.sections = 4; }));
  EXPECT_FALSE(forged([](Header& h) { h.sections = 5; }));
  EXPECT_FALSE(forged([](Header& h) { h.version = 1; }));
  EXPECT_FALSE(forged([](Header& h) {
    h.version = 1;
    h.sections = 5;
  }));
  EXPECT_FALSE(forged([](Header& h) { h.flags ^= manifest_layout::kObjectChecksums; }));
  EXPECT_FALSE(forged([](Header& h) { h.flags ^= manifest_layout::kOneObjectPerSample; }));
  EXPECT_FALSE(forged([](Header& h) { h.header_bytes = 24; }));
}

TEST_F(HostileManifest, ForgedEntriesAreRefusedAndHarmlessUnchecked) {
  const auto good = good_manifest();
  const Header header = header_of(good);
  const auto forged = [&](auto change) {
    auto bytes = good;
    SampleEntry entry;
    std::byte* const at = bytes.data() + header.rows[manifest_layout::kEntries].offset + 7 * sizeof entry;
    std::memcpy(&entry, at, sizeof entry);
    change(entry);
    std::memcpy(at, &entry, sizeof entry);
    update_checksums(bytes);
    return survives(bytes);
  };
  EXPECT_TRUE(forged([](SampleEntry&) {}));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.object = 50; }));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.object = UINT32_MAX; }));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.length = UINT64_MAX; }));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.offset = UINT64_MAX; }));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.offset = 1; }));
  EXPECT_FALSE(forged([](SampleEntry& e) { e.label = 2; }));
  // two samples in one object, but the flag kOneObjectPerSample is set
  EXPECT_FALSE(forged([](SampleEntry& e) { e.object = 8; }));
}

TEST_F(HostileManifest, ForgedFormsAreRefusedAndHarmlessUnchecked) {
  const auto good = good_forms();
  const uint64_t begin = header_of(good).rows[manifest_layout::kForms].offset;
  size_t refused = 0;
  size_t words = 0;
  for (uint64_t at = begin; at + 8 <= good.size(); at += 8, ++words) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1} << 40, UINT64_MAX}) {
      auto forged = good;
      std::memcpy(forged.data() + at, &value, sizeof value);
      update_checksums(forged);
      refused += size_t{survives(forged) ? 0U : 1U};
    }
  }
  // Offsets and sizes of chunks, checksums and windows may have any value.
  EXPECT_GT(refused, words);
}

TEST_F(HostileManifest, ForgedVersion1IsRefusedAndHarmless) {
  const auto good = as_version_1(good_manifest());
  ASSERT_TRUE(survives(good));
  const auto forged = [&](auto change) { return survives(with_header(good, change)); };
  EXPECT_FALSE(forged([](Header& h) { h.version = 2; }));
  EXPECT_FALSE(forged([](Header& h) { h.version = 0; }));
  EXPECT_FALSE(forged([](Header& h) { h.sections = 6; }));
  EXPECT_FALSE(forged([](Header& h) { h.flags |= manifest_layout::kObjectChecksums; }));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(forged([&](Header& h) { ++h.rows[i].kind; })) << i;
    EXPECT_FALSE(forged([&](Header& h) { h.rows[i].kind = UINT32_MAX; })) << i;
    for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 32, UINT64_MAX - 63, UINT64_MAX}) {
      EXPECT_FALSE(forged([&](Header& h) { h.rows[i].offset = count; })) << i << " " << count;
      EXPECT_FALSE(forged([&](Header& h) { h.rows[i].bytes = count; })) << i << " " << count;
    }
  }
}

// Sizes near 2^64 must be refused. A reader rounds lengths up for its buffers, and rounding such a size up
// would overflow to a small number.
TEST_F(HostileManifest, SizesThatNoFileHasAreRefused) {
  for (const uint64_t size : {uint64_t{1} << 63, UINT64_MAX - 4095, UINT64_MAX}) {
    ManifestBuilder builder(ManifestFacts{});
    builder.add_sample({.length = size, .object = builder.add_object("a.raw", size)});
    EXPECT_FALSE(survives(*builder.finish())) << size;
  }
}

// The size of an object without samples is checked too, because copies and checks count its bytes.
TEST_F(HostileManifest, SizesOfObjectsWithoutSamplesAreCheckedToo) {
  const auto built = [](std::initializer_list<uint64_t> sizes) {
    ManifestBuilder builder(ManifestFacts{});
    builder.add_sample({.length = 5, .object = builder.add_object("sample", 5)});
    for (const uint64_t size : sizes) builder.add_object("other-" + std::to_string(builder.objects()), size);
    return *builder.finish();
  };
  constexpr uint64_t kMost = INT64_MAX;
  EXPECT_TRUE(survives(built({kMost - 5})));
  EXPECT_FALSE(survives(built({UINT64_MAX})));
  EXPECT_FALSE(survives(built({kMost + 1})));
  EXPECT_FALSE(survives(built({kMost})));
  EXPECT_FALSE(survives(built({kMost / 2, kMost / 2, kMost / 2, kMost / 2, 5})));
}

// To find the name of an object, a reader decodes one block of names. A manifest with larger blocks must be
// refused: if all names were in one block, each search would decode all names of the file.
TEST_F(HostileManifest, LargerBlocksOfNamesAreRefused) {
  auto bytes = good_manifest(20);
  Header header = header_of(bytes);
  auto& name_blocks = header.rows[manifest_layout::kNameBlocks];
  ASSERT_EQ(name_blocks.bytes, 16U);
  std::memset(bytes.data() + name_blocks.offset + 8, 0, 8);
  name_blocks.bytes = 8;
  header.names_per_block = 20;
  put_header(bytes, header);
  update_checksums(bytes);
  EXPECT_FALSE(survives(bytes));
}

// Makes a manifest without objects and with the encoded `facts`.
std::vector<std::byte> with_facts(std::span<const std::byte> facts) {
  const std::vector<std::byte> none = *ManifestBuilder(ManifestFacts{}).finish();
  Header header = header_of(none);
  std::vector<std::byte> bytes(none.begin(), none.begin() + sizeof header);
  bytes.insert(bytes.end(), facts.begin(), facts.end());
  header.rows[manifest_layout::kFacts].bytes = facts.size();
  for (uint32_t i = 1; i < manifest_layout::kForms; ++i)
    header.rows[i].offset = manifest_layout::aligned(header.rows[i - 1].offset + header.rows[i - 1].bytes);
  header.file_bytes = header.rows[manifest_layout::kNames].offset;
  bytes.resize(header.file_bytes);
  put_header(bytes, header);
  update_checksums(bytes);
  return bytes;
}

// The number of empty label names must be limited: each takes 32 bytes of memory, but only one byte of the
// file.
TEST_F(HostileManifest, ManyEmptyLabelNamesAreRefused) {
  const auto labels = [](uint64_t count, std::string_view name) {
    std::vector<std::byte> facts(4);  // no recipe, format and codec, seed 0
    manifest_layout::put_varint(facts, 0);
    manifest_layout::put_varint(facts, count);
    for (uint64_t i = 0; i < count; ++i) {
      manifest_layout::put_varint(facts, name.size());
      for (const char letter : name) facts.push_back(static_cast<std::byte>(letter));
    }
    return with_facts(facts);
  };
  EXPECT_TRUE(survives(labels(1000, "")));
  EXPECT_TRUE(survives(labels(1'000'000, "cat")));
  EXPECT_FALSE(survives(labels(1'000'000, "")));
  EXPECT_FALSE(survives(labels(1'000'000, "a")));

  std::vector<std::byte> settings(4);
  constexpr uint64_t kKeys = 60'000;
  manifest_layout::put_varint(settings, kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) {
    manifest_layout::put_varint(settings, 2);
    settings.push_back(static_cast<std::byte>(i));
    settings.push_back(static_cast<std::byte>(i >> 8));
    manifest_layout::put_varint(settings, 0);
  }
  manifest_layout::put_varint(settings, 0);
  EXPECT_FALSE(survives(with_facts(settings)));
}

TEST_F(HostileManifest, DifferentLabelNamesAreAccepted) {
  ManifestFacts facts;
  for (unsigned i = 0; i < 65'536; ++i) facts.label_names.push_back({char(i), char(i >> 8)});
  for (unsigned i = 0; i < 200'000; ++i) facts.label_names.push_back({char(i), char(i >> 8), char(i >> 16)});
  const auto bytes = ManifestBuilder(facts).finish();
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  EXPECT_TRUE(survives(*bytes));
  for (std::string& name : facts.label_names) name.clear();
  EXPECT_FALSE(ManifestBuilder(facts).finish().ok());
}

TEST_F(HostileManifest, ForgedNamesAreRefusedAndHarmlessUnchecked) {
  const auto good = good_manifest();
  const Header header = header_of(good);
  for (uint64_t block = 0; block < 4; ++block)
    for (const uint64_t to : {uint64_t{1}, header.rows[manifest_layout::kNames].bytes, UINT64_MAX}) {
      auto bytes = good;
      std::memcpy(bytes.data() + header.rows[manifest_layout::kNameBlocks].offset + block * 8, &to,
                  sizeof to);
      update_checksums(bytes);
      EXPECT_FALSE(survives(bytes)) << block << " " << to;
    }
  // The first name begins with two lengths: of the prefix that it shares with the name before (0), and of the
  // rest.
  for (const int shared : {1, 127, 255})
    for (const int rest : {0, 14, 127, 255}) {
      auto bytes = good;
      const size_t at = header.rows[manifest_layout::kNames].offset;
      bytes[at] = static_cast<std::byte>(shared);
      bytes[at + 1] = static_cast<std::byte>(rest);
      update_checksums(bytes);
      EXPECT_FALSE(survives(bytes)) << shared << " " << rest;
    }
  auto bytes = good;
  const size_t name = header.rows[manifest_layout::kNames].offset + 2;
  std::memcpy(bytes.data() + name, "../..", 5);  // "class/1000.jpg" -> "../../1000.jpg"
  update_checksums(bytes);
  EXPECT_FALSE(survives(bytes));
}

TEST_F(HostileManifest, ForgedFactsAreHarmless) {
  const auto good = good_manifest();
  const Header header = header_of(good);
  const auto& row = header.rows[manifest_layout::kFacts];
  for (uint64_t at = 0; at < row.bytes; ++at)
    for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
      auto bytes = good;
      bytes[row.offset + at] = static_cast<std::byte>(value);
      update_checksums(bytes);
      survives(bytes);
    }
}

// Random changes of good manifests from fixed seeds. In half of the rounds, all checksums are computed again.
TEST_F(HostileManifest, RandomDamageNeverCrashes) {
  const auto good_files = good_manifests();
  int passed = 0;
  for (uint64_t round = 0; round < 4000; ++round) {
    const RandomStream random(round, "manifest fuzz");
    const auto& good = good_files[round / 2 % good_files.size()];
    auto bytes = good;
    uint64_t draw = 0;
    for (uint64_t left = 1 + random.below(draw++, 8); left > 0; --left) {
      const auto at = size_t(random.below(draw++, bytes.size()));
      switch (random.below(draw++, 4)) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1U << random.below(draw++, 8));
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random.bits(draw++));
          break;
        case 2: {
          const uint64_t word =
              random.below(draw++, 2) == 0 ? UINT64_MAX >> random.below(draw++, 64) : random.bits(draw++);
          std::memcpy(bytes.data() + std::min(at, bytes.size() - 8), &word, 8);
          break;
        }
        default:
          bytes.resize(std::max<size_t>(at, sizeof(Header)));
      }
    }
    if (round % 2 == 1) update_checksums(bytes);
    passed += survives(bytes) ? 1 : 0;
  }
  EXPECT_LT(passed, 400);  // harmless: a changed checksum, unused field or letter of a name
}

TEST_F(HostileManifest, LoadsThroughABackEndAndReportsItsFaults) {
  const auto bytes = good_manifest();
  const auto tier = open_tier("mem:hostile-manifest", kNoNamedTiers);
  ASSERT_TRUE(tier.ok());
  const auto writer = tier->backend->create(kManifestName, 0);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->append(bytes).ok());
  ASSERT_TRUE((*writer)->publish(Durability::visible).ok());
  const auto loaded = Manifest::load(*tier->backend, kManifestName);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->samples(), 50U);
  EXPECT_EQ(Manifest::load(*tier->backend, "nothing").error().code, Errc::not_found);
  const auto flipped = open_tier("mem:hostile-manifest,fail=flip@1", kNoNamedTiers);
  ASSERT_TRUE(flipped.ok());
  EXPECT_EQ(Manifest::load(*flipped->backend, kManifestName).error().code, Errc::corrupt);
}

TEST(ManifestBuilder, PublishesTheSameBytesAsItFinishes) {
  const auto build = [] {
    ManifestBuilder builder({});
    for (uint64_t i = 0; i < 100'000; ++i) {  // needs more than one chunk of each of the builder's arrays
      const uint32_t object = builder.add_object("folder/with/a/long/name/" + std::to_string(mix64(i)), i);
      builder.add_sample({.length = i, .object = object});
    }
    return builder;
  };
  auto finished = build();
  auto published = build();
  const auto bytes = finished.finish();
  ASSERT_TRUE(bytes.ok());
  const auto tier = open_tier("mem:publish-manifest", kNoNamedTiers);
  ASSERT_TRUE(tier.ok());
  ASSERT_TRUE(published.publish(*tier->backend, "m", Durability::visible).ok());
  std::vector<std::byte> back(bytes->size());
  const auto read = tier->backend->read_object("m", 0, back);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, bytes->size());
  EXPECT_EQ(back, *bytes);
}

}  // namespace
}  // namespace penstock
