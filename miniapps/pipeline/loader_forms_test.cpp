// Tests that the loader gives the bytes of samples that are stored in chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/loader_testing.hpp"

namespace penstock {
namespace {

constexpr uint64_t kRows = 6;
constexpr uint64_t kColumns = 4;

// An array of bytes, 6 x 4, in chunks of 4 x 2. Byte k of row i is 10 * i + k + 1; the edge of chunks is
// 0xee.
std::vector<std::byte> chunks_of_rows() {
  std::vector<std::byte> out;
  for (const uint64_t first_row : {0U, 4U})
    for (const uint64_t first_column : {0U, 2U})
      for (uint64_t i = 0; i < 4; ++i)
        for (uint64_t k = 0; k < 2; ++k)
          out.push_back(first_row + i < kRows
                            ? static_cast<std::byte>(10 * (first_row + i) + first_column + k + 1)
                            : std::byte{0xee});
  return out;
}

Manifest manifest_of_rows() {
  std::vector<ChunkedArray::Chunk> chunks;
  for (uint64_t i = 0; i < 4; ++i) chunks.push_back(ChunkedArray::Chunk::make(8 * i, 8, 0));
  ManifestBuilder builder(ManifestFacts{
      .recipe = "scripted", .format = "hdf5", .codec = "raw", .settings = {}, .label_names = {}});
  const uint32_t object = builder.add_object("array", 32);
  const uint32_t form = builder.add_form(encode_form(
      ChunkedArray{.shape = {kRows, kColumns}, .chunk_shape = {4, 2}, .filters = {}, .chunks = chunks}));
  for (uint64_t i = 0; i < kRows; ++i)
    builder.add_sample(
        {.offset = i < 4 ? 0U : 16U, .length = 16, .object = object, .label = uint32_t(i), .form = form},
        {kColumns * i, kColumns});
  return Manifest::from_bytes(builder.finish().value()).value();
}

TEST(LoaderForms, GiveTheBytesOfEachSample) {
  const Manifest manifest = manifest_of_rows();
  for (const size_t depth : {1U, 5U}) {
    for (const bool has_transform : {true, false}) {
      ScriptedBackend scripted;
      scripted.put("array", chunks_of_rows());
      CopyingTransform copying;
      const Transform as_stored = leave_as_stored();
      BatchPool pool =
          BatchPool::make(has_transform ? BatchShape{3, kSlotBytes}
                                        : BatchShape{.samples = 3, .slot_bytes = 0, .stored_bytes = 2},
                          1)
              .value();
      LoaderSettings settings{&manifest,
                              &scripted,
                              has_transform ? &copying : &as_stored,
                              &pool,
                              Sampler(kRows, Shuffle::global, 5),
                              PlanLimits{0, 2},
                              2};
      settings.depth = depth;
      const auto loader = BatchLoader::make(settings);
      ASSERT_OK(loader);
      uint64_t samples = 0;
      while (true) {
        const Result<const Batch*> batch = (*loader)->next();
        ASSERT_OK(batch);
        if (*batch == nullptr) break;
        for (size_t i = 0; i < 3; ++i, ++samples) {
          const uint64_t row = (*batch)->index[i];
          const std::span<const std::byte> got = (*batch)->slot(i);
          EXPECT_EQ((*batch)->label[i], row);
          EXPECT_EQ((*batch)->length[i], 16U) << "what was read";
          EXPECT_EQ(got[0], static_cast<std::byte>(10 * row + 1));
          if (has_transform) {
            EXPECT_EQ(got[1], std::byte{kColumns}) << "the length that the transform got";
          } else {
            ASSERT_EQ(got.size(), kColumns);
            for (size_t k = 0; k < kColumns; ++k) EXPECT_EQ(got[k], static_cast<std::byte>(10 * row + k + 1));
          }
        }
      }
      EXPECT_EQ(samples, 2 * kRows);
    }
  }
}

}  // namespace
}  // namespace penstock
