#include "benchmarks/probe/metadata_probe.hpp"

#include <csignal>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

class MetadataProbeTest : public testing::Test {
 protected:
  static Tier tier(const std::string& options = "") {
    static int count = 0;
    auto opened = open_tier("t=mem:metadata" + std::to_string(count++) + options, kNoNamedTiers);
    EXPECT_OK(opened);
    return *std::move(opened);
  }
  static ReadSpec spec(std::chrono::nanoseconds deadline) {
    ReadSpec spec;
    spec.end = Duration{deadline};
    return spec;
  }
  static constexpr auto kLongLimit = 1h;
  static constexpr auto kShortestLimit = 1ns;
};

TEST_F(MetadataProbeTest, DoesWhatItCounts) {
  const Tier memory_tier = tier();
  MetadataProbe probe(*memory_tier.backend, "probe", 2);
  EXPECT_EQ(probe.create(spec(kLongLimit)).samples, 2 * MetadataProbe::kObjectsPerClient);
  EXPECT_OK(memory_tier.backend->names().stat("probe/001/01023"));
  EXPECT_EQ(probe.stat(spec(kShortestLimit)).samples, 2U) << "one of each client, and the time is over";
  EXPECT_EQ(probe.open(spec(kShortestLimit)).samples, 2U);
  EXPECT_EQ(probe.list(spec(kShortestLimit)).samples, 2 * MetadataProbe::kObjectsPerClient);
  EXPECT_EQ(probe.remove(spec(kShortestLimit)).samples, 2 * MetadataProbe::kObjectsPerClient)
      << "whatever the time";
  EXPECT_ERRC(Errc::not_found, memory_tier.backend->names().stat("probe/001/01023"));
}

TEST_F(MetadataProbeTest, ASlowTierIsLeftWithFewerObjects) {
  const Tier memory_tier = tier(",latency=1ms");
  MetadataProbe probe(*memory_tier.backend, "probe", 1);
  const RunTally created = probe.create(spec(10ms));
  EXPECT_GE(created.samples, 1U);
  EXPECT_LT(created.samples, MetadataProbe::kObjectsPerClient);
  EXPECT_GE(created.wall_s, 0.01);
  EXPECT_EQ(probe.list(spec(kShortestLimit)).samples, created.samples);
  EXPECT_EQ(probe.remove(spec(kShortestLimit)).samples, created.samples);
}

TEST_F(MetadataProbeTest, FaultsAndInterruptsAreFailures) {
  const Tier memory_tier = tier(",fail=names:eio@#3..");
  MetadataProbe probe(*memory_tier.backend, "probe", 1);
  EXPECT_FALSE(probe.create(spec(kShortestLimit)).failure);
  const RunTally failed = probe.stat(spec(kLongLimit));
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->code, Errc::io);
  simulate_interrupt(SIGINT);
  const RunTally stopped = probe.open(spec(kLongLimit));
  simulate_interrupt(0);
  ASSERT_TRUE(stopped.failure);
  EXPECT_EQ(stopped.failure->code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
