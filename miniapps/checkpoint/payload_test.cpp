#include "miniapps/checkpoint/payload.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kSeed = 7;
constexpr uint64_t kBytes = 9 * kPage + 13;  // the last page has only a few bytes

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

std::unique_ptr<PayloadState> state_of(uint64_t rank, std::vector<PayloadFile> files = {{"a.bin", kBytes}}) {
  return PayloadState::make(std::move(files), rank, kSeed).value();
}

uint64_t sum(const std::vector<PayloadFile>& files) {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t bytes, const PayloadFile& file) { return bytes + file.bytes; });
}

TEST(Payload, SizesAreThePublishedOnes) {
  const auto bytes = [](std::string_view name) { return find_payload(name).value().bytes; };
  EXPECT_EQ(bytes("alexnet-adam"), 704'390'856U);
  EXPECT_EQ(bytes("alexnet-adam-tensorflow"), 704'390'864U + 1'876U + 153'226U);
  EXPECT_EQ(bytes("resnet50"), 204'669'160U);
  EXPECT_EQ(bytes("unet3d"), 499'153'191U);
  // The "GB" of MLPerf Storage (105, 912 and 5,290) are GiB, but its 18 TB are decimal.
  const double gib = 0x1p30;
  EXPECT_NEAR(double(bytes("llama3-8b")) / gib, 105, 105 * 0.01);
  EXPECT_NEAR(double(bytes("llama3-70b")) / gib, 912, 912 * 0.01);
  EXPECT_NEAR(double(bytes("llama3-405b")) / gib, 5290, 5290 * 0.01);
  EXPECT_NEAR(double(bytes("llama3-1t")), 18e12, 18e12 * 0.04);
}

TEST(Payload, NamesAndSizesAreFound) {
  EXPECT_EQ(find_payload("unet3d").value().name, "unet3d");
  const Payload eighth = find_payload("alexnet-adam/8").value();
  EXPECT_EQ(eighth.name, "alexnet-adam/8");
  EXPECT_EQ(eighth.bytes, 704'390'856U / 8);
  EXPECT_EQ(find_payload("512MiB").value().bytes, uint64_t{512} << 20);
}

TEST(Payload, UnknownNamesAreRefusedWithTheListOfNames) {
  EXPECT_ERRC(Errc::invalid_argument, find_payload("alexnet-adm"), "did you mean 'alexnet-adam'?");
  EXPECT_ERRC(Errc::invalid_argument, find_payload("gpt"), "llama3-405b");
  for (const char* const wrong : {"", "0", "-5", "/2", "unet3d/", "unet3d/0", "unet3d/x", "unet3d/499153192"})
    EXPECT_ERRC(Errc::invalid_argument, find_payload(wrong), "unet3d");
}

TEST(Payload, ShardsSumToTheWhole) {
  for (const char* const name : {"alexnet-adam", "alexnet-adam-tensorflow", "alexnet-adam-tensorflow/7",
                                 "unet3d", "llama3-1t", "1000003", "5"}) {
    const Payload payload = find_payload(name).value();
    for (const uint64_t ranks : {1U, 2U, 3U, 7U, 64U}) {
      uint64_t all = 0;
      uint64_t least = UINT64_MAX;
      uint64_t most = 0;
      for (uint64_t rank = 0; rank < ranks; ++rank) {
        const auto files = payload.shard(rank, ranks);
        all += sum(files);
        least = std::min(least, files[0].bytes);
        most = std::max(most, files[0].bytes);
      }
      EXPECT_EQ(all, payload.bytes) << name << " of " << ranks;
      EXPECT_LE(most - least, 1U) << name << " of " << ranks;
    }
  }
}

TEST(Payload, FilesAreNamedByRank) {
  EXPECT_EQ(find_payload("unet3d").value().shard(3, 4),
            (std::vector<PayloadFile>{{"rank-3.bin", 499'153'191 / 4}}));
  EXPECT_EQ(
      find_payload("alexnet-adam-tensorflow").value().shard(0, 1),
      (std::vector<PayloadFile>{
          {"rank-0.data-00000-of-00001", 704'390'864}, {"rank-0.index", 1'876}, {"rank-0.meta", 153'226}}));
}

TEST(PayloadState, IsProvenAtEachStepInAnyPart) {
  const auto state = state_of(2, {{"a.bin", kBytes}, {"b.bin", 5}, {"c.bin", 0}, {"d.bin", 3 << 20}});
  for (const uint64_t step : {0U, 1U, 20U, 1U}) {
    state->advance_to(step);
    for (size_t i = 0; i < state->files().size(); ++i) {
      const auto bytes = state->file(i);
      const std::string& name = state->files()[i].name;
      EXPECT_EQ(bytes.size(), state->files()[i].bytes);
      EXPECT_OK(prove_state(bytes, 0, name, 2, kSeed, step));
      if (bytes.size() <= 2 * kPage) continue;
      EXPECT_OK(prove_state(bytes.subspan(kPage, kPage + 1), kPage, name, 2, kSeed, step));
      EXPECT_OK(prove_state(bytes.subspan(2 * kPage), 2 * kPage, name, 2, kSeed, step));
    }
  }
}

TEST(PayloadState, EachWrongByteIsNamed) {
  const auto state = state_of(0);
  state->advance_to(3);
  auto bytes = copy(state->file(0));
  for (const size_t at : {size_t{0}, size_t{7}, size_t{8}, size_t{kPage - 1}, size_t{kPage},
                          size_t{5 * kPage + 1234}, size_t{kBytes - 1}}) {
    for (const int bit : {0, 7}) {
      bytes[at] ^= std::byte{1} << bit;
      EXPECT_ERRC(
          Errc::corrupt, prove_state(bytes, 0, "a.bin", 0, kSeed, 3),
          "'a.bin' differs from the state of rank 0 at step 3 (seed 7) at byte " + std::to_string(at));
      bytes[at] ^= std::byte{1} << bit;
    }
  }
  bytes[6 * kPage + 1] ^= std::byte{1};
  EXPECT_ERRC(Errc::corrupt,
              prove_state(std::span(bytes).subspan(2 * kPage), 2 * kPage, "a.bin", 0, kSeed, 3),
              "byte " + std::to_string(6 * kPage + 1));
}

TEST(PayloadState, FindsAWrongStepRankSeedFileOrOffset) {
  const auto state = state_of(1);
  state->advance_to(20);
  const auto bytes = state->file(0);
  ASSERT_OK(prove_state(bytes, 0, "a.bin", 1, kSeed, 20));
  EXPECT_ERRC(Errc::corrupt, prove_state(bytes, 0, "a.bin", 1, kSeed, 19));
  EXPECT_ERRC(Errc::corrupt, prove_state(bytes, 0, "a.bin", 0, kSeed, 20));
  EXPECT_ERRC(Errc::corrupt, prove_state(bytes, 0, "a.bin", 1, kSeed + 1, 20));
  EXPECT_ERRC(Errc::corrupt, prove_state(bytes, 0, "b.bin", 1, kSeed, 20));
  EXPECT_ERRC(Errc::corrupt, prove_state(bytes, kPage, "a.bin", 1, kSeed, 20), "byte 4096");
  EXPECT_ERRC(Errc::internal, prove_state(bytes, 8, "a.bin", 1, kSeed, 20));
  // Puts one page of another step among the right pages, as after a torn write.
  const auto older = copy(bytes);
  state->advance_to(40);
  auto torn = copy(state->file(0));
  std::copy_n(older.begin() + 4 * kPage, kPage, torn.begin() + 4 * kPage);
  EXPECT_ERRC(Errc::corrupt, prove_state(torn, 0, "a.bin", 1, kSeed, 40),
              "byte " + std::to_string(4 * kPage));
}

TEST(PayloadState, EachPageDiffersByStepFileAndRank) {
  std::set<std::vector<std::byte>> pages;
  size_t count = 0;
  for (const uint64_t rank : {0U, 1U}) {
    const auto state = state_of(rank, {{"a.bin", 40 * kPage}, {"b.bin", 40 * kPage}});
    for (const uint64_t step : {0U, 1U, 2U}) {
      state->advance_to(step);
      for (const size_t file : {0U, 1U})
        for (size_t at = 0; at < 40 * kPage; at += kPage, ++count)
          pages.insert(copy(state->file(file).subspan(at, kPage)));
    }
  }
  EXPECT_EQ(pages.size(), count);
}

// Compressible data has repeated words, or some bytes that are more frequent than others.
TEST(PayloadState, CannotBeCompressed) {
  constexpr size_t kWords = 1 << 17;
  const auto state = state_of(0, {{"a.bin", kWords * 8}});
  state->advance_to(5);
  std::vector<uint64_t> words(kWords);
  std::memcpy(words.data(), state->file(0).data(), kWords * 8);
  std::array<double, 256> counts{};
  for (const std::byte byte : state->file(0)) ++counts[std::to_integer<size_t>(byte)];
  constexpr double kEach = kWords * 8 / 256.0;
  double chi_squared = 0;
  for (const double count : counts) chi_squared += (count - kEach) * (count - kEach) / kEach;
  EXPECT_LT(chi_squared, 255 + 6 * 22.6) << "six standard deviations";
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(PayloadState, FilesBeginAtPageBoundaries) {
  const auto state = state_of(0, {{"a.bin", 5}, {"b.bin", kBytes}});
  for (const size_t file : {0U, 1U})
    // NOLINTNEXTLINE(*-reinterpret-cast)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(state->file(file).data()) % kPage, 0U);
}

TEST(PayloadState, RefusesSizesLargerThanMemory) {
  EXPECT_ERRC(Errc::exhausted, PayloadState::make({{"a.bin", uint64_t{1} << 50}}, 0, 1), "1.0 PiB");
  EXPECT_ERRC(Errc::exhausted, PayloadState::make({{"a.bin", UINT64_MAX / 2}}, 0, 1));
}

}  // namespace
}  // namespace penstock
