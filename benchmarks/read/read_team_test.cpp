#include "benchmarks/read/read_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kTeamFiles = 60;

// The engine of one rank. Each rank has its own copy of the same corpus.
struct TeamBench {
  ScriptedBackend backend;
  Manifest manifest = scripted_files(backend, kTeamFiles);
  SampleList samples = corpus_samples(manifest).value();
  ReadOptions options;
  std::unique_ptr<ReadEngine> engine;

  explicit TeamBench(const ReadTeam& team, unsigned threads = 2, unsigned depth = 1)
      : options{.threads = {threads}, .depth = depth},
        engine(ReadEngine::make(
                   {.manifest = &manifest, .samples = &samples, .backend = &backend, .share = team.share(0)},
                   options)
                   .value()) {}
};

TEST(ReadTeam, PassesAreSharedAndFiguresJoined) {
  RankThreads::run(3, [](Communicator& ranks) {
    ReadTeam team(ranks);
    TeamBench bench(team);
    const RunTally tally = team.run({.threads = 2, .max_passes = 2, .end = Passes{1h}},
                                    [&](const ReadSpec& spec) { return bench.engine->run(spec); });
    EXPECT_FALSE(tally.failure);
    EXPECT_EQ(tally.samples, 2 * kTeamFiles);
    EXPECT_EQ(tally.bytes, 2 * bench.manifest.payload_bytes());
    ASSERT_EQ(tally.ranks.size(), 3U);
    EXPECT_EQ(tally.ranks[0].bytes + tally.ranks[1].bytes + tally.ranks[2].bytes, tally.bytes);
    for (const RankFigures& rank : tally.ranks) EXPECT_LE(rank.wall_s, tally.wall_s);
    EXPECT_EQ(tally.stonewall_bytes, 0U);
  });
}

// Of two ranks with different speed, the slow one has read less at the stonewall. It continues until it has
// read as much as the other.
TEST(ReadTeam, TheStonewallIsWornOut) {
  for (const unsigned depth : {1U, 4U}) {
    std::array<std::atomic<uint64_t>, 2> taken{};
    RankThreads::run(2, [&](Communicator& ranks) {
      ReadTeam team(ranks);
      TeamBench bench(team, 2, depth);
      ReadSpec spec{.threads = 2};
      spec.end = Stonewall{30ms};
      RunTally own;
      const RunTally tally = team.run(spec, [&](ReadSpec mine) {
        mine.at_stonewall = [&, exchange = mine.at_stonewall](uint64_t here) {
          const uint64_t reported = here + (ranks.root() ? 1000 : 0);
          taken[size_t(ranks.rank())] = reported;
          return exchange(reported);
        };
        own = bench.engine->run(mine);
        return own;
      });
      EXPECT_FALSE(tally.failure);
      const uint64_t most = std::max(taken[0].load(), taken[1].load());
      EXPECT_EQ(own.samples, most) << "rank " << ranks.rank();
      EXPECT_LE(own.stonewall_bytes, own.bytes);
      EXPECT_LE(tally.stonewall_s, tally.wall_s);
      EXPECT_LT(tally.stonewall_bytes, tally.bytes);
    });
  }
}

TEST(ReadTeam, OneRankHasNothingToWearOut) {
  const auto single = single_process();
  ReadTeam team(*single);
  TeamBench bench(team);
  ReadSpec spec{.threads = 2};
  spec.end = Stonewall{20ms};
  const RunTally tally = team.run(spec, [&](const ReadSpec& mine) { return bench.engine->run(mine); });
  EXPECT_FALSE(tally.failure);
  EXPECT_GT(tally.samples, 0U);
  EXPECT_EQ(tally.stonewall_bytes, tally.bytes);
  EXPECT_EQ(tally.stonewall_s, tally.wall_s);
}

// If all passes end before the stonewall, nothing more is read.
TEST(ReadTeam, AWallThatIsNotReachedChangesNothing) {
  RankThreads::run(2, [](Communicator& ranks) {
    ReadTeam team(ranks);
    TeamBench bench(team);
    ReadSpec spec{.threads = 2, .max_passes = 1};
    spec.end = Stonewall{1h};
    const RunTally tally = team.run(spec, [&](const ReadSpec& mine) { return bench.engine->run(mine); });
    EXPECT_FALSE(tally.failure);
    EXPECT_EQ(tally.samples, kTeamFiles);
    EXPECT_EQ(tally.stonewall_bytes, tally.bytes);
  });
}

TEST(ReadTeam, AFailureOfOneIsTheFailureOfAllAndNoRankWaits) {
  RankThreads::run(2, [](Communicator& ranks) {
    ReadTeam team(ranks);
    TeamBench bench(team);
    ReadSpec spec{.threads = 2};
    spec.end = Stonewall{20ms};
    if (!ranks.root()) bench.backend.fail_on(std::string(bench.samples.name(kTeamFiles - 1)));
    const RunTally tally = team.run(spec, [&](const ReadSpec& mine) { return bench.engine->run(mine); });
    ASSERT_TRUE(tally.failure);
    EXPECT_EQ(tally.failure->code, Errc::io);
  });
}

}  // namespace
}  // namespace penstock
