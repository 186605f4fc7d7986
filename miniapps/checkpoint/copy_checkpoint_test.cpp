// Tests of copying checkpoints from store to store.
#include "miniapps/checkpoint/copy_checkpoint.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class CopiedCheckpoint : public testing::TestWithParam<const char*> {
 protected:
  // One file has more chunks than are read ahead, and another has none.
  static TestFiles many_files() {
    return {{"big", pattern(6 * kCheckpointChunk + 3, 4)}, {"empty", {}}, {"small", pattern(100)}};
  }
  // Checks that the destination has no part of the checkpoint, neither committed nor in progress.
  void expect_nothing_there() {
    EXPECT_FALSE(*slow_->has("run", {1, 0}));
    EXPECT_TRUE(names_in(slow_.backend(), "tmp").empty());
    EXPECT_TRUE(names_in(slow_.backend(), "reserved").empty());
  }

  TestStore fast_{StoreRole::fast, GetParam()};
  TestStore slow_{StoreRole::slow, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, CopiedCheckpoint, testing::Values("mem", "posix"),
                         [](const auto& on) { return std::string(on.param); });

TEST_P(CopiedCheckpoint, IsTheSameInItsNewStore) {
  CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  uint64_t reported_bytes = 0;
  for (const bool read_back : {false, true}) {
    manifest.id.generation = read_back ? 1 : 0;
    if (read_back) manifest = save(*fast_, "run", manifest.id, many_files());
    const auto copy =
        copy_checkpoint(*fast_, *slow_, manifest, {.read_back = read_back, .on_written = [&](uint64_t bytes) {
                                                     reported_bytes += bytes;
                                                     return success();
                                                   }});
    ASSERT_OK(copy);
    EXPECT_EQ(copy->store_uuid, slow_->uuid());
    EXPECT_EQ(copy->files, manifest.files);
    EXPECT_EQ(copy->snapshot_time, manifest.snapshot_time);
    EXPECT_OK(slow_->verify("run", *copy));
  }
  EXPECT_EQ(reported_bytes, 2 * manifest.bytes());
  EXPECT_TRUE(names_in(slow_.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(slow_.backend(), "reserved").empty());
}

TEST_P(CopiedCheckpoint, IsNotCopiedTwice) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0});
  const auto first = copy_checkpoint(*fast_, *slow_, manifest);
  ASSERT_OK(first);
  const uint64_t before = slow_.backend().moved_bytes().written;
  const auto second = copy_checkpoint(*fast_, *slow_, manifest);
  ASSERT_OK(second);
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(slow_.backend().moved_bytes().written, before);
}

TEST_P(CopiedCheckpoint, NeverReplacesWhatIsThere) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0});
  const CheckpointManifest other = save(*slow_, "run", {1, 0}, two_files(5));
  EXPECT_ERRC(Errc::already_exists, copy_checkpoint(*fast_, *slow_, manifest), "its bytes differ");
  EXPECT_OK(slow_->verify("run", other));
  put_text(slow_.backend(), "ckpt/run/000000000001.0/MANIFEST", "");
  EXPECT_ERRC(Errc::already_exists, copy_checkpoint(*fast_, *slow_, manifest), "is empty");
}

TEST_P(CopiedCheckpoint, IsNotCommittedIfTheSourceIsDamaged) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  for (const size_t where : {size_t{0}, size_t{5 * kCheckpointChunk}}) {
    damage(fast_.backend(), manifest, "big", where);
    EXPECT_ERRC(Errc::corrupt, copy_checkpoint(*fast_, *slow_, manifest),
                "from byte " + std::to_string(where) + " on");
    damage(fast_.backend(), manifest, "big", where);
    expect_nothing_there();
  }
  put_text(fast_.backend(), "ckpt/run/000000000001.0/big", "cut");
  EXPECT_ERRC(Errc::truncated, copy_checkpoint(*fast_, *slow_, manifest), "store 'fast'");
  ASSERT_OK(fast_.backend().names().remove("ckpt/run/000000000001.0/big"));
  EXPECT_ERRC(Errc::corrupt, copy_checkpoint(*fast_, *slow_, manifest), "missing");
  expect_nothing_there();
}

TEST_P(CopiedCheckpoint, EndsWithTheFirstErrorOfEitherSide) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  const Tier unreadable = fast_.place().tier("fast", "fail=read:eio@#6");
  const auto from = CheckpointStore::open(unreadable);
  ASSERT_OK(from);
  EXPECT_ERRC(Errc::io, copy_checkpoint(**from, *slow_, manifest), "store 'fast'");
  expect_nothing_there();
  const std::pair<std::string, Errc> faults[] = {
      {"write:enospc@#4", Errc::no_space}, {"write:eio@#7", Errc::io},   {"sync:eio@#1", Errc::io},
      {"sync:eio@#4", Errc::io},           {"publish:eio@#3", Errc::io}, {"open:emfile@#5", Errc::exhausted}};
  for (const auto& [fault, code] : faults) {
    const Tier tier = slow_.place().tier("slow", "fail=" + fault);
    const auto to = CheckpointStore::open(tier);
    ASSERT_OK(to);
    EXPECT_ERRC(code, copy_checkpoint(*fast_, **to, manifest), "store 'slow'") << fault;
    expect_nothing_there();
    EXPECT_OK(copy_checkpoint(*fast_, **to, manifest)) << fault;  // again from the start
    ASSERT_OK(slow_->remove("run", {1, 0}));
  }
}

// Each operation at the destination in turn fails once, or flips a bit of a read. An acknowledged copy must
// be whole.
TEST_P(CopiedCheckpoint, IsCompleteIfAcknowledgedDespiteFaults) {
  CheckpointManifest manifest = save(*fast_, "run", {1, 0});
  for (const std::string kind : {"eio", "flip"}) {
    int failed = 0;
    for (int n = 1, held = 0; held < 10; ++n) {
      ASSERT_LT(n, 200);
      const Tier tier = slow_.place().tier("slow", "fail=" + kind + "@#" + std::to_string(n));
      const auto to = CheckpointStore::open(tier);
      if (!to) continue;
      const auto copy = copy_checkpoint(*fast_, **to, manifest, {.read_back = true});
      held = copy ? held + 1 : 0;
      failed += copy ? 0 : 1;
      const auto seen = slow_->manifest("run", {1, 0});
      if (copy || seen) {
        ASSERT_OK(seen);
        EXPECT_OK(slow_->verify("run", *seen)) << kind << n;
        ASSERT_OK(slow_->remove("run", {1, 0}));
      }
      ASSERT_OK(slow_->sweep("run", "drain"));
      expect_nothing_there();
    }
    EXPECT_GE(failed, 4) << kind;
  }
}

TEST_P(CopiedCheckpoint, NeedsFreeSpace) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  TestStore tight(StoreRole::slow, GetParam(), "capacity=26MiB");
  EXPECT_ERRC(Errc::no_space, copy_checkpoint(*fast_, *tight, manifest, {.headroom = 4 << 20}),
              "reserved");
  EXPECT_OK(copy_checkpoint(*fast_, *tight, manifest));
}

TEST_P(CopiedCheckpoint, IsEndedByAnErrorOfOnWritten) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  uint64_t reported_bytes = 0;
  EXPECT_ERRC(Errc::timed_out,
              copy_checkpoint(*fast_, *slow_, manifest, {.on_written = [&](uint64_t bytes) -> Result<void> {
                reported_bytes += bytes;
                if (reported_bytes < 3 * kCheckpointChunk) return success();
                return make_error(Errc::timed_out, "long enough");
              }}),
              "long enough");
  EXPECT_EQ(reported_bytes, 3 * kCheckpointChunk);
  expect_nothing_there();
}

TEST_P(CopiedCheckpoint, IsEndedByASignalOnlyIfInterruptible) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0}, many_files());
  simulate_interrupt(SIGTERM);
  EXPECT_ERRC(Errc::interrupted, copy_checkpoint(*fast_, *slow_, manifest));
  expect_nothing_there();
  EXPECT_OK(copy_checkpoint(*fast_, *slow_, manifest, {.read_back = true, .interruptible = false}));
  simulate_interrupt(0);
}

TEST_P(CopiedCheckpoint, IsNotWrittenToAMissingStore) {
  const CheckpointManifest manifest = save(*fast_, "run", {1, 0});
  ASSERT_OK(slow_.backend().names().remove("STORE.json"));
  EXPECT_ERRC(Errc::io, copy_checkpoint(*fast_, *slow_, manifest), "mount it there again");
  expect_nothing_there();
}

}  // namespace
}  // namespace penstock
