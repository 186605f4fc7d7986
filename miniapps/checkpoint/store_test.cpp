// Tests making and opening stores, their locks, their free space, and sweep().
#include "miniapps/checkpoint/store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class CheckpointStores : public testing::TestWithParam<const char*> {
 protected:
  const TestPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, CheckpointStores, testing::Values("mem", "posix"),
                         [](const auto& on) { return std::string(on.param); });

TEST_P(CheckpointStores, AreMadeOnceAndThenOpened) {
  const Tier tier = place_.tier();
  EXPECT_ERRC(Errc::not_found, CheckpointStore::open(tier), "is not a checkpoint store");
  const auto made = CheckpointStore::open_or_make(tier, StoreRole::fast);
  ASSERT_OK(made);
  EXPECT_EQ((*made)->uuid().size(), 32U);
  EXPECT_EQ((*made)->role(), StoreRole::fast);
  for (const auto& again :
       {CheckpointStore::open(tier), CheckpointStore::open_or_make(tier, StoreRole::fast)}) {
    ASSERT_OK(again);
    EXPECT_EQ((*again)->uuid(), (*made)->uuid());
    EXPECT_EQ((*again)->role(), (*made)->role());
    EXPECT_EQ((*again)->durability(), (*made)->durability());
  }
  EXPECT_ERRC(Errc::invalid_argument, CheckpointStore::open_or_make(tier, StoreRole::slow),
              "is a fast store, not a slow one");
  EXPECT_OK((*made)->still_there());
}

TEST_P(CheckpointStores, NeedAFolderOfTheirOwn) {
  const Tier tier = place_.tier();
  put_text(*tier.backend, "thesis.tex", "years of work");
  EXPECT_ERRC(Errc::invalid_argument, CheckpointStore::open_or_make(tier, StoreRole::slow), "thesis.tex");
  EXPECT_EQ(names_in(*tier.backend, ""), std::set<std::string>{"thesis.tex"});
}

TEST_P(CheckpointStores, AreMadeAfterAnInterruptedTry) {
  const Tier tier = place_.tier();
  for (const char* folder : {"locks", "reserved", "tmp", "lost+found"})
    ASSERT_OK(tier.backend->names().make_folders(folder));
  EXPECT_OK(CheckpointStore::open_or_make(tier, StoreRole::slow));
}

TEST_P(CheckpointStores, AreNotMadeOverExistingCheckpoints) {
  const Tier tier = place_.tier();
  const auto store = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(store);
  save(**store, "run", {1, 0});
  ASSERT_OK(tier.backend->names().remove("STORE.json"));
  EXPECT_ERRC(Errc::corrupt, CheckpointStore::open_or_make(tier, StoreRole::slow), "no STORE.json");
  EXPECT_ERRC(Errc::corrupt, CheckpointStore::open(tier), "no STORE.json");
}

TEST_P(CheckpointStores, RefuseWrongStoreFiles) {
  const Tier tier = place_.tier();
  ASSERT_OK(CheckpointStore::open_or_make(tier, StoreRole::slow));
  const std::string good = text_in(*tier.backend, "STORE.json");
  const auto with = [&](std::string_view old, std::string_view now) {
    std::string text = good;
    text.replace(text.find(old), old.size(), now);
    put_text(*tier.backend, "STORE.json", text);
    return CheckpointStore::open_or_make(tier, StoreRole::slow);
  };
  EXPECT_ERRC(Errc::unsupported, with("\"format\": 1", "\"format\": 7"), "format 7");
  EXPECT_ERRC(Errc::corrupt, with("\"slow\"", "\"medium\""), "role");
  EXPECT_ERRC(Errc::corrupt, with("checkpoint store", "cake store"));
  EXPECT_ERRC(Errc::corrupt, with("\"uuid\": \"", "\"uuid\": \"0"), "uuid");
  EXPECT_ERRC(Errc::corrupt, with("}", ""));
  EXPECT_ERRC(Errc::corrupt, with(good, ""));
  EXPECT_OK(with(good, good));
}

TEST_P(CheckpointStores, MadeBySeveralThreadsAtOnceAreOne) {
  const Tier tier = place_.tier();
  std::vector<std::string> uuids(8);
  {
    std::vector<std::jthread> makers;
    for (std::string& uuid : uuids)
      makers.emplace_back([&tier, &uuid] {
        const auto store = CheckpointStore::open_or_make(tier, StoreRole::slow);
        EXPECT_OK(store);
        if (store) uuid = (*store)->uuid();
      });
  }
  for (const std::string& uuid : uuids) EXPECT_EQ(uuid, uuids.front());
}

TEST(CheckpointStore, ReportsMemoryAsVolatile) {
  TestStore store;
  EXPECT_EQ(store->durability(), kVolatile);
}

class Unrenamed final : public BackendWrapper {
 public:
  explicit Unrenamed(std::unique_ptr<Backend> inner) : BackendWrapper(std::move(inner)) {
    caps_ = this->inner().caps();
    caps_.atomic_rename = false;
  }
  const Caps& caps() const override { return caps_; }

 private:
  Caps caps_;
};

TEST(CheckpointStore, IsNotForTiersThatCannotRename) {
  const TestPlace place;
  Tier tier = place.tier();
  tier.backend = std::make_unique<Unrenamed>(std::move(tier.backend));
  EXPECT_ERRC(Errc::unsupported, CheckpointStore::open_or_make(tier, StoreRole::slow), "cannot rename");
}

TEST_P(CheckpointStores, AreNotWrittenToAfterAnUnmount) {
  const Tier tier = place_.tier();
  const auto made = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(made);
  CheckpointStore& store = **made;
  save(store, "run", {1, 0});
  const std::string facts = text_in(*tier.backend, "STORE.json");
  const auto refused = [&] {
    EXPECT_ERRC(Errc::io, store.still_there(), "mount it there again");
    EXPECT_ERRC(Errc::io, store.stage("run", "save", 1, 0), "mount it there again");
    EXPECT_ERRC(Errc::io, store.sweep("run", "save"));
    EXPECT_ERRC(Errc::io, store.remove("run", {1, 0}));
    EXPECT_ERRC(Errc::io, store.quarantine("run", {1, 0}, "why"));
    EXPECT_ERRC(Errc::io, store.lock_run("run", "save"));
    EXPECT_TRUE(names_in(*tier.backend, "tmp").empty());
  };
  ASSERT_OK(tier.backend->names().remove("STORE.json"));
  refused();
  // This must be an error: an empty list would say that the run has no checkpoints.
  EXPECT_ERRC(Errc::io, list_checkpoints(store, "another"));
  std::string another = facts;
  const size_t uuid = another.find(store.uuid());
  another[uuid] = another[uuid] == '0' ? '1' : '0';
  put_text(*tier.backend, "STORE.json", another);
  refused();
}

TEST_P(CheckpointStores, LockRunsByPurpose) {
  const Tier tier = place_.tier();
  const auto store = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(store);
  auto saving = (*store)->lock_run("a", "save");
  ASSERT_OK(saving);
  EXPECT_ERRC(Errc::busy, (*store)->lock_run("a", "save"), "run 'a'");
  EXPECT_OK((*store)->lock_run("a", "drain"));
  EXPECT_OK((*store)->lock_run("b", "save"));
  saving->reset();
  EXPECT_OK((*store)->lock_run("a", "save"));
  EXPECT_ERRC(Errc::invalid_argument, (*store)->lock_run("../a", "save"));
  EXPECT_ERRC(Errc::invalid_argument, (*store)->lock_run("a", "x.y"));
}

TEST(CheckpointRoom, IsFreeSpaceMinusReservations) {
  TestStore store(StoreRole::fast, "mem", "capacity=1MiB");
  const auto empty = store->free_space();
  ASSERT_OK(empty);
  EXPECT_LT(*empty, 1U << 20);  // STORE.json takes some of it
  EXPECT_ERRC(Errc::no_space, store->stage("run", "save", 1U << 20, 0), "not enough space");
  EXPECT_ERRC(Errc::no_space, store->stage("run", "save", 300 << 10, 900 << 10), "reserved");
  EXPECT_ERRC(Errc::no_space, store->stage("run", "save", UINT64_MAX, UINT64_MAX));
  EXPECT_TRUE(names_in(store.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(store.backend(), "reserved").empty());
  {
    const auto first = store->stage("run", "save", 600 << 10, 0);
    ASSERT_OK(first);
    EXPECT_ERRC(Errc::no_space, store->stage("other", "save", 600 << 10, 0));
    EXPECT_LE(*store->free_space(), *empty - (600U << 10));
    EXPECT_OK(store->stage("other", "save", 300 << 10, 0));
  }
  EXPECT_EQ(*store->free_space(), *empty);
}

TEST(CheckpointRoom, ReservationEndsWithACommit) {
  TestStore store(StoreRole::fast, "mem", "capacity=100MiB");
  const uint64_t before = *store->free_space();
  const CheckpointManifest saved = save(*store, "run", {1, 0});
  EXPECT_LE(*store->free_space(), before - saved.bytes());
  EXPECT_GT(*store->free_space(), before - saved.bytes() - 4096);
  EXPECT_TRUE(names_in(store.backend(), "reserved").empty());
  ASSERT_OK(store->remove("run", {1, 0}));
  EXPECT_EQ(*store->free_space(), before);
}

// A checkpoint that is being written uses space of the tier. Its bytes must count once, and not again as
// reserved space.
TEST(CheckpointRoom, CountsBytesOfAPendingCheckpointOnce) {
  constexpr uint64_t kMiB = 1U << 20U;
  for (const std::string backend : {"mem", "posix"}) {
    SCOPED_TRACE(backend);
    TestStore store(StoreRole::fast, backend, "capacity=100MiB");
    const uint64_t empty = *store->free_space();
    const std::vector<std::byte> bytes = pattern(40 * kMiB);
    {
      const auto staged = store->stage("run", "save", bytes.size(), 0);
      ASSERT_OK(staged);
      uint64_t least = empty;
      const auto written = (*staged)->write_pieces(
          "a", 0, bytes.size(), [&](uint64_t offset) -> Result<std::span<const std::byte>> {
            least = std::min(least, *store->free_space());
            return std::span(bytes).subspan(offset, std::min(kCheckpointChunk, bytes.size() - offset));
          });
      ASSERT_OK(written);
      EXPECT_GE(least, empty - bytes.size() - 20 * kMiB) << "but for what is not worth a note yet";
      EXPECT_LE(*store->free_space(), empty - bytes.size()) << "and not less than once";
      EXPECT_GE(*store->free_space(), empty - bytes.size() - 20 * kMiB);
      EXPECT_OK(store->stage("other", "save", 35 * kMiB, 0));
      EXPECT_ERRC(Errc::no_space, store->stage("other", "save", 65 * kMiB, 0));
      EXPECT_GE(*store->space_if_emptied(), empty - kMiB - 20 * kMiB);
      EXPECT_EQ(names_in(store.backend(), "taken").size(), 1U);
    }
    EXPECT_TRUE(names_in(store.backend(), "taken").empty());
    EXPECT_EQ(*store->free_space(), empty);
  }
}

TEST(CheckpointRoom, IgnoresNotesWithoutAReservation) {
  TestStore store(StoreRole::fast, "mem", "capacity=1MiB");
  const std::string pending_name = "a.save." + std::string(32, 'a');
  put_text(store.backend(), "reserved/" + pending_name, "500000\n");
  const uint64_t before = *store->free_space();
  put_text(store.backend(), "taken/" + pending_name + "0.0", "400000\n");
  put_text(store.backend(), "taken/" + pending_name + ".x", "400000\n");
  put_text(store.backend(), "taken/" + pending_name, "400000\n");
  put_text(store.backend(), "taken/b.save." + std::string(32, 'a') + ".0", "400000\n");
  EXPECT_LE(*store->free_space(), before);
  put_text(store.backend(), "taken/" + pending_name + ".0", "300000\n");
  put_text(store.backend(), "taken/" + pending_name + ".12", "100000\n");
  EXPECT_GT(*store->free_space(), before + 390'000);
  put_text(store.backend(), "taken/" + pending_name + ".1", "99999999999\n");
  EXPECT_GT(*store->free_space(), before + 490'000);
  EXPECT_LT(*store->free_space(), before + 500'000);
  ASSERT_OK(store->sweep("a", "save"));
  EXPECT_EQ(names_in(store.backend(), "taken").size(), 3U) << "those of no run, and of another run";
}

TEST(CheckpointRoom, IgnoresTornReservations) {
  TestStore store(StoreRole::fast, "mem", "capacity=1MiB");
  const uint64_t before = *store->free_space();
  put_text(store.backend(), "reserved/a", "");
  put_text(store.backend(), "reserved/b", "99999999999999999999999\n");
  put_text(store.backend(), "reserved/c", "5000");
  put_text(store.backend(), "reserved/d", "cake\n");
  EXPECT_GT(*store->free_space(), before - 1000);
  put_text(store.backend(), "reserved/e", "5000\n");
  EXPECT_LT(*store->free_space(), before - 5000);
}

TEST(CheckpointRoom, IsCountedWithTheStoresLockHeld) {
  TestStore store;
  auto held = store.backend().names().lock("lock");
  ASSERT_OK(held);
  std::jthread frees([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    held->reset();
  });
  EXPECT_OK(store->stage("run", "save", 1, 0));
}

TEST(CheckpointRoom, WaitForTheLockEndsWithASignal) {
  TestStore store;
  const auto held = store.backend().names().lock("lock");
  ASSERT_OK(held);
  simulate_interrupt(SIGTERM);
  EXPECT_ERRC(Errc::interrupted, store->stage("run", "save", 1, 0));
  simulate_interrupt(0);
}

TEST_P(CheckpointStores, SweepRemovesTheFilesOfOneRun) {
  const Tier tier = place_.tier();
  const auto made = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(made);
  CheckpointStore& store = **made;
  const std::string uuid(32, 'a');
  const std::string mine = "a.save." + uuid;
  const std::set<std::string> others = {"a.drain." + uuid,
                                        "a.save.save." + uuid,
                                        "b.a.save." + uuid,
                                        "a.save." + uuid + "0",
                                        "a.save." + std::string(32, 'g'),
                                        "b.save." + uuid};
  for (const std::string folder : {"tmp/", "reserved/"}) {
    put_text(*tier.backend, folder + mine + (folder == "tmp/" ? "/rank-0.bin" : ""), "8\n");
    for (const std::string& other : others)
      put_text(*tier.backend, folder + other + (folder == "tmp/" ? "/rank-0.bin" : ""), "8\n");
  }
  // A reservation without a folder: the process that wrote it died before it made the folder.
  put_text(*tier.backend, "reserved/a.save." + std::string(32, '0'), "9\n");
  put_text(*tier.backend, "trash/b.000000000001.0." + uuid + "/deep/down", "x");
  put_text(*tier.backend, "quarantine/b.000000000001.0." + uuid + "/rank-0.bin", "x");
  auto swept = store.sweep("a", "save");
  ASSERT_OK(swept);
  EXPECT_EQ(*swept, 2U);
  EXPECT_EQ(names_in(*tier.backend, "tmp"), others);
  EXPECT_EQ(names_in(*tier.backend, "reserved"), others);
  EXPECT_TRUE(names_in(*tier.backend, "trash").empty());
  EXPECT_EQ(names_in(*tier.backend, "quarantine").size(), 1U);
  swept = store.sweep("a", "save");
  ASSERT_OK(swept);
  EXPECT_EQ(*swept, 0U);
}

TEST(CheckpointSweep, RemovesHiddenTemporaryFilesAndFollowsNoLinks) {
  TestStore store(StoreRole::slow, "posix");
  const std::filesystem::path root = store.place().path() / "store";
  const std::string uuid(32, 'b');
  put_text(store.backend(), "ckpt/keep/me", "x");
  put_text(store.backend(), "tmp/a.save." + uuid + "/.penstock-tmp-1-2-3-4", "x");
  std::filesystem::create_directory_symlink(root / "ckpt", root / "trash" / "link");
  std::filesystem::create_directory_symlink(root / "ckpt", root / "tmp" / ("a.save." + uuid) / "link");
  std::filesystem::create_directory_symlink(root / "nowhere", root / "trash" / "dangling");
  ASSERT_OK(store->sweep("a", "save"));
  EXPECT_TRUE(std::filesystem::is_empty(root / "tmp"));
  EXPECT_TRUE(std::filesystem::is_empty(root / "trash"));
  EXPECT_EQ(text_in(store.backend(), "ckpt/keep/me"), "x");
}

// `bench` makes its measurement in the store's folder, even before a store exists.
TEST(CheckpointSweep, RemovesOldFilesOfACeilingMeasurement) {
  TestPlace place("posix");
  const std::filesystem::path folder = place.path() / "store" / "penstock-ceiling";
  std::filesystem::create_directories(folder);
  { std::ofstream(folder / "rank-3.bin") << "x"; }
  const Tier tier = place.tier("slow");
  const auto made = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(made);
  CheckpointStore& store = **made;
  const auto age = [&](std::chrono::minutes folders, std::chrono::minutes files) {
    const auto now = std::filesystem::file_time_type::clock::now();
    std::filesystem::last_write_time(folder / "rank-3.bin", now - files);
    std::filesystem::last_write_time(folder, now - folders);
  };
  using std::chrono::minutes;
  for (const auto& [folders, files] :
       {std::pair{minutes(0), minutes(0)}, {minutes(90), minutes(1)}, {minutes(1), minutes(90)}}) {
    age(folders, files);
    EXPECT_EQ(*store.sweep("run", "save"), 0U) << "somebody may be at it";
    EXPECT_FALSE(*store.remove_ceiling_leftovers());
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  age(minutes(61), minutes(61));
  EXPECT_EQ(*store.sweep("run", "save"), 1U);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_FALSE(*store.remove_ceiling_leftovers());
}

TEST(CheckpointSweep, SucceedsOnSeveralThreadsAtOnce) {
  for (int round = 0; round < 5; ++round) {
    TestStore store(StoreRole::slow, "posix");
    for (int i = 0; i < 40; ++i)
      put_text(store.backend(), "trash/t" + std::to_string(i % 5) + "/f" + std::to_string(i), "x");
    {
      std::vector<std::jthread> sweepers;
      for (const char* run : {"a", "b", "c"})
        sweepers.emplace_back([&store, run] { EXPECT_OK(store->sweep(run, "save")); });
    }
    EXPECT_TRUE(names_in(store.backend(), "trash").empty());
  }
}

}  // namespace
}  // namespace penstock
