#include "benchmarks/read/block_manifest.hpp"

#include <vector>

#include "datagen/corpus/corpus_samples.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using Objects = std::vector<Entry>;

TEST(BlockManifest, CutsWholeBlocksFromEveryObject) {
  const auto manifest = block_manifest(Objects{{"a", 10'000}, {"b", 4'095}, {"c", 4'096}, {"d", 0}}, 4'096);
  ASSERT_OK(manifest);
  ASSERT_EQ(manifest->samples(), 3U);
  EXPECT_EQ(manifest->objects(), 4U);
  EXPECT_FALSE(manifest->one_object_per_sample());
  EXPECT_EQ(manifest->sample(1).offset, 4'096U);
  EXPECT_EQ(manifest->sample(1).length, 4'096U);
  EXPECT_EQ(manifest->sample(2).object, 2U);
  EXPECT_EQ(manifest->sample(2).offset, 0U);
  EXPECT_EQ(rest_of_blocks(*manifest).objects, 2U);
  EXPECT_EQ(rest_of_blocks(*manifest).bytes, 10'000U - 8'192 + 4'095);
}

TEST(BlockManifest, MakesEachObjectOneSampleIfTheBlockSizeIsZero) {
  const auto manifest = block_manifest(Objects{{"a", 10}, {"b", 20}}, 0);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->samples(), 2U);
  EXPECT_TRUE(manifest->one_object_per_sample());
  EXPECT_EQ(rest_of_blocks(*manifest).objects, 0U);
  EXPECT_EQ(rest_of_blocks(*manifest).bytes, 0U);
}

TEST(BlockManifest, FailsIfNoObjectIsLargeEnough) {
  const auto whole_objects = block_manifest(Objects{{"a", 10}, {"b", 20}}, 0);
  ASSERT_OK(whole_objects);
  EXPECT_TRUE(fails_with(Errc::not_found, block_manifest(*whole_objects, 21), "largest"));
  EXPECT_OK(block_manifest(*whole_objects, 20));
}

}  // namespace
}  // namespace penstock
