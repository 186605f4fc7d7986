#include "datagen/manifest/stored_form.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "datagen/manifest/manifest_fixture.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using Chunk = ChunkedArray::Chunk;

ChunkedArray array_of(std::span<const Chunk> chunks) {
  return {
      .item_bytes = 2,
      .shape = {5, 3},
      .chunk_shape = {2, 2},
      .filters = {{ChunkFilter::kShuffle, {2}}, {32001, {1, 2, UINT32_MAX}}, {ChunkFilter::kFletcher32, {}}},
      .fill_value = 77,
      .chunks = chunks};
}

std::vector<Chunk> six_chunks() {
  std::vector<Chunk> chunks;
  for (uint64_t i = 0; i < 6; ++i) chunks.push_back(Chunk::make(1000 * i, 10 + i, uint32_t(i)));
  return chunks;
}

TEST(StoredForm, ChunksComeBack) {
  const auto chunks = six_chunks();
  const auto words = encode_form(array_of(chunks));
  const auto form = decode_form(words);
  ASSERT_TRUE(form);
  EXPECT_EQ(form_bytes(*form), 30U);
  const auto& array = std::get<ChunkedArray>(*form);
  EXPECT_EQ(array.item_bytes, 2U);
  EXPECT_EQ(array.shape, (std::vector<uint64_t>{5, 3}));
  EXPECT_EQ(array.chunk_shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(array.filters, array_of(chunks).filters);
  EXPECT_EQ(array.chunk_bytes(), 8U);
  EXPECT_EQ(array.fill_value, 77U);
  ASSERT_EQ(array.chunks.size(), 6U);
  EXPECT_EQ(array.chunks[5].offset, 5000U);
  EXPECT_EQ(array.chunks[5].bytes(), 15U);
  EXPECT_EQ(array.chunks[5].not_applied(), 5U);
}

TEST(StoredForm, StreamsComeBack) {
  const std::vector<std::byte> window(13, std::byte{9});
  const auto words = encode_form(
      CompressedStream{.format = DeflateFormat::zlib,
                       .begin = 7,
                       .stored_bytes = 100,
                       .bytes = 5000,
                       .points = {{.stored_offset = 50, .offset = 60, .bits = 5, .window = window},
                                  {.stored_offset = 70, .offset = 80}}});
  const auto form = decode_form(words);
  ASSERT_TRUE(form);
  EXPECT_EQ(form_bytes(*form), 5000U);
  const auto& stream = std::get<CompressedStream>(*form);
  EXPECT_EQ(stream.format, DeflateFormat::zlib);
  EXPECT_EQ(stream.begin, 7U);
  ASSERT_EQ(stream.points.size(), 2U);
  EXPECT_EQ(stream.points[0].bits, 5U);
  EXPECT_TRUE(std::ranges::equal(stream.points[0].window, window));
  EXPECT_EQ(stream.points[1].stored_offset, 70U);
  EXPECT_TRUE(stream.points[1].window.empty());
}

TEST(StoredForm, ContradictionsAreNoForms) {
  const auto chunks = six_chunks();
  const auto good = encode_form(array_of(chunks));
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(decode_form(std::span(good).first(cut))) << cut;
  auto more = good;
  more.push_back(0);
  EXPECT_FALSE(decode_form(more));
  ChunkedArray wrong = array_of(std::span(chunks).first(5));
  EXPECT_FALSE(decode_form(encode_form(wrong))) << "a chunk is missing";
  wrong = array_of(chunks);
  wrong.shape = {5, 0};
  EXPECT_FALSE(decode_form(encode_form(wrong)));
  wrong.shape = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_FALSE(decode_form(encode_form(wrong)));
  const CompressedStream unsorted{
      .stored_bytes = 100,
      .bytes = 100,
      .points = {{.stored_offset = 50, .offset = 60}, {.stored_offset = 60, .offset = 50}}};
  EXPECT_FALSE(decode_form(encode_form(unsorted)));
}

TEST(StoredForm, AManifestKeepsThem) {
  const auto chunks = six_chunks();
  ManifestBuilder builder(ManifestFacts{});
  const uint32_t object = builder.add_object("a", 10000);
  builder.add_sample({.offset = 1, .length = 2, .object = object});
  const uint32_t form = builder.add_form(encode_form(array_of(chunks)));
  builder.add_sample({.offset = 1000, .length = 500, .object = object, .form = form}, {6, 4});
  builder.add_sample({.offset = 3, .length = 4, .object = object});
  const auto bytes = builder.finish();
  ASSERT_OK(bytes);
  EXPECT_EQ(header_of(*bytes).version, 3U);
  const auto manifest = Manifest::from_bytes(*bytes);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->forms(), 1U);
  EXPECT_TRUE(std::ranges::equal(manifest->form(0), encode_form(array_of(chunks))));
  EXPECT_TRUE(manifest->form(1).empty());
  EXPECT_EQ(manifest->extent(0).bytes, 2U);
  EXPECT_EQ(manifest->extent(1).offset, 6U);
  EXPECT_EQ(manifest->extent(1).bytes, 4U);
  EXPECT_EQ(manifest->extent(2).bytes, 4U);
  EXPECT_EQ(manifest->largest_sample(), 500U);
  EXPECT_EQ(manifest->largest_extent(), 4U);

  ManifestBuilder copy(manifest->facts());
  copy.resize_samples(3);
  copy.copy_forms(*manifest);
  copy.add_object("a", 10000);
  for (uint64_t i = 0; i < 3; ++i) copy.set_sample(i, manifest->sample(i));
  const auto copied = copy.finish();
  ASSERT_OK(copied);
  EXPECT_EQ(*copied, *bytes);
}

TEST(StoredForm, WithoutFormsOlderProgramsCanReadTheManifest) {
  ManifestBuilder builder(ManifestFacts{});
  builder.add_object("a", 10);
  builder.add_sample({.length = 10});
  const auto bytes = builder.finish();
  ASSERT_OK(bytes);
  EXPECT_EQ(header_of(*bytes).version, 2U);
  EXPECT_EQ(header_of(*bytes).sections, 6U);
}

}  // namespace
}  // namespace penstock
