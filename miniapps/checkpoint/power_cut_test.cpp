// Tests stores with kills and power cuts at every operation. Afterwards every acknowledged checkpoint exists,
// and every listed one is whole. If a required sync is left out, the test must notice.
#include <sys/mman.h>

#include <csignal>

#include "io_backends/core/random.hpp"
#include "io_backends/testing/forgetful_testing.hpp"
#include "miniapps/checkpoint/power_cut_trial_testing.hpp"

namespace penstock {
namespace {

// --- A simulated machine, which loses at a power cut everything that a file system may lose.

class InMemory : public testing::Test {
 protected:
  struct Trial {
    ForgetfulMachine machine{};
    Acknowledged acknowledged{};

    Tiers tiers(const Mutant& mutant) {
      const auto tier = [&](const char* name) {
        Tier made;
        made.name = name;
        made.backend_name = "forgetful";
        made.backend = lying(machine.backend(name), mutant.skips);
        return made;
      };
      return {tier("fast"), tier("slow")};
    }
  };

  static uint64_t operations(const Mutant& mutant = {}) {
    Trial trial;
    EXPECT_OK(train(trial.tiers(mutant), mutant, trial.acknowledged));
    EXPECT_TRUE(trial.acknowledged.durable.at(kSteps - 1) && trial.acknowledged.fast.at(kSteps));
    return trial.machine.operations();
  }
  // Trains until the power cut at operation n, and starts the machine again with what is left.
  static void train_until(Trial& trial, uint64_t n, const Mutant& mutant, Kept kept, uint64_t seed) {
    trial.machine.cut_at(n);
    static_cast<void>(train(trial.tiers(mutant), mutant, trial.acknowledged).ok());
    trial.machine.power_on(kept, seed);
  }
  static std::string at(uint64_t n, uint64_t seed = 0) {
    return "operation " + std::to_string(n) + (seed == 0 ? "" : ", seed " + std::to_string(seed));
  }
  static Sweep sweep(const Mutant& mutant, Kept kept, uint64_t seeds) {
    Sweep sweep;
    const uint64_t last = operations(mutant) + 1;
    for (uint64_t n = 1; n <= last; ++n) {
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        Trial trial;
        train_until(trial, n, mutant, kept, seed);
        sweep.add(at(n, seeds == 1 ? 0 : seed), check(trial.tiers({}), trial.acknowledged));
      }
    }
    return sweep;
  }
};

TEST_F(InMemory, AcknowledgedCheckpointsSurviveEveryKill) {
  const Sweep swept = sweep({}, Kept::all, 1);
  swept.say("killed");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
}

TEST_F(InMemory, AcknowledgedCheckpointsSurviveEveryPowerCut) {
  const Sweep swept = sweep({}, Kept::none, 1);
  swept.say("cut, nothing else kept");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
}

TEST_F(InMemory, AcknowledgedCheckpointsSurvivePartialPowerCuts) {
  const Sweep swept = sweep({}, Kept::some, full() ? 200 : 5);
  swept.say("cut, some kept");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
}

// The process that recovers did not write the files that it finds, so they may not be on the disk yet.
TEST_F(InMemory, AcknowledgedAfterAKillSurvivesALaterPowerCut) {
  Sweep swept;
  const uint64_t last = operations() + 1;
  for (uint64_t n = 1; n <= last; ++n) {
    Trial trial;
    train_until(trial, n, {}, Kept::all, 0);
    const auto recovered = recover(trial.tiers({}), trial.acknowledged);
    if (!recovered) swept.add(at(n), {"does not recover: " + recovered.error().message()});
    trial.machine.power_on(Kept::none);
    swept.add(at(n), check(trial.tiers({}), trial.acknowledged));
  }
  swept.say("killed, recovered, cut");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
}

TEST_F(InMemory, RecoverySurvivesRepeatedPowerCuts) {
  Sweep swept;
  const uint64_t last = operations() + 1;
  const uint64_t rounds = full() ? 60 : 2;
  for (uint64_t n = 1; n <= last; ++n) {
    for (uint64_t round = 1; round <= rounds; ++round) {
      const RandomStream random = RandomStream(round, "recovery").substream(n);
      Trial trial;
      train_until(trial, n, {}, random.below(0, 2) == 0 ? Kept::all : Kept::some, round);
      for (uint64_t again = 1; again <= 5; ++again) {
        trial.machine.cut_at(1 + random.below(again, 80));
        static_cast<void>(recover(trial.tiers({}), trial.acknowledged).ok());
        trial.machine.power_on(random.below(again + 10, 2) == 0 ? Kept::all : Kept::some, round + again);
      }
      swept.add(at(n, round), check(trial.tiers({}), trial.acknowledged));
      trial.machine.power_on(Kept::none);
      swept.add(at(n, round) + ", then cut", check(trial.tiers({}), trial.acknowledged));
    }
  }
  swept.say("cut, recovery cut five times");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
}

TEST_F(InMemory, TestsNoticeEveryOmittedSync) {
  for (const Mutant& mutant : mutants()) {
    const Sweep swept = sweep(mutant, Kept::none, 1);
    swept.say(mutant.name);
    EXPECT_GT(swept.bad, 0U) << mutant.name << " does no harm";
  }
}

// --- A real process that kills itself.

TEST(Killed, RealProcessKeepsAcknowledgedCheckpointsAtEveryKill) {
  void* const shared =
      ::mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const acknowledged = static_cast<Acknowledged*>(shared);
  Sweep swept;
  for (bool ended = false; !ended;) {
    *acknowledged = {};
    const ScratchFolder scratch;
    const auto tiers = [&](PowerCut* power) -> Result<Tiers> {
      const std::string path = "=posix:" + scratch.path().string() + "/";
      PENSTOCK_ASSIGN(Tier fast, open_tier("fast" + path + "fast", kNoNamedTiers));
      PENSTOCK_ASSIGN(Tier slow, open_tier("slow" + path + "slow", kNoNamedTiers));
      for (Tier* tier : {&fast, &slow}) {
        // A kill loses no data of the kernel, so syncs are skipped to save time.
        tier->backend = lying(std::move(tier->backend), [](Synced, std::string_view) { return true; });
        if (power != nullptr) tier->backend = cut_off(std::move(tier->backend), *power);
      }
      return Tiers{std::move(fast), std::move(slow)};
    };
    const pid_t child = ::fork();
    if (child == 0) {
      PowerCut power(swept.points + 1, [] { ::raise(SIGKILL); });
      const auto its_own = tiers(&power);
      const bool good = its_own.ok() && train(*its_own, {}, *acknowledged).ok();
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ended = WIFEXITED(status);
    ASSERT_TRUE(ended ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL) << status;
    const auto after = tiers(nullptr);
    ASSERT_OK(after);
    swept.add("operation " + std::to_string(swept.points + 1), check(*after, *acknowledged));
  }
  swept.say("processes killed");
  EXPECT_EQ(swept.bad, 0U) << swept.first;
  EXPECT_GT(swept.points, 50U);
  EXPECT_TRUE(acknowledged->durable.at(kSteps - 1) && acknowledged->fast.at(kSteps));
  ::munmap(shared, sizeof(Acknowledged));
}

}  // namespace
}  // namespace penstock
