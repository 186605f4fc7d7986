// Tests the locks of a run: only one process works on it, and a process that gets no lock changes nothing.
#include "miniapps/checkpoint/run_stores.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class Runs : public testing::Test {
 protected:
  Tier tier(const std::string& name) const {
    return open_tier(name + "=posix:" + (dir_.path() / name).string(), kNoNamedTiers).value();
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(dir_.path() / name); }

  ScratchFolder dir_;
  const Tier slow_ = tier("slow");
  const Tier fast_ = tier("fast");
};

TEST_F(Runs, AreLockedInBothStores) {
  const auto first = open_and_lock_run("run", slow_, &fast_);
  ASSERT_OK(first);
  EXPECT_EQ(first->locks.size(), 4U);
  EXPECT_EQ(*first->fast->recorded_slow_store("run"), first->slow->uuid());
  EXPECT_ERRC(Errc::busy, open_and_lock_run("run", slow_, &fast_), "run 'run'");
  EXPECT_ERRC(Errc::busy, open_and_lock_run("run", slow_, nullptr), "run 'run'");
  for (const char* what : {"save", "drain"}) {
    EXPECT_ERRC(Errc::busy, first->slow->lock_run("run", what));
    EXPECT_ERRC(Errc::busy, first->fast->lock_run("run", what));
  }
  EXPECT_OK(open_and_lock_run("another", slow_, &fast_));
  const auto seen = open_run(slow_, &fast_);
  ASSERT_OK(seen);
  EXPECT_TRUE(seen->locks.empty());
  EXPECT_EQ(seen->slow->uuid(), first->slow->uuid());
}

// A drain takes the lock of the fast store before the lock of the slow store.
TEST_F(Runs, ChangeNothingIfALockIsBusy) {
  const std::string litter = "tmp/run.save." + std::string(32, 'a');
  const auto slow = CheckpointStore::open_or_make(slow_, StoreRole::slow).value();
  const auto fast = CheckpointStore::open_or_make(fast_, StoreRole::fast).value();
  ASSERT_OK(slow_.backend->names().make_folders(litter));
  for (CheckpointStore* const store : {slow.get(), fast.get()}) {
    for (const char* what : {"save", "drain"}) {
      SCOPED_TRACE(store->tier().name + " " + what);
      const auto lock = store->lock_run("run", what);
      ASSERT_OK(lock);
      EXPECT_ERRC(Errc::busy, open_and_lock_run("run", slow_, &fast_));
      EXPECT_TRUE(is_there("slow/" + litter)) << "nothing is swept while another process works";
      EXPECT_FALSE(fast->recorded_slow_store("run")->has_value()) << "nothing is noted either";
    }
  }
  {
    const Tier other = tier("other");
    const auto lock = fast->lock_run("run", "drain");
    ASSERT_OK(lock);
    EXPECT_ERRC(Errc::busy, open_and_lock_run("run", other, &fast_));
    EXPECT_FALSE(is_there("other")) << "no store is made for a run that somebody has";
  }
  EXPECT_OK(open_and_lock_run("run", slow_, &fast_));
  EXPECT_FALSE(is_there("slow/" + litter));
}

// Every process takes the fast store's lock first and never waits. So of two processes exactly one gets the
// run.
TEST_F(Runs, GoToExactlyOneOfTwoProcesses) {
  const auto slow = CheckpointStore::open_or_make(slow_, StoreRole::slow).value();
  const auto fast = CheckpointStore::open_or_make(fast_, StoreRole::fast).value();
  for (int round = 0; round < 200; ++round) {
    std::barrier meet(2);
    bool trains = false;
    bool drains = false;
    {
      const std::jthread training([&] {
        meet.arrive_and_wait();
        const auto taken = open_and_lock_run("run", slow_, &fast_);
        trains = taken.ok();
        meet.arrive_and_wait();
      });
      const std::jthread drain([&] {  // like `penstock checkpoint drain`
        meet.arrive_and_wait();
        const auto on_fast = fast->lock_run("run", "drain");
        const auto on_slow =
            on_fast.ok() ? slow->lock_run("run", "drain") : Result<std::unique_ptr<Lock>>(on_fast.error());
        drains = on_slow.ok();
        meet.arrive_and_wait();
      });
    }
    ASSERT_NE(trains, drains) << (trains ? "both have it" : "neither has it") << " in round " << round;
  }
}

}  // namespace
}  // namespace penstock
