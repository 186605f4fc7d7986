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
  static constexpr auto kLong = 1h;
  static constexpr auto kOnce = 1ns;
};

TEST_F(MetadataProbeTest, DoesWhatItCounts) {
  const Tier there = tier();
  MetadataProbe probe(*there.backend, "probe", 2);
  EXPECT_EQ(probe.create(spec(kLong)).samples, 2 * MetadataProbe::kObjectsPerClient);
  EXPECT_OK(there.backend->names().stat("probe/001/01023"));
  EXPECT_EQ(probe.stat(spec(kOnce)).samples, 2U) << "one of each client, and the time is over";
  EXPECT_EQ(probe.open(spec(kOnce)).samples, 2U);
  EXPECT_EQ(probe.list(spec(kOnce)).samples, 2 * MetadataProbe::kObjectsPerClient);
  EXPECT_EQ(probe.remove(spec(kOnce)).samples, 2 * MetadataProbe::kObjectsPerClient) << "whatever the time";
  EXPECT_ERRC(Errc::not_found, there.backend->names().stat("probe/001/01023"));
}

TEST_F(MetadataProbeTest, ASlowTierIsLeftWithFewerObjects) {
  const Tier there = tier(",latency=1ms");
  MetadataProbe probe(*there.backend, "probe", 1);
  const RunTally made = probe.create(spec(10ms));
  EXPECT_GE(made.samples, 1U);
  EXPECT_LT(made.samples, MetadataProbe::kObjectsPerClient);
  EXPECT_GE(made.wall_s, 0.01);
  EXPECT_EQ(probe.list(spec(kOnce)).samples, made.samples);
  EXPECT_EQ(probe.remove(spec(kOnce)).samples, made.samples);
}

TEST_F(MetadataProbeTest, FaultsAndInterruptsAreFailures) {
  const Tier there = tier(",fail=names:eio@#3..");
  MetadataProbe probe(*there.backend, "probe", 1);
  EXPECT_FALSE(probe.create(spec(kOnce)).failure);
  const RunTally failed = probe.stat(spec(kLong));
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->code, Errc::io);
  simulate_interrupt(SIGINT);
  const RunTally stopped = probe.open(spec(kLong));
  simulate_interrupt(0);
  ASSERT_TRUE(stopped.failure);
  EXPECT_EQ(stopped.failure->code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
