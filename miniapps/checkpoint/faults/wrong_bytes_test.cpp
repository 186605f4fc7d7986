// Rows 28 to 36 and 43 of the fault matrix: wrong, torn, missing or hostile bytes on either tier.
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"
#include "miniapps/checkpoint/faults/world_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

class WrongBytes : public FaultMatrix {
 protected:
  void SetUp() override {
    FaultMatrix::SetUp();
    policy_.keep_on_fast = 5;
  }
  // Saves these steps, durable on both tiers.
  void save(std::vector<uint64_t> steps) {
    const Outcome outcome = train({.steps = std::move(steps)});
    ASSERT_TRUE(outcome.all_succeeded()) << outcome.errors_text();
  }
  static void write_file(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  // Replaces a word, and computes the checksum again. The checksum is the last nine bytes: eight digits and a
  // newline.
  static std::string resealed(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    if (at == std::string::npos) return text;
    text.replace(at, from.size(), to);
    const size_t body = text.find_last_of('\n', text.size() - 2) + 1;
    const uint32_t crc = crc32c(std::as_bytes(std::span(text).first(body)));
    std::ostringstream seal;
    seal << std::hex << std::setw(8) << std::setfill('0') << crc << "\n";
    return text.replace(text.size() - 9, 9, seal.str());
  }
  static std::string read_file(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
};

TEST_F(WrongBytes, Row28BitFlipOnFast) {
  save({20, 40});
  overwrite(file_of(fast_root(), 40, ranks() - 1), 4'200'000, "!");
  const Restart chosen = restart(true);
  ASSERT_NE(chosen.store, nullptr);
  EXPECT_EQ(chosen.manifest.id.step, 40U) << "the slow copy of the same step";
  EXPECT_EQ(chosen.store->role(), StoreRole::slow);
  expect_bytes(chosen);
  ASSERT_EQ(chosen.rejected.size(), 1U);
  EXPECT_EQ(whole_steps(fast()), std::vector<uint64_t>{20});
  EXPECT_FALSE(std::filesystem::is_empty(fast_root() / "quarantine"));
}

TEST_F(WrongBytes, Row29BitFlipBeforeDrain) {
  train({.steps = {20, 40}, .slow_options = ",fail=publish/drain.:eio@1.0", .finalize = 1ns});
  overwrite(file_of(fast_root(), 40, 0), 17, "!");
  const Outcome outcome = train({.steps = {}});
  EXPECT_FALSE(outcome.finalized.ok()) << "the trainer is told";
  EXPECT_EQ(whole_steps(slow()), std::vector<uint64_t>{20}) << "never durable";
  EXPECT_EQ(outcome.counts.quarantined, 1U);
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(WrongBytes, Row30BitFlipOnSlowAndFastGone) {
  save({20, 40});
  overwrite(file_of(slow_root(), 40, 0), 4'300'000, "!");
  wipe_fast();
  EXPECT_EQ(restart_step(), 20U) << "the older step";
}

TEST_F(WrongBytes, Row31TornData) {
  for (const std::string torn : {"cut", "zeros", "stale"}) {
    SCOPED_TRACE(torn);
    reset_tiers();
    save({20, 40});
    for (const auto& store : {slow_root(), fast_root()}) {
      const std::filesystem::path file = file_of(store, 40, 0);
      if (torn == "cut") std::filesystem::resize_file(file, bytes_ - 5000);
      if (torn == "zeros") overwrite(file, bytes_ - 5000, std::string(5000, '\0'));
      if (torn == "stale")
        overwrite(file, bytes_ - 5000, read_file(file_of(store, 20, 0)).substr(bytes_ - 5000));
    }
    EXPECT_EQ(restart_step(), 20U);
  }
}

TEST_F(WrongBytes, Row32TornManifest) {
  const auto tear = [&](const std::string& torn, uint64_t step) {
    for (const auto& store : {slow_root(), fast_root()}) {
      const std::filesystem::path file = checkpoint(store, step) / "MANIFEST";
      const std::string text = read_file(file);
      if (torn == "cut") write_file(file, text.substr(0, text.size() / 2));
      if (torn == "empty") write_file(file, "");
      if (torn == "future") write_file(file, resealed(text, "\"format\": 1", "\"format\": 9"));
      if (torn == "gone") std::filesystem::remove(file);
    }
  };
  for (const std::string torn : {"cut", "empty", "gone", "future"}) {
    SCOPED_TRACE(torn);
    reset_tiers();
    save({20, 40});
    tear(torn, 40);
    EXPECT_EQ(restart_step(), 20U);
    tear(torn, 20);
    const Result<Restart> chosen = try_restart();
    if (torn == "future") {
      ASSERT_FALSE(chosen.ok()) << "there is one, for another version to read";
      EXPECT_EQ(chosen.error().code, Errc::unsupported);
      continue;
    }
    ASSERT_TRUE(chosen.ok()) << chosen.error().message();
    EXPECT_EQ(chosen->store, nullptr);
    EXPECT_EQ(chosen->rejected.size(), 4U) << "an empty store would have rejected nothing";
  }
}

TEST_F(WrongBytes, Row33LatestIsAHint) {
  save({20, 40});
  for (const std::string text : {"", "000000000020.0", "garbage\n", "../../etc/passwd"}) {
    for (const auto& store : {slow_root(), fast_root()}) write_file(store / "LATEST", text);
    EXPECT_EQ(restart_step(), 40U);
  }
  for (const auto& store : {slow_root(), fast_root()}) std::filesystem::remove(store / "LATEST");
  EXPECT_EQ(restart_step(), 40U);
}

TEST_F(WrongBytes, Row34MissingRankFile) {
  save({20, 40});
  for (const auto& store : {slow_root(), fast_root()})
    std::filesystem::remove(file_of(store, 40, ranks() - 1));
  EXPECT_EQ(restart_step(), 20U);
  if (ranks() == 1) return;
  const Outcome outcome = train({.steps = {60}, .fast_options = ",fail=publish/part-1:eio@#1"});
  ASSERT_EQ(outcome.saves.size(), 1U);
  EXPECT_FALSE(outcome.saves[0].ok()) << "a rank's part is not there: nothing is published";
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(WrongBytes, Row35RanksHoldDifferentSteps) {
  save({20, 40, 60});
  for (const auto& store : {slow_root(), fast_root()}) {
    std::filesystem::remove(file_of(store, 60, 0));
    std::filesystem::remove(file_of(store, 40, ranks() - 1));
  }
  EXPECT_EQ(restart_step(), 20U) << "the greatest that all have";
}

TEST_F(WrongBytes, Row36TwoTrainingsOfOneRun) {
  const Tier slow_tier = slow();
  const Tier fast_tier = fast();
  RankThreads::run(ranks(), [&](Communicator& all) {
    const auto first = Checkpointer::open(policy_, slow_tier, &fast_tier, all);
    ASSERT_TRUE(first.ok());
    const auto second = Checkpointer::open(policy_, slow_tier, nullptr, all);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Errc::busy);
  });
}

TEST_F(WrongBytes, Row43HostileManifest) {
  for (const std::string name : {"../../../../secret", "/etc/passwd", "..", "a/b"}) {
    SCOPED_TRACE(name);
    reset_tiers();
    save({20, 40});
    for (const bool on_fast : {false, true}) {
      const Tier tier = on_fast ? fast() : slow();
      CheckpointManifest manifest =
          CheckpointStore::open(tier).value()->manifest(policy_.run, {40, 0}).value();
      manifest.files[0].name = name;
      write_file(checkpoint(on_fast ? fast_root() : slow_root(), 40) / "MANIFEST", serialize(manifest));
    }
    EXPECT_EQ(restart_step(), 20U);
  }
  reset_tiers();
  save({20, 40});
  for (const auto& store : {slow_root(), fast_root()}) {
    const std::filesystem::path file = file_of(store, 40, 0);
    std::filesystem::rename(file, store / "elsewhere");
    std::filesystem::create_symlink(store / "elsewhere", file);
  }
  EXPECT_EQ(restart_step(), 20U) << "a link out of the checkpoint";
}

}  // namespace
}  // namespace penstock
