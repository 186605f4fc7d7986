// Tests committed checkpoints, which are in ckpt/: listing, reading, verifying and removing them.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class CommittedCheckpoint : public testing::TestWithParam<const char*> {
 protected:
  CheckpointManifest saved(uint64_t step = 1) { return save(*store_, "run", {step, 0}); }
  std::string at(const std::string& name) { return "ckpt/run/000000000001.0/" + name; }
  // The list entry of a checkpoint after `how` has changed its files.
  Result<CheckpointManifest> listed_after(const std::function<void()>& how) {
    static_cast<void>(store_->remove("run", {1, 0}));
    saved();
    how();
    const auto listed = list_checkpoints(*store_, "run");
    EXPECT_OK(listed);
    if (!listed || listed->size() != 1) return make_error(Errc::internal, "not one checkpoint in the list");
    EXPECT_EQ(listed->front().id, (CheckpointId{1, 0}));
    return listed->front().manifest;
  }

  TestStore store_{StoreRole::slow, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, CommittedCheckpoint, testing::Values("mem", "posix"),
                         [](const auto& on) { return std::string(on.param); });

TEST_P(CommittedCheckpoint, IsListedInOrderOfStepAndGeneration) {
  for (const CheckpointId& id : {CheckpointId{1234567890123, 0}, {100, 10}, {100, 9}, {9, 0}})
    save(*store_, "run", id, {{"a", pattern(3)}});
  save(*store_, "a.run", {5, 0}, {{"a", pattern(3)}});
  for (const char* stranger : {"ckpt/run/notes", "ckpt/run/120.0", "ckpt/run/000000000001.0.old"})
    ASSERT_OK(store_.backend().names().make_folders(stranger));
  put_text(store_.backend(), "ckpt/readme", "x");
  const auto listed = list_checkpoints(*store_, "run");
  ASSERT_OK(listed);
  std::vector<CheckpointId> ids;
  for (const ListedCheckpoint& one : *listed) {
    EXPECT_OK(one.manifest);
    ids.push_back(one.id);
  }
  EXPECT_EQ(ids, (std::vector<CheckpointId>{{9, 0}, {100, 9}, {100, 10}, {1234567890123, 0}}));
  EXPECT_EQ(*store_->runs(), (std::vector<std::string>{"a.run", "run"}));
  EXPECT_TRUE(list_checkpoints(*store_, "none")->empty());
}

// A training may remove checkpoints while another process lists them. A checkpoint that was removed must
// count as missing and not as corrupt.
TEST_P(CommittedCheckpoint, CountsAsMissingIfRemovedDuringAListing) {
  saved(1);
  const CheckpointManifest second = saved(2);
  const CheckpointManifest third = saved(3);
  Tier tier = store_.place().tier("slow");
  std::string at_listing;
  std::string at_opening;
  tier.backend = std::make_unique<WatchedBackend>(
      std::move(tier.backend),
      [&](std::string_view name) {
        if (name != at_opening) return;
        EXPECT_OK(store_->remove("run", {2, 0}));
      },
      [&](std::string_view folder) {
        if (folder != at_listing) return;
        at_listing.clear();
        EXPECT_OK(store_->remove("run", {1, 0}));
      });
  const auto seen = CheckpointStore::open(tier);
  ASSERT_OK(seen);
  at_listing = "ckpt/run/000000000001.0";
  const auto listed = list_checkpoints(**seen, "run");
  ASSERT_OK(listed);
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_OK(listed->front().manifest);
  EXPECT_ERRC(Errc::not_found, (*seen)->manifest("run", {1, 0}));
  at_opening = "ckpt/run/000000000002.0/small";
  EXPECT_ERRC(Errc::not_found, (*seen)->verify("run", second), "was removed during");
  EXPECT_OK((*seen)->verify("run", third));
  ASSERT_OK(store_.backend().names().remove("ckpt/run/000000000003.0/small"));
  EXPECT_ERRC(Errc::corrupt, (*seen)->manifest("run", {3, 0}), "missing");
}

TEST_P(CommittedCheckpoint, IsListedWithItsErrorIfDamaged) {
  Backend& backend = store_.backend();
  EXPECT_OK(listed_after([] {}));
  EXPECT_ERRC(Errc::corrupt, listed_after([&] { ASSERT_OK(backend.names().remove(at("MANIFEST"))); }),
              "missing");
  EXPECT_ERRC(Errc::corrupt, listed_after([&] { put_text(backend, at("MANIFEST"), ""); }), "empty");
  EXPECT_ERRC(Errc::corrupt,
              listed_after([&] { change(backend, at("MANIFEST"), [](auto& text) { text.resize(200); }); }));
  EXPECT_ERRC(Errc::corrupt, listed_after([&] { ASSERT_OK(backend.names().remove(at("small"))); }),
              "'ckpt/run/");
  EXPECT_ERRC(Errc::truncated, listed_after([&] { put_text(backend, at("small"), "short"); }), "5 bytes");
  EXPECT_ERRC(Errc::corrupt,
              listed_after([&] { change(backend, at("small"), [](auto& text) { text += "tail"; }); }));
  EXPECT_ERRC(Errc::corrupt, listed_after([&] {
                ASSERT_OK(backend.names().remove(at("small")));
                ASSERT_OK(backend.names().make_folders(at("small")));
              }),
              "is a folder");
  EXPECT_ERRC(Errc::corrupt, listed_after([&] {
                ASSERT_OK(store_->remove("run", {1, 0}));
                put_text(backend, "ckpt/run/000000000001.0", "a file");
              }),
              "is not a folder");
}

TEST_P(CommittedCheckpoint, IsCorruptInAWrongFolder) {
  TestStore other(StoreRole::slow);
  const CheckpointManifest elsewhere = save(*other, "run", {1, 0});
  EXPECT_ERRC(Errc::corrupt,
              listed_after([&] { put_text(store_.backend(), at("MANIFEST"), serialize(elsewhere)); }),
              "not to this checkpoint");
  saved(2);
  ASSERT_OK(store_.backend().names().rename_noreplace("ckpt/run/000000000002.0", "ckpt/run/000000000003.0"));
  EXPECT_ERRC(Errc::corrupt, store_->manifest("run", {3, 0}), "000000000002.0");
  ASSERT_OK(store_.backend().names().make_folders("ckpt/bad"));
  ASSERT_OK(store_.backend().names().rename_noreplace("ckpt/run/000000000003.0", "ckpt/bad/000000000002.0"));
  EXPECT_ERRC(Errc::corrupt, store_->manifest("bad", {2, 0}), "of run 'run'");
}

TEST(CommittedCheckpointLinks, AreNotFollowed) {
  TestStore store(StoreRole::slow, "posix");
  const std::filesystem::path root = store.place().path() / "store";
  const CheckpointManifest first = save(*store, "run", {1, 0});
  const std::filesystem::path folder = root / CheckpointStore::folder("run", {1, 0});
  std::filesystem::rename(folder / "small", root / "elsewhere");
  std::filesystem::create_symlink(root / "elsewhere", folder / "small");
  EXPECT_ERRC(Errc::corrupt, store->manifest("run", {1, 0}), "symbolic link");
  EXPECT_ERRC(Errc::corrupt, store->verify("run", first), "symbolic link");
  EXPECT_ERRC(Errc::corrupt, list_checkpoints(*store, "run")->front().manifest, "symbolic link");
  // Removing a link does not remove its target. The same is true for a link in place of a folder.
  std::filesystem::create_directory_symlink(folder, root / CheckpointStore::folder("run", {2, 0}));
  EXPECT_ERRC(Errc::corrupt, list_checkpoints(*store, "run")->back().manifest, "is not a folder");
  ASSERT_OK(store->remove("run", {2, 0}));
  EXPECT_TRUE(std::filesystem::exists(folder / "rank-0.bin"));
  ASSERT_OK(store->remove("run", {1, 0}));
  EXPECT_TRUE(std::filesystem::exists(root / "elsewhere"));
  EXPECT_TRUE(list_checkpoints(*store, "run")->empty());
}

TEST_P(CommittedCheckpoint, IsNotMissingIfTheStoreCannotBeRead) {
  saved();
  const Tier faulty = store_.place().tier("slow", "fail=names:eio@#1..");
  const auto store = CheckpointStore::open(faulty);
  ASSERT_OK(store);
  EXPECT_ERRC(Errc::io, list_checkpoints(**store, "run"), "store 'slow'");
  EXPECT_ERRC(Errc::io, (*store)->runs());
  EXPECT_ERRC(Errc::io, (*store)->has("run", {1, 0}));
  const Tier second = store_.place().tier("slow", "fail=open:eio@#2..");
  const auto unreadable = CheckpointStore::open(second);
  ASSERT_OK(unreadable);
  const auto listed = list_checkpoints(**unreadable, "run");
  ASSERT_OK(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_ERRC(Errc::io, listed->front().manifest);
}

TEST_P(CommittedCheckpoint, IsReadAndCheckedChunkByChunk) {
  const CheckpointManifest manifest = saved();
  const TestFiles files = two_files();
  std::string read;
  std::vector<uint64_t> offsets;
  ASSERT_OK(store_->read_file("run", {1, 0}, manifest.files[0], [&](uint64_t offset, auto bytes) {
    offsets.push_back(offset);
    read += text_of(bytes);
    return success();
  }));
  EXPECT_EQ(read, text_of(files[0].second));
  EXPECT_EQ(offsets, (std::vector<uint64_t>{0, kCheckpointChunk}));
  EXPECT_ERRC(Errc::timed_out, store_->read_file("run", {1, 0}, manifest.files[0], [](auto, auto) {
    return Result<void>(make_error(Errc::timed_out, "enough"));
  }));
  simulate_interrupt(SIGTERM);
  EXPECT_ERRC(Errc::interrupted, store_->read_file("run", {1, 0}, manifest.files[0], nullptr));
  simulate_interrupt(0);
}

TEST_P(CommittedCheckpoint, WithAFlippedBitIsCorruptFromThatChunkOn) {
  for (const size_t where :
       {size_t{0}, size_t{kCheckpointChunk - 1}, size_t{kCheckpointChunk}, size_t{kCheckpointChunk + 76}}) {
    static_cast<void>(store_->remove("run", {1, 0}));
    const CheckpointManifest manifest = saved();
    damage(store_.backend(), manifest, "rank-0.bin", where);
    EXPECT_OK(store_->manifest("run", {1, 0}));  // the file has the right size
    uint64_t seen = 0;
    const auto read = store_->read_file("run", {1, 0}, manifest.files[0], [&](auto, auto bytes) {
      seen += bytes.size();
      return success();
    });
    const uint64_t chunk = where / kCheckpointChunk * kCheckpointChunk;
    EXPECT_ERRC(Errc::corrupt, read, "from byte " + std::to_string(chunk) + " on");
    EXPECT_EQ(seen, chunk);
    EXPECT_ERRC(Errc::corrupt, store_->verify("run", manifest), "rank-0.bin");
  }
}

TEST_P(CommittedCheckpoint, OfAnotherLengthIsNotRead) {
  const CheckpointManifest manifest = saved();
  put_text(store_.backend(), at("small"), "");
  EXPECT_ERRC(Errc::truncated, store_->read_file("run", {1, 0}, manifest.files[1], nullptr),
              "100 were saved");
  put_text(store_.backend(), at("small"), std::string(101, 'x'));
  EXPECT_ERRC(Errc::corrupt, store_->read_file("run", {1, 0}, manifest.files[1], nullptr));
  ASSERT_OK(store_.backend().names().remove(at("small")));
  EXPECT_ERRC(Errc::corrupt, store_->read_file("run", {1, 0}, manifest.files[1], nullptr), "missing");
  CheckpointFile hostile = manifest.files[0];
  hostile.name = "../000000000001.0/rank-0.bin";
  EXPECT_ERRC(Errc::invalid_argument, store_->read_file("run", {1, 0}, hostile, nullptr));
}

TEST_P(CommittedCheckpoint, IsVerifiedAgainstTheGivenManifest) {
  CheckpointManifest manifest = saved();
  EXPECT_OK(store_->verify("run", manifest));
  manifest.files[0].chunks[0] ^= 1;
  EXPECT_ERRC(Errc::corrupt, store_->verify("run", manifest), "its manifest lists other files");
  EXPECT_ERRC(Errc::not_found, store_->verify("run", manifest_of("run", {2, 0})));
}

TEST_P(CommittedCheckpoint, IsRemovedCompletely) {
  saved(1);
  saved(2);
  ASSERT_OK(store_->remove("run", {1, 0}));
  EXPECT_EQ(names_in(store_.backend(), "ckpt/run"), std::set<std::string>{"000000000002.0"});
  EXPECT_TRUE(names_in(store_.backend(), "trash").empty());
  EXPECT_ERRC(Errc::not_found, store_->remove("run", {1, 0}));
  EXPECT_ERRC(Errc::invalid_argument, store_->remove("..", {1, 0}));
}

TEST_P(CommittedCheckpoint, IsGoneEvenIfItsFilesCannotBeUnlinked) {
  saved();
  // remove() makes four operations on names: make trash, rename, list, remove. From the fourth on, they fail.
  const Tier faulty = store_.place().tier("slow", "fail=names:eio@#4..");
  const auto store = CheckpointStore::open(faulty);
  ASSERT_OK(store);
  EXPECT_ERRC(Errc::io, (*store)->remove("run", {1, 0}));
  EXPECT_TRUE(list_checkpoints(*store_, "run")->empty());
  EXPECT_EQ(names_in(store_.backend(), "trash").size(), 1U);
  EXPECT_EQ(*store_->sweep("any", "save"), 1U);
  EXPECT_TRUE(names_in(store_.backend(), "trash").empty());
}

TEST_P(CommittedCheckpoint, HasItsErrorNextToItInQuarantine) {
  saved();
  ASSERT_OK(store_->quarantine("run", {1, 0}, "a bit flipped"));
  EXPECT_TRUE(list_checkpoints(*store_, "run")->empty());
  const auto kept = names_in(store_.backend(), "quarantine");
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_TRUE(kept.begin()->starts_with("run.000000000001.0."));
  EXPECT_EQ(*kept.rbegin(), *kept.begin() + ".why.txt");
  EXPECT_EQ(text_in(store_.backend(), "quarantine/" + *kept.rbegin()), "a bit flipped\n");
  EXPECT_EQ(names_in(store_.backend(), "quarantine/" + *kept.begin()).size(), 3U);
  saved();  // possible, since the checkpoint's name is free again
  ASSERT_OK(store_->quarantine("run", {1, 0}, "again"));
  EXPECT_EQ(names_in(store_.backend(), "quarantine").size(), 4U);
}

TEST_P(CommittedCheckpoint, IgnoresErrorsOfWritingTheHint) {
  saved();
  store_->hint_latest("run", {1, 0});
  EXPECT_EQ(text_in(store_.backend(), "LATEST"), "run 000000000001.0\n");
  const Tier faulty = store_.place().tier("slow", "fail=write:eio@#1..");
  const auto store = CheckpointStore::open(faulty);
  ASSERT_OK(store);
  (*store)->hint_latest("run", {2, 0});
  EXPECT_EQ(text_in(store_.backend(), "LATEST"), "run 000000000001.0\n");
}

}  // namespace
}  // namespace penstock
