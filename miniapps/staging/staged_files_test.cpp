#include "miniapps/staging/staged_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "io_backends/testing/testing.hpp"
#include "miniapps/staging/link_farm.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kThreads = 3;
const char* const kNames[] = {"a/1", "a/deep/2", "b/3", "top"};

std::string content(std::string_view name) {
  std::string text;
  while (text.size() < 3'000'000) text += name;
  return text;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

Tier on(const PlannedTier& planned) {
  return open_tier(planned.spec, kNoNamedTiers).value();
}

class StagedFiles : public testing::Test {
 protected:
  StagedFiles() {
    for (const char* name : kNames) write(slow() / name, content(name));
    write(slow() / "a/other", "not of the plan");
    fs::create_directories(fast());
    fs::permissions(slow() / "a/1", fs::perms(0640));
  }

  fs::path slow() const { return folder_.path() / "slow"; }
  fs::path fast() const { return folder_.path() / "fast"; }
  fs::path farm() const { return folder_.path() / "farm"; }

  StagingPlan plan(const std::string& slow_options = "", const std::string& fast_options = "") const {
    StagingPlan plan;
    plan.id = "0123456789abcdef";
    plan.should_stage = true;
    plan.capacity_bytes = 1U << 30U;
    plan.slow = {"slow", "slow=posix:" + slow().string() + slow_options, slow().string()};
    plan.fast = {"fast", "fast=posix:" + fast().string() + fast_options, fast().string()};
    for (const char* name : kNames) {
      struct stat facts {};
      EXPECT_EQ(::stat((slow() / name).c_str(), &facts), 0);
      plan.files.push_back({name, uint64_t(facts.st_size),
                            int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec});
    }
    return plan;
  }

  static Result<ApplyOutcome> apply(const StagingPlan& plan) {
    PENSTOCK_ASSIGN(StagedTiers tiers, StagedTiers::open(plan));
    PENSTOCK_ASSIGN(StagedState state, begin_state(plan, tiers));
    return apply_plan(plan, tiers, state, kThreads, false, [](std::string_view) {});
  }

  static Result<RevertOutcome> revert(const StagingPlan& plan) {
    PENSTOCK_ASSIGN(StagedTiers tiers, StagedTiers::open(plan));
    PENSTOCK_ASSIGN(const StagedState state, load_staged_state(*tiers.fast.backend, plan.id));
    return revert_plan(plan, tiers, state, kThreads, false);
  }

  // Saves the staging state after `change` has changed it, like an apply that ended or was killed.
  static void save_changed_state(const StagingPlan& plan, const std::function<void(StagedState&)>& change) {
    StagedTiers tiers = StagedTiers::open(plan).value();
    StagedState state = begin_state(plan, tiers).value();
    change(state);
    ASSERT_OK(save_staged_state(*tiers.fast.backend, state));
  }

  // Counts the copies on the fast tier, and checks that each is whole.
  size_t whole_copies() const {
    size_t count = 0;
    if (!fs::exists(fast())) return 0;
    for (const auto& entry : fs::recursive_directory_iterator(fast())) {
      const std::string name = entry.path().lexically_relative(fast()).string();
      if (!entry.is_regular_file() || name.starts_with(".penstock")) continue;
      EXPECT_EQ(text_of(entry.path()), text_of(slow() / name)) << name;
      ++count;
    }
    return count;
  }

  void expect_nothing_left() const {
    for (const auto& entry : fs::recursive_directory_iterator(fast())) ADD_FAILURE() << entry.path();
  }

  ScratchFolder folder_;
};

TEST_F(StagedFiles, AreCopiedAndTakenAway) {
  const auto applied = apply(plan());
  ASSERT_OK(applied);
  EXPECT_EQ(applied->copied, 4U);
  EXPECT_TRUE(applied->complete);
  EXPECT_EQ(whole_copies(), 4U);
  EXPECT_FALSE(fs::exists(fast() / "a/other"));

  const auto reverted = revert(plan());
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 4U);
  EXPECT_TRUE(reverted->kept.empty());
  expect_nothing_left();
  for (const char* name : kNames) EXPECT_EQ(text_of(slow() / name), content(name));
}

TEST_F(StagedFiles, HaveTheModesAndTimesOfTheirOriginals) {
  ASSERT_OK(apply(plan()));
  for (const char* name : kNames) {
    EXPECT_EQ(fs::status(fast() / name).permissions(), fs::status(slow() / name).permissions()) << name;
    EXPECT_EQ(fs::last_write_time(fast() / name), fs::last_write_time(slow() / name)) << name;
  }
  EXPECT_EQ(fs::status(fast() / "a").permissions(), fs::status(slow() / "a").permissions());
}

TEST_F(StagedFiles, ASecondApplyFindsAllThere) {
  ASSERT_OK(apply(plan()));
  const auto again = apply(plan());
  ASSERT_OK(again);
  EXPECT_EQ(again->copied, 0U);
  EXPECT_EQ(again->already_there, 4U);
}

TEST_F(StagedFiles, AFullTierIsSaidBeforeAnythingIsWritten) {
  EXPECT_ERRC(Errc::no_space, apply(plan("", ",capacity=5MB")), "free some space");
  EXPECT_EQ(whole_copies(), 0U);
  StagingPlan small = plan();
  small.capacity_bytes = 1000;
  EXPECT_ERRC(Errc::no_space, apply(small), "capacity");
}

TEST_F(StagedFiles, NoSpaceInTheMiddleLeavesWhatIsWholeAndGoesOn) {
  EXPECT_ERRC(Errc::no_space, apply(plan("", ",fail=write/b/3:enospc@1")), "run the same command again");
  EXPECT_LT(whole_copies(), 4U);
  const auto again = apply(plan());
  ASSERT_OK(again);
  EXPECT_EQ(again->copied + again->already_there, 4U);
  EXPECT_EQ(whole_copies(), 4U);
  ASSERT_OK(revert(plan()));
  expect_nothing_left();
}

TEST_F(StagedFiles, NoErrorOfEitherTierLeavesHalfACopy) {
  for (const char* fault : {"read:eio@#3", "open:eio@#2"}) {
    EXPECT_FALSE(apply(plan(std::string(",fail=") + fault)).ok()) << fault;
    whole_copies();
  }
  for (const char* fault : {"write:eio@#3", "publish:eio@#2", "sync:eio@#2", "open:eacces@#2"}) {
    EXPECT_FALSE(apply(plan("", std::string(",fail=") + fault)).ok()) << fault;
    whole_copies();
  }
  ASSERT_OK(apply(plan()));
  EXPECT_EQ(whole_copies(), 4U);
}

TEST_F(StagedFiles, ATierThatGivesOtherBytesBackIsFound) {
  EXPECT_ERRC(Errc::corrupt, apply(plan("", ",fail=read/top:flip@1")), "with other bytes: check");
  EXPECT_FALSE(fs::exists(fast() / "top"));
}

TEST_F(StagedFiles, AChangedOriginalIsNotCopied) {
  const StagingPlan before = plan();
  write(slow() / "b/3", "something else");
  const auto applied = apply(before);
  ASSERT_OK(applied);
  EXPECT_EQ(applied->copied, 3U);
  ASSERT_EQ(applied->changed.size(), 1U);
  EXPECT_NE(applied->changed[0].find("b/3"), std::string::npos);
  EXPECT_FALSE(fs::exists(fast() / "b/3"));
  fs::remove(slow() / "top");
  const auto again = apply(before);
  ASSERT_OK(again);
  EXPECT_EQ(again->changed.size(), 2U);
}

TEST_F(StagedFiles, WhatWasThereBeforeIsUsedAndStays) {
  write(fast() / "a/1", content("a/1"));
  const auto applied = apply(plan());
  ASSERT_OK(applied);
  EXPECT_EQ(applied->copied, 3U);
  EXPECT_EQ(applied->already_there, 1U);
  const auto reverted = revert(plan());
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 3U);
  EXPECT_EQ(reverted->found_before, 1U);
  EXPECT_EQ(text_of(fast() / "a/1"), content("a/1"));
  EXPECT_FALSE(fs::exists(fast() / "b"));
}

TEST_F(StagedFiles, WhatWasThereWithOtherBytesIsNobodysToReplace) {
  write(fast() / "a/1", "mine");
  EXPECT_ERRC(Errc::already_exists, apply(plan()), "'a/1'");
  EXPECT_EQ(text_of(fast() / "a/1"), "mine");
  fs::remove(fast() / "a/1");
  fs::create_directories(fast() / "a/1");
  EXPECT_ERRC(Errc::already_exists, apply(plan()), "is a folder");
}

// A user removed a file that blocked the copy. The copy that is made then belongs to the plan, and revert
// removes it too.
TEST_F(StagedFiles, WhatWasInTheWayAndIsGoneIsNotFoundAnyMore) {
  write(fast() / "top", "mine");
  EXPECT_ERRC(Errc::already_exists, apply(plan()), "'top'");
  fs::remove(fast() / "top");
  ASSERT_OK(apply(plan()));
  EXPECT_EQ(whole_copies(), 4U);
  const auto reverted = revert(plan());
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 4U);
  EXPECT_EQ(reverted->found_before, 0U);
  expect_nothing_left();
}

TEST_F(StagedFiles, WhatWasInTheWayAndIsGoneIsOursAlsoIfApplyIsKilled) {
  write(fast() / "top", "mine");
  EXPECT_ERRC(Errc::already_exists, apply(plan()), "'top'");
  fs::remove(fast() / "top");
  save_changed_state(plan(), [](StagedState& state) { state.may_have_unlisted_copies = true; });
  write(fast() / "top", content("top"));  // the copy got its name, and then apply was killed
  ASSERT_OK(revert(plan()));
  expect_nothing_left();
}

// A state of an earlier version may list a file that apply copied also as a found file.
TEST_F(StagedFiles, WhatWasCopiedIsOursWhateverWasFoundThere) {
  const StagingPlan all = plan();
  ASSERT_OK(apply(all));
  save_changed_state(all, [](StagedState& state) { state.earlier_files = {"top"}; });
  ASSERT_OK(revert(all));
  expect_nothing_left();
}

// After an apply has recorded all its copies, a file that appears later belongs to the user, whatever it
// contains.
TEST_F(StagedFiles, WhatSomebodyPutThereLaterStays) {
  EXPECT_FALSE(apply(plan("", ",fail=write/top:eio@1")).ok());
  ASSERT_FALSE(fs::exists(fast() / "top"));
  write(fast() / "top", content("top"));
  const auto again = apply(plan());
  ASSERT_OK(again);
  EXPECT_GE(again->already_there, 1U);
  const auto reverted = revert(plan());
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 3U);
  EXPECT_EQ(reverted->found_before, 1U);
  EXPECT_EQ(text_of(fast() / "top"), content("top"));
}

TEST_F(StagedFiles, ACopyThatCouldNotBeReadBackIsOurs) {
  EXPECT_FALSE(apply(plan("", ",fail=read/top:eio@1")).ok());
  ASSERT_TRUE(fs::exists(fast() / "top"));
  ASSERT_OK(revert(plan()));
  expect_nothing_left();
}

TEST_F(StagedFiles, WhatSomebodyChangedIsNotRemoved) {
  ASSERT_OK(apply(plan()));
  std::string other = content("top");
  other[1'000'000] ^= 1;
  write(fast() / "top", other);
  write(fast() / "a/deep/mine", "mine");
  const auto reverted = revert(plan());
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 3U);
  ASSERT_EQ(reverted->kept.size(), 1U);
  EXPECT_NE(reverted->kept[0].find("'top'"), std::string::npos);
  EXPECT_EQ(text_of(fast() / "top"), other);
  EXPECT_EQ(text_of(fast() / "a/deep/mine"), "mine");
  EXPECT_FALSE(fs::exists(fast() / "b"));

  write(fast() / "top", content("top"));
  const auto again = revert(plan());
  ASSERT_OK(again);
  EXPECT_EQ(again->removed, 1U);
  EXPECT_EQ(again->not_there, 3U);
  EXPECT_FALSE(fs::exists(fast() / ".penstock"));
}

TEST_F(StagedFiles, ACopyThatIsInNoStateIsComparedWithItsOriginal) {
  const StagingPlan all = plan();
  // This is the state that a killed apply leaves.
  save_changed_state(all, [](StagedState& state) { state.may_have_unlisted_copies = true; });
  write(fast() / "a/1", content("a/1"));
  write(fast() / "top", "not what the original is");
  const auto reverted = revert(all);
  ASSERT_OK(reverted);
  EXPECT_EQ(reverted->removed, 1U);
  EXPECT_EQ(reverted->kept.size(), 1U);
}

TEST_F(StagedFiles, ATierThatIsNotMountedIsNotMade) {
  fs::remove(fast());
  EXPECT_ERRC(Errc::not_found, apply(plan()), "mount it");
  EXPECT_ERRC(Errc::not_found, is_started(plan()), fast().string());
  EXPECT_FALSE(fs::exists(fast()));
}

TEST_F(StagedFiles, OneProcessAtATime) {
  const StagingPlan all = plan();
  const StagedTiers held = StagedTiers::open(all).value();
  EXPECT_ERRC(Errc::busy, StagedTiers::open(all), "another process");
}

TEST_F(StagedFiles, WithoutTheRightToWriteItSaysSo) {
  ASSERT_OK(apply(plan()));  // makes the folders
  ASSERT_OK(revert(plan()));
  fs::permissions(fast(), fs::perms(0555));
  EXPECT_TRUE(as_plain_user([&] { EXPECT_ERRC(Errc::permission_denied, apply(plan())); }));
  fs::permissions(fast(), fs::perms(0755));
}

TEST_F(StagedFiles, AFarmLeadsToBothTiers) {
  const StagingPlan all = plan();
  ASSERT_OK(apply(all));
  const Tier on_slow = on(all.slow);
  const Tier on_fast = on(all.fast);
  ASSERT_OK(check_farm(farm(), on_slow, on_fast, false));
  const auto made = make_farm(farm(), all, {}, on_slow, on_fast, false);
  ASSERT_OK(made);
  EXPECT_EQ(made->to_fast, 4U);
  EXPECT_EQ(made->to_slow, 1U);
  for (const char* name : kNames) {
    EXPECT_EQ(fs::read_symlink(farm() / name), fast() / name);
    EXPECT_EQ(text_of(farm() / name), content(name));
  }
  EXPECT_EQ(fs::read_symlink(farm() / "a/other"), slow() / "a/other");
  EXPECT_ERRC(Errc::already_exists, check_farm(farm(), on_slow, on_fast, false));
  ASSERT_OK(check_farm(farm(), on_slow, on_fast, true));
  ASSERT_OK(make_farm(farm(), all, {}, on_slow, on_fast, false));

  write(farm() / "mine", "mine");
  const auto kept = remove_farm(farm(), on_slow, on_fast);
  ASSERT_OK(kept);
  EXPECT_EQ(*kept, std::vector<std::string>{(farm() / "mine").string()});
  EXPECT_FALSE(fs::exists(farm() / "a"));
  fs::remove(farm() / "mine");
  EXPECT_TRUE(remove_farm(farm(), on_slow, on_fast)->empty());
  EXPECT_FALSE(fs::exists(farm()));
}

TEST_F(StagedFiles, AFarmIsNotInATier) {
  const StagingPlan all = plan();
  const Tier on_slow = on(all.slow);
  const Tier on_fast = on(all.fast);
  EXPECT_ERRC(Errc::invalid_argument, check_farm(slow() / "farm", on_slow, on_fast, false), "is inside tier");
  const Tier memory = open_tier("mem:farm-test", kNoNamedTiers).value();
  EXPECT_ERRC(Errc::invalid_argument, check_farm(farm(), on_slow, memory, false), "not a local folder");
}

TEST_F(StagedFiles, FoldersThatAreLinksAreEnteredWhereSomethingIsStaged) {
  fs::create_directory_symlink(slow() / "a", slow() / "link");
  fs::create_directory_symlink(slow() / "b", slow() / "other");
  StagingPlan all = plan();
  all.files = {{"link/1", all.files[0].bytes, all.files[0].mtime_ns}};
  ASSERT_OK(apply(all));
  const Tier on_slow = on(all.slow);
  const Tier on_fast = on(all.fast);
  ASSERT_OK(make_farm(farm(), all, {}, on_slow, on_fast, false));
  EXPECT_EQ(fs::read_symlink(farm() / "link/1"), fast() / "link/1");
  EXPECT_EQ(fs::read_symlink(farm() / "other"), slow() / "other");
}

}  // namespace
}  // namespace penstock
