// Rows 19 to 22, 25, 27 and 39 to 42 of the fault matrix: failing devices, missing tiers, short calls, dying
// threads.
#include <sys/resource.h>
#include <sys/time.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "miniapps/checkpoint/faults/world_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST_F(FaultMatrix, Row19FastTierFailsAtWrite) {
  const Outcome outcome =
      train({.steps = {20, 40, 60}, .fast_options = ",fail=write/rank-0:eio@#4", .stops_at_error = false});
  ASSERT_EQ(outcome.saves.size(), 3U);
  EXPECT_TRUE(outcome.saves[0].ok());
  ASSERT_FALSE(outcome.saves[1].ok()) << "the trainer is told";
  EXPECT_EQ(outcome.saves[1].error().code, Errc::io);
  EXPECT_TRUE(outcome.saves[2].ok());
  EXPECT_EQ(last_acknowledged(Reached::durable), 60U);
  expect_nothing_lost();
  expect_nothing_lost_without_fast_tier();
}

TEST_F(FaultMatrix, Row20SlowTierFailsToSyncOnce) {
  const Outcome outcome = train({.slow_options = ",fail=sync/rank-0:eio@#1"});
  EXPECT_TRUE(outcome.all_succeeded()) << outcome.errors_text();
  EXPECT_EQ(outcome.counts.drain_failures, 1U) << "a new file is written, the failed one is not synced again";
  EXPECT_EQ(outcome.counts.drained, 1U);
  expect_nothing_lost_without_fast_tier();
}

TEST_F(FaultMatrix, Row21PublishAndRenameFail) {
  for (const std::string scope : {"publish", "names/tmp/", "sync/ckpt", "sync/tmp"}) {
    for (uint64_t n = 1; n <= 12; ++n) {
      SCOPED_TRACE(scope + " " + std::to_string(n));
      reset_tiers();
      const Outcome outcome = train({.steps = {20, 40},
                                     .fast_options = ",fail=" + scope + ":eio@#" + std::to_string(n),
                                     .stops_at_error = false});
      if (outcome.opened.ok()) {
        for (const Result<CheckpointTimes>& saved : outcome.saves) {
          if (!saved.ok()) {
            EXPECT_EQ(saved.error().code, Errc::io) << saved.error().message();
          }
        }
      }
      expect_nothing_lost();
      expect_nothing_lost_without_fast_tier();
    }
  }
}

TEST_F(FaultMatrix, Row22SlowTierIsGone) {
  const std::filesystem::path away = slow_root().parent_path() / "away";
  ASSERT_TRUE(train({.steps = {20}}).all_succeeded());
  std::filesystem::rename(slow_root(), away);
  const auto refused = [&] {
    const Outcome outcome = train({.steps = {40}});
    ASSERT_FALSE(outcome.opened.ok());
    EXPECT_NE(outcome.opened.error().what.find("mount it"), std::string::npos) << outcome.opened.error().what;
  };
  refused();
  std::filesystem::remove_all(slow_root());
  std::filesystem::create_directory(slow_root());  // the empty folder that is below a mount point
  refused();
  EXPECT_TRUE(std::filesystem::is_empty(slow_root())) << "nothing is written there";
  std::filesystem::remove(slow_root());
  std::filesystem::rename(away, slow_root());
  EXPECT_TRUE(train({.steps = {40}}).all_succeeded());
  expect_nothing_lost_without_fast_tier();
  EXPECT_EQ(last_acknowledged(Reached::durable), 40U);
}

TEST_F(FaultMatrix, Row22SlowTierIsReadOnlyForATime) {
  const Outcome outcome = train({.steps = {20, 40}, .slow_options = ",fail=open/rank-0:erofs@#1"});
  EXPECT_TRUE(outcome.all_succeeded()) << outcome.errors_text();
  EXPECT_EQ(outcome.counts.drain_failures, 1U);
  expect_nothing_lost_without_fast_tier();
}

// A timer that interrupts the process ten thousand times a second, with a handler that does not restart
// calls.
class Storm {
 public:
  Storm() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Storm() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  struct sigaction before_ {};
};

TEST_F(FaultMatrix, Row25InterruptedCalls) {
  {
    const Storm storm;
    const Outcome outcome = train({.steps = {20, 40, 60}});
    EXPECT_TRUE(outcome.all_succeeded()) << outcome.errors_text();
  }
  EXPECT_EQ(whole_steps(slow()), (std::vector<uint64_t>{20, 40, 60}));
  EXPECT_EQ(restart_step(), 60U);
  expect_nothing_lost_without_fast_tier();
}

TEST_F(FaultMatrix, Row27NoDescriptors) {
  const Outcome outcome =
      train({.steps = {20, 40}, .fast_options = ",fail=open/rank-0:emfile@#1", .stops_at_error = false});
  ASSERT_EQ(outcome.saves.size(), 2U);
  EXPECT_EQ(outcome.saves[0].error().code, Errc::exhausted);
  EXPECT_TRUE(outcome.saves[1].ok());
  reset_tiers();
  const Outcome draining = train({.slow_options = ",fail=open/rank-0:emfile@#1"});
  EXPECT_TRUE(draining.all_succeeded()) << draining.errors_text();
  EXPECT_EQ(draining.counts.drain_failures, 1U);
  expect_nothing_lost_without_fast_tier();
}

TEST_F(FaultMatrix, Row39BufferChangedAfterTheSave) {
  for (const bool snapshot : {false, true}) {
    reset_tiers();
    policy_.by_snapshot = snapshot;  // run() overwrites the saved memory as soon as save() returns
    EXPECT_TRUE(
        train({.steps = {20, 40}, .slow_options = ",fail=write/rank-0:hang=20ms@1.0"}).all_succeeded());
    EXPECT_EQ(restart_step(), 40U);
    expect_nothing_lost_without_fast_tier();
  }
}

TEST_F(FaultMatrix, Row40DrainingThreadDies) {
  const Tier slow_tier = slow();
  const Tier fast_tier = fast();
  RankThreads::run(ranks(), [&](Communicator& all) {
    const auto saver = Checkpointer::open(policy_, slow_tier, &fast_tier, all,
                                          [](const CheckpointId&, Reached level) -> Result<void> {
                                            if (level == Reached::durable)
                                              throw std::runtime_error("out of luck");
                                            return success();
                                          })
                           .value();
    const std::vector<std::byte> bytes = state(20, all.rank());
    const SaveRequest request{.step = 20, .files = {{"rank-" + std::to_string(all.rank()) + ".bin", bytes}}};
    EXPECT_TRUE(saver->save(request).ok());
    EXPECT_FALSE(saver->finalize(kLong).ok());
    const Result<CheckpointTimes> next = saver->save(request);
    ASSERT_FALSE(next.ok());
    EXPECT_NE(next.error().what.find("out of luck"), std::string::npos) << next.error().what;
  });
  expect_nothing_lost();
}

// Blocks every drain until the signal has come, then lets one checkpoint pass, and no other one until the
// grace period is over.
class GraceTier final : public BackendWrapper {
 public:
  GraceTier(std::unique_ptr<Backend> inner, std::function<bool()> one_is_durable)
      : BackendWrapper(std::move(inner)), one_is_durable_(std::move(one_is_durable)) {}
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    if (name.find(".drain.") != std::string_view::npos) {
      while (!interrupted() && std::chrono::steady_clock::now() < give_up_) std::this_thread::sleep_for(1ms);
      while (one_is_durable_() && check_interrupt().ok()) std::this_thread::sleep_for(1ms);
      PENSTOCK_TRY(check_interrupt());
    }
    return inner().create(name, bytes_hint);
  }

 private:
  const std::function<bool()> one_is_durable_;
  const std::chrono::steady_clock::time_point give_up_ = std::chrono::steady_clock::now() + 60s;
};

// ci/e2e/test_train_checkpoint.py checks that the program then ends with 143.
TEST_F(FaultMatrix, Row41GraceShorterThanTheDrain) {
  const auto one_is_durable = [this] { return last_acknowledged(Reached::durable) >= 20; };
  wrap_ = [&](Tier& tier) {
    if (tier.name == "slow")
      tier.backend = std::make_unique<GraceTier>(std::move(tier.backend), one_is_durable);
  };
  const auto since = std::chrono::steady_clock::now();
  const Outcome outcome = train(
      {.steps = {20, 40, 60},
       .after_save =
           [](uint64_t step) {
             if (step == 60) simulate_interrupt(SIGTERM);
           },
       .stop_waiting = [&] { return one_is_durable() || std::chrono::steady_clock::now() - since > kLong; }});
  simulate_interrupt(0);
  wrap_ = {};
  for (const Result<CheckpointTimes>& saved : outcome.saves)
    EXPECT_TRUE(saved.ok()) << saved.error().message();
  ASSERT_FALSE(outcome.finalized.ok());
  EXPECT_EQ(outcome.finalized.error().code, Errc::timed_out) << outcome.finalized.error().message();
  EXPECT_EQ(last_acknowledged(Reached::durable), 20U) << "the signal leaves the drain its grace, and no more";
  EXPECT_EQ(whole_steps(slow()), std::vector<uint64_t>{20});
  expect_nothing_pending(slow_root());
  EXPECT_EQ(restart_step(), 60U);
  expect_nothing_lost();
  EXPECT_EQ(last_acknowledged(Reached::durable), 60U) << "the next one went on";
  EXPECT_EQ(whole_steps(slow()), (std::vector<uint64_t>{20, 40, 60}));
}

TEST_F(FaultMatrix, Row42RepeatedStepsGetGenerations) {
  EXPECT_TRUE(train({.steps = {40, 20, 40}}).all_succeeded());
  const Restart chosen = restart();
  EXPECT_EQ(chosen.manifest.id, (CheckpointId{40, 1})) << "by step and generation, whatever clocks said";
  expect_bytes(chosen);
}

}  // namespace
}  // namespace penstock
