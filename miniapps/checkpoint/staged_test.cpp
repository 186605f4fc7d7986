// Tests checkpoints that are being written: what is written, in which order it becomes durable, and what
// remains after faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

using Span = std::span<const std::byte>;

class StagedCheckpoint : public testing::TestWithParam<const char*> {
 protected:
  TestStore store_{StoreRole::slow, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, StagedCheckpoint, testing::Values("mem", "posix"),
                         [](const auto& on) { return std::string(on.param); });

TEST_P(StagedCheckpoint, IsVisibleOnlyAfterItsCommit) {
  const TestFiles files = {{"whole", pattern(2 * kCheckpointChunk)},
                           {"more", pattern(kCheckpointChunk + 1)},
                           {"less", pattern(5)},
                           {"empty", {}}};
  CheckpointManifest manifest = manifest_of("run", {20, 3});
  manifest.trainer = {1, 2, 3, 4};
  const auto staged = store_->stage("run", "save", 1, 0);
  ASSERT_OK(staged);
  for (const auto& [name, bytes] : files) {
    const auto file = (*staged)->write(name, 0, bytes);
    ASSERT_OK(file);
    EXPECT_EQ(file->bytes, bytes.size());
    EXPECT_EQ(file->chunks.size(), (bytes.size() + kCheckpointChunk - 1) / kCheckpointChunk);
    manifest.files.push_back(*file);
  }
  EXPECT_TRUE(list_checkpoints(*store_, "run")->empty());
  EXPECT_FALSE(*store_->has("run", {20, 3}));
  const auto committed = (*staged)->commit(manifest);
  ASSERT_OK(committed);
  EXPECT_EQ(committed->store_uuid, store_->uuid());
  EXPECT_FALSE(committed->commit_time.empty());
  EXPECT_EQ(committed->trainer, manifest.trainer);
  EXPECT_TRUE(*store_->has("run", {20, 3}));
  EXPECT_EQ(*store_->manifest("run", {20, 3}), *committed);
  EXPECT_OK(store_->verify("run", *committed));
  EXPECT_EQ(names_in(store_.backend(), "ckpt/run/000000000020.3"),
            (std::set<std::string>{"MANIFEST", "empty", "less", "more", "whole"}));
  for (const auto& [name, bytes] : files)
    EXPECT_EQ(text_in(store_.backend(), "ckpt/run/000000000020.3/" + name),
              std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_TRUE(names_in(store_.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(store_.backend(), "reserved").empty());
}

TEST_P(StagedCheckpoint, LeavesNothingIfNotCommitted) {
  {
    const auto staged = store_->stage("run", "save", 1000, 0);
    ASSERT_OK(staged);
    EXPECT_EQ(names_in(store_.backend(), "tmp").size(), 1U);
    EXPECT_EQ(names_in(store_.backend(), "reserved"), names_in(store_.backend(), "tmp"));
    ASSERT_OK((*staged)->write("a", 0, pattern(10)));
    ASSERT_OK((*staged)->report_files(0, {}));
  }
  EXPECT_TRUE(names_in(store_.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(store_.backend(), "reserved").empty());
}

TEST_P(StagedCheckpoint, TakesPiecesInOrderAndReturnsTheirErrors) {
  const auto bytes = pattern(kCheckpointChunk + 9);
  const auto staged = store_->stage("run", "save", bytes.size(), 0);
  ASSERT_OK(staged);
  std::vector<uint64_t> asked;
  const auto file = (*staged)->write_pieces("a", 0, bytes.size(), [&](uint64_t offset) -> Result<Span> {
    asked.push_back(offset);
    return Span(bytes).subspan(offset, std::min<uint64_t>(kCheckpointChunk, bytes.size() - offset));
  });
  ASSERT_OK(file);
  EXPECT_EQ(asked, (std::vector<uint64_t>{0, kCheckpointChunk}));
  ASSERT_OK((*staged)->write("b", 0, bytes));
  EXPECT_ERRC(
      Errc::timed_out,
      (*staged)->write_pieces("c", 0, bytes.size(),
                              [&](uint64_t) -> Result<Span> { return make_error(Errc::timed_out, "late"); }),
      "late");
  EXPECT_ERRC(Errc::internal,
              (*staged)->write_pieces("d", 0, bytes.size(), [&](uint64_t) { return Span(bytes); }));
  EXPECT_EQ(names_in(store_.backend(), (*staged)->folder()), (std::set<std::string>{"a", "b"}));
}

TEST_P(StagedCheckpoint, RefusesForbiddenAndRepeatedNames) {
  const auto staged = store_->stage("run", "save", 10, 0);
  ASSERT_OK(staged);
  for (const char* name : {"../a", "a/b", "MANIFEST", "part-0.json", ""})
    EXPECT_ERRC(Errc::invalid_argument, (*staged)->write(name, 0, pattern(1)));
  ASSERT_OK((*staged)->write("a", 0, pattern(1)));
  EXPECT_ERRC(Errc::already_exists, (*staged)->write("a", 0, pattern(1)));
}

TEST_P(StagedCheckpoint, NeverReplacesACommittedOne) {
  const CheckpointManifest first = save(*store_, "run", {1, 0});
  EXPECT_ERRC(Errc::already_exists, try_save(*store_, "run", {1, 0}, two_files(9)), "000000000001.0");
  EXPECT_OK(store_->verify("run", first));
  EXPECT_EQ(*store_->manifest("run", {1, 0}), first);
  EXPECT_TRUE(names_in(store_.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(store_.backend(), "reserved").empty());
  save(*store_, "run", {1, 1}, two_files(9));
  save(*store_, "other", {1, 0}, two_files(9));
}

TEST_P(StagedCheckpoint, CommitsOnlyValidManifests) {
  const auto attempt = [&](const std::function<void(CheckpointManifest&)>& how) {
    const auto staged = store_->stage("run", "save", 10, 0);
    EXPECT_OK(staged);
    CheckpointManifest manifest = manifest_of("run", {7, 0});
    manifest.files = {*(*staged)->write("a", 0, pattern(10))};
    how(manifest);
    auto committed = (*staged)->commit(manifest);
    EXPECT_ERRC(Errc::internal, (*staged)->commit(manifest), "belongs to another process");
    EXPECT_TRUE(names_in(store_.backend(), "tmp").empty());
    return committed;
  };
  EXPECT_ERRC(Errc::corrupt, attempt([](auto& m) { m.ranks = 2; }), "rank 1 has no file");
  EXPECT_ERRC(Errc::corrupt, attempt([](auto& m) { m.files.clear(); }));
  EXPECT_ERRC(Errc::internal, attempt([](auto& m) { m.run = "another"; }), "does not belong to run 'another'");
  EXPECT_ERRC(Errc::corrupt, attempt([](auto& m) { m.files[0].bytes = 9; }), "has 10 bytes");
  EXPECT_ERRC(Errc::not_found, attempt([](auto& m) { m.files[0].name = "b"; }), "/b' of rank 0");
  EXPECT_TRUE(list_checkpoints(*store_, "run")->empty());
  EXPECT_OK(attempt([](auto&) {}));
}

TEST_P(StagedCheckpoint, IsWrittenByAllRanksAndCommittedByOne) {
  const auto staged = store_->stage("run", "save", 1000, 0);
  ASSERT_OK(staged);
  std::vector<CheckpointFile> all;
  for (uint64_t rank = 0; rank < 3; ++rank) {
    const auto joined = rank == 0 ? nullptr : *PendingCheckpoint::join(*store_, (*staged)->folder());
    PendingCheckpoint& mine = rank == 0 ? **staged : *joined;
    std::vector<CheckpointFile> files;
    for (const char* name : {"b-", "a-"}) {
      const auto file = mine.write(name + std::to_string(rank), rank, pattern(100 + rank));
      ASSERT_OK(file);
      files.push_back(*file);
    }
    if (rank == 2) {
      EXPECT_ERRC(Errc::not_found, (*staged)->collect_files(3), "rank 2 of 3");
      EXPECT_ERRC(Errc::internal, mine.commit(manifest_of("run", {4, 0})), "belongs to another process");
    }
    ASSERT_OK(mine.report_files(rank, files));
  }
  const auto files = (*staged)->collect_files(3);
  ASSERT_OK(files);
  CheckpointManifest manifest = manifest_of("run", {4, 0});
  manifest.ranks = 3;
  manifest.files = *files;
  const auto committed = (*staged)->commit(manifest);
  ASSERT_OK(committed);
  EXPECT_OK(store_->verify("run", *committed));
  EXPECT_EQ(names_in(store_.backend(), "ckpt/run/000000000004.0"),
            (std::set<std::string>{"MANIFEST", "a-0", "a-1", "a-2", "b-0", "b-1", "b-2"}));
}

TEST_P(StagedCheckpoint, RefusesDamagedListsOfFiles) {
  const auto staged = store_->stage("run", "save", 1000, 0);
  ASSERT_OK(staged);
  ASSERT_OK((*staged)->report_files(0, std::vector{*(*staged)->write("a", 0, pattern(5))}));
  const std::string part = (*staged)->folder() + "/part-0.json";
  change(store_.backend(), part, [](std::string& text) { text.resize(text.size() / 2); });
  EXPECT_ERRC(Errc::corrupt, (*staged)->collect_files(1), "part-0.json");
}

TEST_P(StagedCheckpoint, CannotBeJoinedWithoutItsFolder) {
  EXPECT_ERRC(Errc::not_found, PendingCheckpoint::join(*store_, "tmp/run.save." + std::string(32, 'a')),
              "all ranks must see");
}

TEST_P(StagedCheckpoint, StopsAtASignal) {
  const auto staged = store_->stage("run", "save", 10, 0);
  ASSERT_OK(staged);
  simulate_interrupt(SIGINT);
  EXPECT_ERRC(Errc::interrupted, (*staged)->write("a", 0, pattern(10)));
  simulate_interrupt(0);
}

// Records the order in which things become durable.
struct Journal {
  std::vector<std::string> lines;
};

class JournalWriter final : public WriterWrapper {
 public:
  JournalWriter(std::unique_ptr<Writer> inner, std::string_view name, Journal& journal)
      : WriterWrapper(std::move(inner)), name_(name), journal_(journal) {}
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    journal_.lines.push_back((wanted == Durability::file ? "file " : "other ") + name_);
    return inner().publish(wanted, if_exists);
  }

 private:
  const std::string name_;
  Journal& journal_;
};

class JournalNames final : public NamespaceWrapper {
 public:
  JournalNames(Namespace& inner, Journal& journal) : NamespaceWrapper(inner), journal_(journal) {}
  Result<void> make_folders(std::string_view folder) override {
    return note("make ", folder, inner().make_folders(folder));
  }
  Result<void> sync_dir(std::string_view folder) override {
    return note("sync ", folder, inner().sync_dir(folder));
  }
  Result<void> remove(std::string_view name) override { return note("remove ", name, inner().remove(name)); }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    return note("rename ", std::string(from) + " " + std::string(to), inner().rename_noreplace(from, to));
  }

 private:
  Result<void> note(const char* what, std::string_view of, Result<void> done) {
    journal_.lines.push_back(what + std::string(of));
    return done;
  }
  Journal& journal_;
};

class JournalBackend final : public BackendWrapper {
 public:
  JournalBackend(std::unique_ptr<Backend> backend, Journal& journal)
      : BackendWrapper(std::move(backend)), journal_(journal), names_(inner().names(), journal) {}
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
    return std::make_unique<JournalWriter>(std::move(writer), name, journal_);
  }
  Namespace& names() override { return names_; }

 private:
  Journal& journal_;
  JournalNames names_;
};

// Checks the order of syncs itself, since fault tests on journalling file systems cannot find all that a
// power cut could lose.
TEST(StagedCheckpointOrder, SyncsInTheRequiredOrder) {
  const TestPlace place;
  Journal journal;
  Tier tier = place.tier();
  tier.backend = std::make_unique<JournalBackend>(std::move(tier.backend), journal);
  const auto store = CheckpointStore::open_or_make(tier, StoreRole::slow);
  ASSERT_OK(store);
  EXPECT_EQ(journal.lines.back(), "sync ");
  const auto staged = (*store)->stage("run", "save", 10, 0);
  ASSERT_OK(staged);
  const std::string tmp = (*staged)->folder();
  CheckpointManifest manifest = manifest_of("run", {5, 0});
  journal.lines.clear();
  manifest.files = {*(*staged)->write("a", 0, pattern(5)), *(*staged)->write("b", 0, pattern(5))};
  ASSERT_OK((*staged)->commit(manifest));
  const std::string folder = "ckpt/run/000000000005.0";
  EXPECT_EQ(journal.lines, (std::vector<std::string>{
                               "file " + tmp + "/a", "file " + tmp + "/b", "file " + tmp + "/MANIFEST",
                               "sync " + tmp, "make ckpt/run", "sync ckpt", "rename " + tmp + " " + folder,
                               "sync ckpt/run", "sync tmp", "remove reserved" + tmp.substr(3)}));
  journal.lines.clear();
  ASSERT_OK((*store)->remove("run", {5, 0}));
  ASSERT_EQ(journal.lines.size(), 7U);
  EXPECT_EQ(journal.lines[0], "make trash");
  EXPECT_TRUE(journal.lines[1].starts_with("rename " + folder + " trash/run.000000000005.0."));
  EXPECT_EQ(journal.lines[2], "sync ckpt/run");
  EXPECT_TRUE(journal.lines[3].starts_with("remove trash/"));
}

// Each operation in turn fails once. An acknowledged checkpoint is whole, and an existing one is whole or
// listed as broken. A sweep removes everything else.
TEST_P(StagedCheckpoint, IsCompleteIfAcknowledgedDespiteFaults) {
  int failed = 0;
  for (int n = 1, held = 0; held < 10; ++n) {  // until the fault comes after the last operation
    ASSERT_LT(n, 200);
    const CheckpointId id{uint64_t(n), 0};
    const Tier faulty = store_.place().tier("slow", "fail=eio@#" + std::to_string(n));
    const auto store = CheckpointStore::open(faulty);
    if (!store) continue;
    const auto saved = try_save(**store, "run", id);
    const auto seen = store_->manifest("run", id);
    if (saved) {
      ASSERT_OK(seen);
      EXPECT_OK(store_->verify("run", *seen));
    } else {
      ++failed;
      EXPECT_TRUE(seen.ok() || seen.error().code == Errc::not_found) << n;
      if (seen) {
        EXPECT_OK(store_->verify("run", *seen)) << n;
      }
    }
    EXPECT_OK(store_->sweep("run", "save"));
    EXPECT_TRUE(names_in(store_.backend(), "tmp").empty()) << n;
    EXPECT_TRUE(names_in(store_.backend(), "reserved").empty()) << n;
    held = saved ? held + 1 : 0;
  }
  EXPECT_GT(failed, 20);
}

TEST_P(StagedCheckpoint, IsNotAcknowledgedAfterAFailedSync) {
  int n = 1;
  for (;; ++n) {
    ASSERT_LT(n, 20);
    const CheckpointId id{uint64_t(n), 0};
    const Tier faulty = store_.place().tier("slow", "fail=sync:eio@#" + std::to_string(n));
    const auto store = CheckpointStore::open(faulty);
    ASSERT_OK(store);
    const auto saved = try_save(**store, "run", id);
    if (saved) break;
    EXPECT_ERRC(Errc::io, saved, "store 'slow'");
    EXPECT_TRUE(names_in(store_.backend(), "tmp").empty()) << n;
  }
  // The syncs of two files, MANIFEST, its folder, ckpt and both parents fail one after another; in the eighth
  // save no sync fails.
  EXPECT_EQ(n, 8);
}

TEST_P(StagedCheckpoint, LeavesNothingOnAFullTier) {
  const Tier full = store_.place().tier("slow", "fail=write:enospc@#2");
  const auto store = CheckpointStore::open(full);
  ASSERT_OK(store);
  EXPECT_ERRC(Errc::no_space, try_save(**store, "run", {1, 0}), "store 'slow'");
  EXPECT_TRUE(list_checkpoints(*store_, "run")->empty());
  EXPECT_TRUE(names_in(store_.backend(), "tmp").empty());
  EXPECT_TRUE(names_in(store_.backend(), "reserved").empty());
}

}  // namespace
}  // namespace penstock
