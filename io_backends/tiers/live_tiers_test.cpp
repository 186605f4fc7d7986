#include "io_backends/tiers/live_tiers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

Tier memory_tier(const std::string& name) {
  return *open_tier(name + "=mem:x", kNoNamedTiers);
}

void write_bytes(Tier& tier, size_t count) {
  const std::vector<std::byte> bytes(count);
  ASSERT_TRUE(put_object(*tier.backend, "object" + std::to_string(count), bytes, Durability::visible).ok());
}

TEST(LiveTiers, ShowsWhatTheBackEndHasCountedAndWhatTheCommandSays) {
  LiveTiers live;
  Tier tier = memory_tier("fast");
  std::shared_ptr<void> token = live.add(tier);
  write_bytes(tier, 1000);
  tier.activity->raise_operations(7);
  tier.activity->raise_operations(5);
  tier.activity->errors = 2;
  tier.activity->repeat = 3;
  const Tier moved = std::move(tier);  // a vector of tiers may grow
  const std::vector<LiveTiers::Figures> figures = live.figures();
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].tier, "fast");
  EXPECT_EQ(figures[0].bytes.written, 1000U);
  EXPECT_EQ(figures[0].bytes.read, 0U);
  EXPECT_EQ(figures[0].operations, 7U) << "a count never becomes smaller";
  EXPECT_EQ(figures[0].errors, 2U);
  EXPECT_EQ(figures[0].repeat, 3U);
  token.reset();  // before the back end, which `moved` has now
}

TEST(LiveTiers, KeepsTheLastFiguresOfATierThatIsGone) {
  LiveTiers live;
  {
    Tier tier = memory_tier("fast");
    const std::shared_ptr<void> token = live.add(tier);
    write_bytes(tier, 10);
  }
  ASSERT_EQ(live.figures().size(), 1U);
  EXPECT_EQ(live.figures()[0].bytes.written, 10U);
}

TEST(LiveTiers, HasOneEntryForEachName) {
  LiveTiers live;
  Tier one = memory_tier("fast");
  Tier same_name = memory_tier("fast");
  Tier other = memory_tier("slow");
  const std::shared_ptr<void> tokens[] = {live.add(one), live.add(same_name), live.add(other)};
  EXPECT_EQ(live.add(one), nullptr) << "it is there already";
  write_bytes(one, 10);
  write_bytes(same_name, 20);
  ASSERT_EQ(live.figures().size(), 2U);
  EXPECT_EQ(live.figures()[0].bytes.written, 30U);
  EXPECT_EQ(live.figures()[1].tier, "slow");
}

TEST(LiveTiers, ATierWithoutBackEndHasTheBytesOfOtherProcesses) {
  LiveTiers live;
  Tier tier;
  tier.name = "swept";
  const std::shared_ptr<void> token = live.add(tier);
  tier.activity->foreign_read_bytes += 42;
  ASSERT_EQ(live.figures().size(), 1U);
  EXPECT_EQ(live.figures()[0].bytes.read, 42U);
}

}  // namespace
}  // namespace penstock
