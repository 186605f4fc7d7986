#include "miniapps/checkpoint/checkpoint_manifest.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/payload.hpp"

namespace penstock {
namespace {

CheckpointManifest two_ranks() {
  return {.store_uuid = "0123456789abcdef0123456789abcdef",
          .run = "night.7",
          .id = {120, 1},
          .ranks = 2,
          .files = {{"rank-0.bin", 0, kCheckpointChunk + 1, {1, 0xffffffff}}, {"rank-1.bin", 1, 0, {}}},
          .trainer = {.epoch = 3,
                      .step_of_epoch = 20,
                      .consumed = 640,
                      .seed = UINT64_MAX,
                      .app = "hepcnn",
                      .corpus = "0123456789abcdef",
                      .shuffle = "buffer:7",
                      .step_samples = 32},
          .payload = "alexnet-adam",
          .payload_seed = 42,
          .snapshot_time = "2026-11-20T09:30:00Z",
          .commit_time = "2026-11-20T09:30:01Z",
          .writer = "host, \"quoted\""};
}

// Replaces a part of the text, and computes the checksum again.
std::string sealed_anew(std::string text, std::string_view old, std::string_view now) {
  text.resize(text.rfind("crc32c "));
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  if (at != std::string::npos) text.replace(at, old.size(), now);
  return text + fmt::format("crc32c {:08x}\n", crc32c(bytes_of(text)));
}

TEST(CheckpointManifest, SurvivesSerializingAndParsing) {
  const CheckpointManifest manifest = two_ranks();
  const auto back = parse_checkpoint_manifest(serialize(manifest), "MANIFEST");
  ASSERT_OK(back);
  EXPECT_EQ(*back, manifest);
  EXPECT_EQ(back->bytes(), kCheckpointChunk + 1);
}

TEST(CheckpointManifest, IsCorruptIfCutShortAnywhere) {
  const std::string text = serialize(two_ranks());
  for (size_t length = 0; length < text.size(); ++length)
    ASSERT_TRUE(fails_with(Errc::corrupt, parse_checkpoint_manifest(text.substr(0, length), "m"), "'m'"))
        << length;
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_manifest(text + "\n", "m"));
}

TEST(CheckpointManifest, AnyFlippedBitIsCorrupt) {
  std::string text = serialize(two_ranks());
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    char& byte = text[bit / 8];
    byte = char(byte ^ (1 << (bit % 8)));
    ASSERT_TRUE(fails_with(Errc::corrupt, parse_checkpoint_manifest(text, "m"), "'m'")) << bit;
    byte = char(byte ^ (1 << (bit % 8)));
  }
}

TEST(CheckpointManifest, RefusesAnotherFormat) {
  const std::string text = serialize(two_ranks());
  EXPECT_ERRC(Errc::unsupported,
              parse_checkpoint_manifest(sealed_anew(text, "\"format\": 1", "\"format\": 2"), "m"),
              "format 2");
  EXPECT_ERRC(Errc::corrupt,
              parse_checkpoint_manifest(sealed_anew(text, "\"format\": 1", "\"format\": -1"), "m"));
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_manifest(sealed_anew(text, "\"checkpoint\"", "\"cake\""), "m"));
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_manifest(serialize_part(0, {}), "m"), "is not a checkpoint");
}

TEST(CheckpointManifest, WrongContentWithACorrectChecksumIsCorrupt) {
  const std::string text = serialize(two_ranks());
  const std::pair<std::string_view, std::string_view> changes[] = {
      {"\"ranks\": 2", "\"ranks\": 2.5"},
      {"\"ranks\": 2", "\"ranks\": -2"},
      {"\"ranks\": 2", "\"ranks\": \"2\""},
      {"\"ranks\": 2", "\"Ranks\": 2"},
      {"\"run\": \"night.7\"", "\"run\": 7"},
      {"\"files\": [", "\"files\": {}, \"left\": ["},
      {"00000001ffffffff", "00000001fffffff"},
      {"00000001ffffffff", "00000001ffffffffffffffff"},
      {"00000001ffffffff", "00000001fffffffg"},
      {"00000001ffffffff", "0000000+ffffffff"},
      {"\"bytes\": 4194305", "\"bytes\": 4194306"},
      {"\"chunk_bytes\": 4194304", "\"chunk_bytes\": 4096"},
      {"\"trainer\": {", "\"trainer\": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]], \"t\": {"},
  };
  for (const auto& [old, now] : changes)
    EXPECT_ERRC(Errc::corrupt, parse_checkpoint_manifest(sealed_anew(text, old, now), "m"), "'m'") << now;
}

TEST(CheckpointManifest, ContradictingMembersAreCorrupt) {
  const auto broken = [](const std::function<void(CheckpointManifest&)>& how) {
    CheckpointManifest manifest = two_ranks();
    how(manifest);
    EXPECT_ERRC(Errc::corrupt, check_manifest(manifest, "m"), "'m'");
    return parse_checkpoint_manifest(serialize(manifest), "m");
  };
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.files.clear(); }), "rank 0 has no file");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.files.pop_back(); }), "rank 1 has no file");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.ranks = UINT64_MAX; }), "rank 2 has no file");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.ranks = 1; }), "belongs to rank 1");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.ranks = 0; }), "it has no ranks");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.files[1].name = "rank-0.bin"; }), "twice");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { std::swap(m.files[0], m.files[1]); }), "wrong position");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.files[0].chunks.pop_back(); }), "1 checksums");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.files[0].bytes = UINT64_MAX; }), "checksums");
  EXPECT_ERRC(Errc::corrupt, broken([](auto& m) { m.run = "../other"; }), "not a valid run name");
}

TEST(CheckpointManifest, HostileFileNamesAreCorrupt) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("/etc/passwd"),
        std::string("a/b"), std::string("MANIFEST"), std::string("part-0.json"), std::string(".hidden"),
        std::string("a\0b", 3), std::string("a b"), std::string("a\n"), std::string("\xc3\xa4"),
        std::string(201, 'x')}) {
    EXPECT_ERRC(Errc::invalid_argument, check_checkpoint_file_name(name)) << name;
    CheckpointManifest manifest = two_ranks();
    manifest.files[1].name = name;
    EXPECT_ERRC(Errc::corrupt, parse_checkpoint_manifest(serialize(manifest), "m")) << name;
  }
  for (const char* name : {"rank-0.bin", "model.ckpt-20.data-00000-of-00001", "MANIFEST2", "apart-1", "x"})
    EXPECT_OK(check_checkpoint_file_name(name));
}

TEST(CheckpointManifest, AcceptsTextThatIsNotUnicode) {
  CheckpointManifest manifest = two_ranks();
  manifest.writer = "\xff\xfe";
  EXPECT_OK(parse_checkpoint_manifest(serialize(manifest), "m"));
}

TEST(CheckpointPart, ParsesOnlyForItsOwnRank) {
  const std::vector<CheckpointFile> files = {{"a", 3, 5, {7}}, {"b", 3, 0, {}}};
  const auto back = parse_checkpoint_part(serialize_part(3, files), 3, "part-3.json");
  ASSERT_OK(back);
  EXPECT_EQ(*back, files);
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_part(serialize_part(3, files), 2, "p"), "another rank");
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_part(serialize_part(2, files), 2, "p"), "another rank");
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_part(serialize(two_ranks()), 0, "p"), "is not a part");
  EXPECT_ERRC(Errc::corrupt, parse_checkpoint_part("", 0, "p"), "empty");
}

TEST(CheckpointFolder, ParsesOnlyNamesThatItWrites) {
  EXPECT_EQ(folder_of({120, 0}), "000000000120.0");
  EXPECT_EQ(folder_of({UINT64_MAX, UINT64_MAX}), "18446744073709551615.18446744073709551615");
  for (const CheckpointId& id :
       {CheckpointId{0, 0}, {120, 3}, {1234567890123, 10}, {UINT64_MAX, UINT64_MAX}}) {
    const auto back = parse_checkpoint_folder(folder_of(id));
    ASSERT_OK(back);
    EXPECT_EQ(*back, id);
  }
  for (const char* folder :
       {"", ".", "120.0", "000000000120", "000000000120.", "000000000120.00", "0000000000120.0",
        "000000000120.0 ", "-00000000120.0", "+00000000120.0", "00000000012x.0", "000000000120.0.0",
        "99999999999999999999.0", "000000000120.-1"})
    EXPECT_ERRC(Errc::invalid_argument, parse_checkpoint_folder(folder)) << folder;
}

TEST(CheckpointFolder, IdsAreOrderedByStepThenGeneration) {
  EXPECT_LT((CheckpointId{9, 5}), (CheckpointId{10, 0}));
  EXPECT_LT((CheckpointId{10, 0}), (CheckpointId{10, 1}));
}

TEST(CheckpointRun, NamesAreShortAndPlain) {
  for (const char* run : {"default", "a", "night.7", "A_b-C.0"}) EXPECT_OK(check_run_name(run));
  for (const std::string& run : {std::string(), std::string("."), std::string(".."), std::string(".a"),
                                 std::string("a/b"), std::string("a b"), std::string(101, 'a')})
    EXPECT_ERRC(Errc::invalid_argument, check_run_name(run)) << run;
}

// The manifest of 18.6 TB, with a checksum of 8 digits for each 4 MiB, has 35 MB. Manifests of up to 256 MiB
// are read back.
TEST(CheckpointManifestSize, LargestPayloadIsReadBack) {
  const Payload largest = find_payload("llama3-1t").value();
  for (const uint64_t ranks : {1U, 1000U}) {
    CheckpointManifest manifest = two_ranks();
    manifest.ranks = ranks;
    manifest.files.clear();
    uint64_t entries = 0;
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const PayloadFile file = largest.shard(rank, ranks)[0];
      manifest.files.push_back(
          {file.name, rank, file.bytes, std::vector<uint32_t>(chunk_count(file.bytes), 0xfedcba98)});
      entries += manifest_entry_bytes(file.name, file.bytes);
    }
    EXPECT_OK(check_manifest_bytes(manifest.bytes(), entries, ranks));
    const std::string text = serialize(manifest);
    EXPECT_LT(text.size(), 40U << 20U);
    EXPECT_LE(text.size(), entries + 16384);
    const auto back = parse_checkpoint_manifest(text, "MANIFEST");
    ASSERT_OK(back);
    EXPECT_EQ(*back, manifest);
  }
}

TEST(CheckpointManifestSize, IsNeverMoreThanEstimated) {
  CheckpointManifest manifest = two_ranks();
  manifest.run = std::string(100, 'r');
  manifest.writer = std::string(1000, '"');
  manifest.files = {{std::string(199, '"') + "a", 0, UINT64_MAX >> 24U, {}},
                    {std::string(199, '\\') + "b", 1, 1, {0xffffffff}}};
  manifest.files[0].chunks.resize(chunk_count(manifest.files[0].bytes));
  uint64_t entries = 0;
  for (const CheckpointFile& file : manifest.files) entries += manifest_entry_bytes(file.name, file.bytes);
  EXPECT_LE(serialize(manifest).size(), entries + 16384);
  EXPECT_ERRC(Errc::unsupported, check_manifest_bytes(UINT64_MAX, 256U << 20U, 1), "the limit is");
  const uint64_t most = uint64_t{120} << 40U;
  EXPECT_OK(check_manifest_bytes(most, manifest_entry_bytes("a", most), 1));
  EXPECT_ERRC(Errc::unsupported, check_manifest_bytes(2 * most, manifest_entry_bytes("a", 2 * most), 1),
              "--run");
}

TEST(CheckpointChunk, ErrorNamesTheFirstByteOfAWrongChunk) {
  const CheckpointFile file{"f", 0, kCheckpointChunk + 1, {5, 6}};
  EXPECT_OK(check_chunk(file, 0, 5, "f"));
  EXPECT_OK(check_chunk(file, 1, 6, "f"));
  EXPECT_ERRC(Errc::corrupt, check_chunk(file, 1, 5, "f"), "byte 4194304");
  EXPECT_ERRC(Errc::corrupt, check_chunk(file, 2, 0, "f"));
}

}  // namespace
}  // namespace penstock
