#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "io_backends/testing/forgetful_testing.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

class Forgetful : public testing::Test {
 protected:
  Namespace& names() { return disk_->names(); }

  Result<void> put(std::string_view name, std::string_view text, Durability wanted) {
    PENSTOCK_ASSIGN(const auto writer, disk_->create(name));
    PENSTOCK_TRY(writer->append(bytes_of(text)));
    return writer->publish(wanted);
  }
  // Returns everything on the disk, as "name=text" and "folder/", sorted.
  std::set<std::string> all(const std::string& folder = "") {
    std::set<std::string> found;
    EXPECT_OK(names().list(folder, [&](const Entry& entry) {
      if (entry.folder) {
        found.insert(entry.name + "/");
        found.merge(all(entry.name));
      } else {
        std::vector<std::byte> bytes(entry.bytes);
        EXPECT_OK(disk_->read_object(entry.name, 0, bytes));
        found.insert(entry.name + "=" + text_of(bytes));
      }
      return true;
    }));
    return found;
  }
  using Names = std::set<std::string>;

  // All states that a power cut after `work` can leave, from 300 random cuts.
  template <class Work>
  std::set<Names> outcomes(Work work) {
    std::set<Names> seen;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      machine_.wipe("disk");
      work();
      machine_.power_on(Kept::some, seed);
      seen.insert(all());
    }
    return seen;
  }

  ForgetfulMachine machine_;
  std::unique_ptr<Backend> disk_ = machine_.backend("disk");
};

TEST_F(Forgetful, KeepsWhatIsSyncedAndNothingElse) {
  ASSERT_OK(put("durable", "d", Durability::file_and_name));
  ASSERT_OK(put("a/b/durable", "d", Durability::file_and_name));
  ASSERT_OK(put("a/bytes", "b", Durability::file));
  ASSERT_OK(put("visible", "v", Durability::visible));
  ASSERT_OK(put("leaving", "l", Durability::leaving));
  ASSERT_OK(names().make_folders("folder"));
  machine_.power_on(Kept::all);
  EXPECT_EQ(all(), (Names{"a/", "a/b/", "a/b/durable=d", "a/bytes=b", "durable=d", "folder/", "leaving=l",
                          "visible=v"}))
      << "a process that is killed loses nothing that was published";
  machine_.power_on(Kept::none);
  EXPECT_EQ(all(), (Names{"a/", "a/b/", "a/b/durable=d", "durable=d"}));
  machine_.power_on(Kept::none);
  EXPECT_EQ(all().size(), 4U) << "what has survived a cut is on the disk";
}

TEST_F(Forgetful, ANameWithoutItsBytesIsAnEmptyObject) {
  ASSERT_OK(put("visible", "bytes", Durability::visible));
  ASSERT_OK(names().sync_dir(""));
  machine_.power_on(Kept::none);
  EXPECT_EQ(all(), Names{"visible="});
}

TEST_F(Forgetful, BytesMayBeTornInEveryWay) {
  const auto seen = outcomes([&] {
    ASSERT_OK(put("torn", "abcd", Durability::visible));
    ASSERT_OK(names().sync_dir(""));
  });
  const std::string zeros(4, '\0');
  for (const std::string& text :
       {std::string("abcd"), std::string(), zeros, std::string("abc"), std::string("ab\0\0", 4)})
    EXPECT_TRUE(seen.contains(Names{"torn=" + text})) << text;
  EXPECT_EQ(outcomes([&] { ASSERT_OK(put("whole", "abcd", Durability::file_and_name)); }),
            std::set<Names>{Names{"whole=abcd"}});
}

TEST_F(Forgetful, ALostFolderLosesEverythingInIt) {
  ASSERT_OK(put("a/b/object", "x", Durability::file));
  ASSERT_OK(names().sync_dir("a/b"));
  ASSERT_OK(names().sync_dir(""));
  machine_.power_on(Kept::none);
  EXPECT_EQ(all(), Names{"a/"});
}

TEST_F(Forgetful, NamesComeBackThatWereRemovedWithoutASync) {
  ASSERT_OK(put("object", "x", Durability::file_and_name));
  ASSERT_OK(put("other", "y", Durability::file_and_name));
  ASSERT_OK(names().remove("object"));
  machine_.power_on(Kept::none);
  EXPECT_EQ(all(), (Names{"object=x", "other=y"}));
  ASSERT_OK(names().remove("object"));
  ASSERT_OK(names().sync_dir(""));
  machine_.power_on(Kept::none);
  EXPECT_EQ(all(), Names{"other=y"});
}

TEST_F(Forgetful, UnsyncedChangesHaveNoOrder) {
  const auto seen = outcomes([&] {
    ASSERT_OK(put("first", "1", Durability::file));
    ASSERT_OK(put("second", "2", Durability::file));
  });
  EXPECT_EQ(seen, (std::set<Names>{{}, {"first=1"}, {"second=2"}, {"first=1", "second=2"}}));
}

TEST_F(Forgetful, RenamingIsAtomic) {
  const auto moved = [&] {
    ASSERT_OK(names().make_folders("b"));
    ASSERT_OK(put("a/object", "x", Durability::file_and_name));
    ASSERT_OK(names().rename_noreplace("a/object", "b/moved"));
  };
  const Names old{"a/", "a/object=x", "b/"};
  const Names fresh{"a/", "b/", "b/moved=x"};
  EXPECT_EQ(outcomes(moved), (std::set<Names>{old, fresh}));
  const auto with_old_synced = [&] {
    moved();
    ASSERT_OK(names().sync_dir("a"));
  };
  EXPECT_EQ(outcomes(with_old_synced), (std::set<Names>{{"a/", "b/"}, fresh})) << "lost";
  const auto with_new_synced = [&] {
    moved();
    ASSERT_OK(names().sync_dir("b"));
  };
  EXPECT_EQ(outcomes(with_new_synced), std::set<Names>{fresh});
}

TEST_F(Forgetful, RenamedFoldersKeepWhatIsOnTheDiskInThem) {
  const auto seen = outcomes([&] {
    ASSERT_OK(names().make_folders("b"));
    ASSERT_OK(put("a/folder/synced", "x", Durability::file_and_name));
    ASSERT_OK(put("a/folder/not", "y", Durability::file));
    ASSERT_OK(names().rename_noreplace("a/folder", "b/folder"));
    ASSERT_OK(names().sync_dir("b"));
  });
  EXPECT_EQ(seen, (std::set<Names>{{"a/", "b/", "b/folder/", "b/folder/synced=x"},
                                   {"a/", "b/", "b/folder/", "b/folder/synced=x", "b/folder/not=y"}}));
}

TEST_F(Forgetful, ReplacingIsAtomicAndKeepsOneOfThem) {
  const auto seen = outcomes([&] {
    ASSERT_OK(put("object", "1", Durability::file_and_name));
    ASSERT_OK(put("object", "2", Durability::file));
    ASSERT_OK(put("object", "3", Durability::file));
  });
  EXPECT_EQ(seen, (std::set<Names>{{"object=1"}, {"object=2"}, {"object=3"}}));
}

TEST_F(Forgetful, AReusedNameHasEitherObjectOrNone) {
  const auto seen = outcomes([&] {
    ASSERT_OK(put("object", "1", Durability::file_and_name));
    ASSERT_OK(names().remove("object"));
    ASSERT_OK(put("object", "2", Durability::file));
  });
  EXPECT_EQ(seen, (std::set<Names>{{}, {"object=1"}, {"object=2"}}));
}

TEST_F(Forgetful, PowerIsCutAtTheGivenOperation) {
  ASSERT_OK(put("before", "x", Durability::file_and_name));
  EXPECT_EQ(machine_.operations(), 5U) << "create, write, sync, name, folder";
  machine_.cut_at(8);
  EXPECT_ERRC(Errc::io, put("after", "y", Durability::file_and_name), "off") << "its sync is the eighth";
  EXPECT_TRUE(machine_.off());
  EXPECT_EQ(machine_.operations(), 8U);
  EXPECT_ERRC(Errc::io, put("later", "z", Durability::visible));
  EXPECT_ERRC(Errc::io, disk_->open("before"));
  EXPECT_ERRC(Errc::io, names().stat("before"));
  EXPECT_ERRC(Errc::io, names().list("", [](const Entry&) { return true; }));
  EXPECT_ERRC(Errc::io, names().make_folders(""));
  EXPECT_EQ(machine_.operations(), 8U);
  machine_.power_on(Kept::none);
  EXPECT_EQ(machine_.operations(), 0U);
  EXPECT_OK(put("later", "z", Durability::file_and_name));
  EXPECT_EQ(all(), (Names{"before=x", "later=z"}));
}

TEST_F(Forgetful, APublishCanBeCutBetweenItsSteps) {
  std::vector<Names> left;
  for (uint64_t n = 1; n <= 8; ++n) {
    machine_.wipe("disk");
    machine_.power_on(Kept::all);
    machine_.cut_at(n);
    EXPECT_EQ(put("a/object", "x", Durability::file_and_name).ok(), n == 8);
    machine_.power_on(Kept::none);
    left.push_back(all());
  }
  // One row for a cut at each operation: create, folder, write, sync, name, folder a, the root.
  EXPECT_EQ(left, (std::vector<Names>{{}, {}, {}, {}, {}, {}, {}, {"a/", "a/object=x"}}));
}

TEST_F(Forgetful, OpenReadersWritersAndLocksFailAfterACut) {
  ASSERT_OK(put("object", "x", Durability::file_and_name));
  const auto reader = disk_->open("object");
  const auto writer = disk_->create("other");
  auto held = names().lock("lock");
  ASSERT_OK(reader);
  ASSERT_OK(writer);
  ASSERT_OK(held);
  machine_.power_on(Kept::some, 7);
  std::vector<std::byte> out(1);
  EXPECT_ERRC(Errc::io, (*reader)->read_at(0, out));
  EXPECT_ERRC(Errc::io, (*writer)->append(bytes_of("y")));
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
  const auto mine = names().lock("lock");
  EXPECT_OK(mine);
  held->reset();
  EXPECT_ERRC(Errc::busy, names().lock("lock")) << "the old holder's end frees nothing";
}

TEST_F(Forgetful, DisksGoOffTogether) {
  const auto other = machine_.backend("other");
  ASSERT_OK(put("object", "x", Durability::file_and_name));
  machine_.cut_at(6);
  EXPECT_ERRC(Errc::io, other->create("object"));
  EXPECT_ERRC(Errc::io, disk_->open("object"));
  machine_.power_on(Kept::none);
  EXPECT_OK(other->create("object"));
  machine_.wipe("disk");
  EXPECT_TRUE(all().empty());
}

}  // namespace
}  // namespace penstock
