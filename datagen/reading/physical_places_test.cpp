#include "datagen/reading/physical_places.hpp"

#include <algorithm>

#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

Result<void> put(Backend& backend, std::string_view name, size_t bytes) {
  PENSTOCK_ASSIGN(const auto writer, backend.create(name, bytes));
  PENSTOCK_TRY(writer->append(pattern(bytes)));
  return writer->publish(Durability::file);
}

TEST(DeviceOrder, RangesOfAFileLieBehindOneAnother) {
  const ScratchFolder scratch;
  const auto tier = open_tier("t=posix:" + scratch.path().string(), kNoNamedTiers);
  ASSERT_OK(tier);
  SampleList samples;
  for (const std::string_view name : {"a", "b/c"}) {
    ASSERT_OK(put(*tier->backend, name, 65'536));
    const uint32_t object = samples.add_object(name);
    for (const uint64_t offset : {0U, 4096U, 4097U}) samples.add_sample({offset, 100, object});
  }
  const auto places = device_order(samples, *tier->backend);
  ASSERT_OK(places);
  ASSERT_EQ(places->sample_keys.size(), 6U);
  EXPECT_NE(places->sample_keys[0], places->sample_keys[3]);
  for (const size_t first : {0U, 3U}) {
    const uint64_t* const of = places->sample_keys.data() + first;
    if (places->key_kind == "inode") {
      EXPECT_EQ(of[0], of[2]);
      continue;
    }
    EXPECT_EQ(places->key_kind, "extent");
    EXPECT_EQ(of[1] + 1, of[2]) << "within a block";
    EXPECT_LT(of[0], of[2]) << "64 KiB in one piece, as far as a file system has it";
  }
}

TEST(DeviceOrder, AreOfFilesAlone) {
  const auto tier = open_tier("t=mem:places", kNoNamedTiers);
  ASSERT_OK(tier);
  EXPECT_ERRC(Errc::unsupported, device_order(SampleList{}, *tier->backend));
}

TEST(DeviceOrder, NameTheObjectThatIsNotThere) {
  const ScratchFolder scratch;
  const auto tier = open_tier("t=posix:" + scratch.path().string(), kNoNamedTiers);
  ASSERT_OK(tier);
  SampleList samples;
  samples.add("vanished", 10);
  const auto places = device_order(samples, *tier->backend);
  EXPECT_TRUE(fails_with(Errc::not_found, places, "vanished"));
}

}  // namespace
}  // namespace penstock
