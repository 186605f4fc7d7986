// The part of the contract about names: folders, listing, renaming, removing, locks.
#include "io_backends/backend_contract_fixture.hpp"

namespace penstock {
namespace {

bool visit_all(const Entry& /*entry*/) {
  return true;
}

TEST_P(Contract, MissingObjectsAreNotFound) {
  EXPECT_ERRC(Errc::not_found, backend().open("nothing"));
  EXPECT_ERRC(Errc::not_found, names().stat("nothing"));
  EXPECT_ERRC(Errc::not_found, names().remove("nothing"));
  EXPECT_OK(remove_if_there(names(), "nothing"));
  EXPECT_ERRC(Errc::not_found, names().list("nothing", visit_all));
  put("object", "x");
  EXPECT_ERRC(Errc::not_found, backend().open("no/such/object"));
  EXPECT_ERRC(Errc::not_found, names().rename_noreplace("nothing", "else"));
  EXPECT_ERRC(Errc::not_found, backend().open("object/below"));
  EXPECT_ERRC(Errc::not_found, names().list("object", visit_all));
}

TEST_P(Contract, ATextIsReadWholeOrRefused) {
  put("object", "text");
  EXPECT_EQ(*read_text(backend(), "object", 4), "text");
  EXPECT_ERRC(Errc::corrupt, read_text(backend(), "object", 3));
  EXPECT_ERRC(Errc::not_found, read_text(backend(), "nothing", 4));
  ASSERT_OK(remove_if_there(names(), "object"));
  EXPECT_ERRC(Errc::not_found, names().stat("object"));
}

TEST_P(Contract, AFolderIsNoObject) {
  put("folder/object", "x");
  Bytes out(10);
  EXPECT_ERRC(Errc::invalid_argument, backend().open("folder"));
  EXPECT_ERRC(Errc::invalid_argument, backend().read_object("folder", 1, out));
  EXPECT_ERRC(Errc::invalid_argument, backend().read_object("folder", 0, out));
  auto writer = backend().create("folder");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("x")));
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
  EXPECT_EQ(*get("folder/object"), "x");
}

TEST_P(Contract, NoObjectIsBelowAnObject) {
  put("object", "x");
  auto writer = backend().create("object/below");
  if (writer) {
    ASSERT_OK((*writer)->append(bytes_of("y")));
    EXPECT_ERRC(Errc::not_found, (*writer)->publish(Durability::visible));
  } else {
    EXPECT_ERRC(Errc::not_found, writer);
  }
  EXPECT_ERRC(Errc::not_found, names().make_folders("object/below"));
  EXPECT_EQ(*get("object"), "x");
}

TEST_P(Contract, ListsOneLevel) {
  put("a/one", "1");
  put("a/two", "22");
  put("a/b/three", "333");
  put("top", "4444");
  EXPECT_EQ(listed(""), (std::vector<std::string>{"a/", "top"}));
  EXPECT_EQ(listed("a"), (std::vector<std::string>{"a/b/", "a/one", "a/two"}));
  uint64_t bytes = 0;
  ASSERT_OK(names().list("a", [&](const Entry& entry) {
    if (!entry.folder) bytes += entry.bytes;
    return true;
  }));
  EXPECT_EQ(bytes, 3U);
  unsigned visited = 0;
  ASSERT_OK(names().list("a", [&](const Entry&) { return ++visited < 2; }));
  EXPECT_EQ(visited, 2U);
}

TEST_P(Contract, AVisitorMayUseTheBackEnd) {
  put("a/one", "1");
  put("a/two", "2");
  std::string seen;
  ASSERT_OK(names().list("a", [&](const Entry& entry) {
    const auto text = get(entry.name);
    EXPECT_OK(text);
    seen += *text;
    EXPECT_OK(names().remove(entry.name));
    return true;
  }));
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_ERRC(Errc::not_found, names().stat("a/one"));
  EXPECT_ERRC(Errc::not_found, names().stat("a/two"));
}

TEST_P(Contract, StatsObjectsAndFolders) {
  put("folder/object", "water");
  const auto object = names().stat("folder/object");
  ASSERT_OK(object);
  EXPECT_EQ(object->name, "folder/object");
  EXPECT_EQ(object->bytes, 5U);
  EXPECT_FALSE(object->folder);
  const auto folder = names().stat("folder");
  ASSERT_OK(folder);
  EXPECT_TRUE(folder->folder);
}

TEST_P(Contract, MakesFoldersWithTheirParents) {
  ASSERT_OK(names().make_folders("a/b/c"));
  ASSERT_OK(names().make_folders("a/b/c"));
  ASSERT_OK(names().make_folders(""));
  put("a/b/c/object", "x");
  EXPECT_EQ(listed("a/b/c"), std::vector<std::string>{"a/b/c/object"});
  EXPECT_OK(names().sync_dir("a/b"));
  EXPECT_OK(names().sync_dir(""));
}

TEST_P(Contract, RemovesObjectsAndEmptyFolders) {
  put("folder/object", "x");
  EXPECT_ERRC(Errc::already_exists, names().remove("folder"));
  EXPECT_OK(names().remove("folder/object"));
  EXPECT_ERRC(Errc::not_found, backend().open("folder/object"));
  const auto gone = names().remove("folder");  // some back ends remove a folder with its last object
  if (!gone) {
    EXPECT_ERRC(Errc::not_found, gone);
  }
  EXPECT_TRUE(listed("").empty());
}

TEST_P(Contract, RenamesWithoutReplacing) {
  put("one", "1");
  put("two", "2");
  EXPECT_ERRC(Errc::already_exists, names().rename_noreplace("one", "two"));
  EXPECT_EQ(*get("two"), "2");
  ASSERT_OK(names().make_folders("folder"));
  EXPECT_OK(names().rename_noreplace("one", "folder/three"));
  EXPECT_EQ(*get("folder/three"), "1");
  EXPECT_ERRC(Errc::not_found, get("one"));
  if (!caps().atomic_rename) return;
  EXPECT_OK(names().rename_noreplace("folder", "moved"));
  EXPECT_EQ(*get("moved/three"), "1");
  ASSERT_OK(names().make_folders("empty"));
  EXPECT_ERRC(Errc::already_exists, names().rename_noreplace("moved", "empty"));
  EXPECT_ERRC(Errc::invalid_argument, names().rename_noreplace("moved", "moved/below"));
}

TEST_P(Contract, ALockHasOneHolder) {
  auto held = names().lock("folder/lock");
  ASSERT_OK(held);
  EXPECT_ERRC(Errc::busy, names().lock("folder/lock"));
  EXPECT_OK(names().lock("folder/other"));
  EXPECT_OK(names().stat("folder/lock"));
  held->reset();
  EXPECT_OK(names().lock("folder/lock"));
}

TEST_P(Contract, ReportsFreeBytes) {
  const auto free = names().free_bytes();
  if (!free) {  // an object store does not report free bytes
    EXPECT_ERRC(Errc::unsupported, free);
    return;
  }
  EXPECT_GT(*free, 0U);
}

}  // namespace
}  // namespace penstock
