#include "datagen/codec/chunk_filters.hpp"

#include <array>
#include <string>

#include "io_backends/testing/testing.hpp"

#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>
#endif

namespace penstock {
namespace {

std::vector<std::byte> bytes_in(std::initializer_list<unsigned> numbers) {
  std::vector<std::byte> bytes;
  for (const unsigned number : numbers) bytes.push_back(std::byte(number));
  return bytes;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const ChunkFilter kDeflate{ChunkFilter::kDeflate, {6}};
const ChunkFilter kFletcher32{ChunkFilter::kFletcher32, {}};
const ChunkFilter kLzf{ChunkFilter::kLzf, {}};
ChunkFilter shuffle_of(uint64_t element_bytes) {
  return {ChunkFilter::kShuffle, {uint32_t(element_bytes)}};
}

Result<std::string> opened(const std::vector<ChunkFilter>& filters, uint64_t chunk_bytes,
                           std::span<const std::byte> stored, uint32_t not_applied = 0) {
  ChunkOpener opener;
  PENSTOCK_TRY(opener.use(filters, chunk_bytes));
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, opener.open(stored, not_applied));
  return text_of(bytes);
}

TEST(ChunkFilters, NamesOfTheRegistry) {
  EXPECT_EQ(chunk_filter_name(4), "szip");
  EXPECT_EQ(chunk_filter_name(32015), "Zstandard");
  EXPECT_EQ(chunk_filter_name(40000), "filter 40000");
  for (const unsigned number : {1U, 2U, 3U, 32000U})
    EXPECT_FALSE((ChunkFilter{uint16_t(number), {}}.needs_library()));
  for (const unsigned number : {0U, 4U, 5U, 6U, 32015U})
    EXPECT_TRUE((ChunkFilter{uint16_t(number), {}}.needs_library()));
}

TEST(ChunkFilters, ShuffledBytesComeBack) {
  for (const uint64_t element_bytes : {1U, 2U, 3U, 4U, 8U, 16U})
    for (const size_t elements : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}})
      for (const size_t left_over : {size_t{0}, size_t{1}}) {
        std::string plain;
        for (size_t i = 0; i < elements * element_bytes + left_over % element_bytes; ++i)
          plain += char(i * 7 % 251);
        std::string shuffled(plain.size(), '\0');
        for (size_t i = 0; i < elements; ++i)
          for (size_t b = 0; b < element_bytes; ++b)
            shuffled[b * elements + i] = plain[i * element_bytes + b];
        for (size_t i = elements * element_bytes; i < plain.size(); ++i) shuffled[i] = plain[i];
        const auto back = opened({shuffle_of(element_bytes)}, plain.size(), bytes_of(shuffled));
        ASSERT_OK(back);
        EXPECT_EQ(*back, plain) << element_bytes << " x " << elements;
      }
}

TEST(ChunkFilters, AShuffleOfNoElementSizeIsDamage) {
  const std::vector<uint32_t> wrong_parameters[] = {{}, {0}, {2, 2}};
  for (const auto& parameters : wrong_parameters)
    EXPECT_ERRC(Errc::corrupt,
                opened({{ChunkFilter::kShuffle, parameters}}, 4, bytes_of(std::string("acbd"))));
}

// The sums of "abcde" by hand: the numbers 0x6162, 0x6364 and 0x6500 add up to 0x129c6, of which 65535 is
// taken once: 0x29c7. The sums of the sums are 0x6162 + 0xc4c6 + 0x129c6 = 0x24fee, so 0x4ff0.
TEST(ChunkFilters, AWrongChecksumIsDamage) {
  const std::string right("abcde\xc7\x29\xf0\x4f", 9);
  EXPECT_EQ(opened({kFletcher32}, 5, bytes_of(right)).value(), "abcde");
  const std::string of_old_versions("abcde\x29\xc7\x4f\xf0", 9);
  EXPECT_EQ(opened({kFletcher32}, 5, bytes_of(of_old_versions)).value(), "abcde");
  for (size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = char(wrong[at] ^ 1);
    EXPECT_ERRC(Errc::corrupt, opened({kFletcher32}, 5, bytes_of(wrong))) << at;
  }
  EXPECT_ERRC(Errc::corrupt, opened({kFletcher32}, 5, bytes_of(std::string("abc"))));
}

TEST(ChunkFilters, Lzf) {
  // three bytes as they are; five that repeat from three bytes before; 12 of the byte before, in two bytes
  const auto stored = bytes_in({2, 'a', 'b', 'c', 3U << 5U, 2, 7U << 5U, 3, 0});
  EXPECT_EQ(opened({kLzf}, 20, stored).value(), "abcabcabbbbbbbbbbbbb");
  for (size_t bytes = 0; bytes < stored.size(); ++bytes)
    EXPECT_ERRC(Errc::corrupt, opened({kLzf}, 20, std::span(stored).first(bytes))) << bytes;
  EXPECT_ERRC(Errc::corrupt,
              opened({kLzf}, 20, bytes_in({0, 'a', 1U << 5U, 1})));  // from before the beginning
  EXPECT_ERRC(Errc::corrupt, opened({kLzf}, 19, stored));
}

TEST(ChunkFilters, WhatWasNotAppliedIsNotUndone) {
  const std::vector<ChunkFilter> filters{shuffle_of(2), kLzf, kFletcher32};
  EXPECT_EQ(opened(filters, 4, bytes_of(std::string("abcd")), 0b111).value(), "abcd");
  EXPECT_EQ(opened(filters, 4, bytes_of(std::string("acbd")), 0b110).value(), "abcd");
  EXPECT_EQ(opened(filters, 4, bytes_in({3, 'a', 'c', 'b', 'd'}), 0b100).value(), "abcd");
}

TEST(ChunkFilters, WhatCannotBe) {
  ChunkOpener opener;
  EXPECT_ERRC(Errc::invalid_argument, opener.use(std::vector<ChunkFilter>(9, shuffle_of(1)), 4));
  EXPECT_ERRC(Errc::unsupported, opener.use({kLzf}, UINT64_MAX));
}

#ifdef PENSTOCK_HAS_ZLIB
TEST(ChunkFilters, DeflateAfterShuffle) {
  const std::string shuffled(100'000, 'x');
  std::string compressed(compressBound(uLong(shuffled.size())), '\0');
  uLongf bytes = compressed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(compressed.data()), &bytes,
                     reinterpret_cast<const Bytef*>(shuffled.data()), uLong(shuffled.size())),
            Z_OK);
  compressed.resize(bytes);
  const std::vector<ChunkFilter> filters{shuffle_of(4), kDeflate};
  EXPECT_EQ(opened(filters, shuffled.size(), bytes_of(compressed)).value(), shuffled);
  EXPECT_ERRC(Errc::corrupt, opened(filters, shuffled.size(), bytes_of(compressed).first(bytes - 1)));
  EXPECT_ERRC(Errc::corrupt, opened(filters, 1'000, bytes_of(compressed)));
  EXPECT_ERRC(Errc::corrupt, opened(filters, shuffled.size() + 1, bytes_of(compressed)));
  EXPECT_ERRC(Errc::corrupt, opened(filters, shuffled.size(), bytes_of(shuffled)));
}
#endif

}  // namespace
}  // namespace penstock
