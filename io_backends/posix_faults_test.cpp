// Tests the posix back end with injected failures of system calls, since no machine fails on demand.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/system_faults_test.hpp"
#include "io_backends/testing/denied_calls_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

class PosixFaults : public testing::Test {
 protected:
  void SetUp() override { reopen(""); }

  // Opens the back end again on scratch/root with more options: ",publish=rename".
  void reopen(const std::string& options) {
    auto tier = open_tier("t=posix:" + root().string() + options, kNoNamedTiers);
    ASSERT_OK(tier);
    tier_ = *std::move(tier);
  }
  std::filesystem::path root() const { return scratch_.path() / "root"; }
  Backend& backend() { return *tier_.backend; }

  Result<void> put(std::string_view name, std::span<const std::byte> bytes,
                   Durability wanted = Durability::visible, IfExists if_exists = IfExists::replace) {
    PENSTOCK_ASSIGN(const auto writer, backend().create(name, 0));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(wanted, if_exists);
  }
  std::string get(std::string_view name) {
    std::ifstream file(root() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns all names in the root, also hidden ones.
  std::vector<std::string> all_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  ScratchFolder scratch_;
  Tier tier_;
};

TEST_F(PosixFaults, ShortAndInterruptedReadsAreReadOn) {
  const auto bytes = pattern(100'000);
  ASSERT_OK(put("object", bytes));
  std::vector<std::byte> out(bytes.size());
  InjectedFaults faults;
  faults.shorten(Call::read, 777);
  faults.fail(Call::read, EINTR, 1, 2);
  EXPECT_OK(backend().read_object("object", bytes.size(), out));
  EXPECT_EQ(out, bytes);
  EXPECT_GT(faults.calls(Call::read), 200U);
  const auto reader = backend().open("object");
  ASSERT_OK(reader);
  std::fill(out.begin(), out.end(), std::byte{0});
  EXPECT_OK((*reader)->read_at(0, out));
  EXPECT_EQ(out, bytes);
}

TEST_F(PosixFaults, ShortAndInterruptedWritesAreWrittenOn) {
  const auto bytes = pattern(50'000);
  const std::span<const std::byte> all(bytes);
  {
    InjectedFaults faults;
    faults.shorten(Call::write, 1'001);
    faults.fail(Call::write, EINTR, 1, 3);
    faults.fail(Call::fdatasync, EINTR, 1, 2);
    auto writer = backend().create("object");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(all.first(10'000)));
    const std::vector<std::span<const std::byte>> pieces{all.subspan(10'000, 0), all.subspan(10'000, 3'000),
                                                         all.subspan(13'000, 0), all.subspan(13'000, 27'000)};
    ASSERT_OK((*writer)->append(pieces));
    ASSERT_OK((*writer)->append(all.subspan(40'000)));
    ASSERT_OK((*writer)->publish(Durability::file));
    EXPECT_EQ(faults.calls(Call::fdatasync), 2U);
  }
  EXPECT_EQ(get("object"), text_of(bytes));
}

// To make the root, the back end opens the root and the folder above it, and syncs that folder.
TEST_F(PosixFaults, InterruptedOpensOfTheRootAreRepeated) {
  InjectedFaults faults;
  faults.fail(Call::open, EINTR, 1, 2);
  ASSERT_OK(put("object", pattern(100), Durability::file_and_name));
  EXPECT_EQ(get("object").size(), 100U);
  EXPECT_GE(faults.calls(Call::fsync), 2U);
}

TEST_F(PosixFaults, AFolderAboveTheRootThatCannotBeOpenedIsAnError) {
  InjectedFaults faults;
  faults.fail(Call::open, EMFILE);
  const auto made = backend().names().make_folders("");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().sys_errno, EMFILE);
}

// Each fault must give the same kind of error in every call.
TEST_F(PosixFaults, TheSameFaultIsTheSameErrorEverywhere) {
  ASSERT_OK(put("object", pattern(10)));
  const auto reader = backend().open("object");
  ASSERT_OK(reader);
  std::vector<std::byte> out(10);
  const std::vector<std::pair<int, Errc>> table{
      {EACCES, Errc::permission_denied},
      {EPERM, Errc::permission_denied},
      {EROFS, Errc::permission_denied},
      {EMFILE, Errc::exhausted},
      {ENFILE, Errc::exhausted},
      {ENOMEM, Errc::exhausted},
      {ENOSPC, Errc::no_space},
      {EDQUOT, Errc::no_space},
      {EFBIG, Errc::exhausted},
      {EIO, Errc::io},
      {ESTALE, Errc::io},
      {ETIMEDOUT, Errc::timed_out},
  };
  for (const auto& [sys_errno, errc] : table) {
    InjectedFaults faults;
    for (const Call call : {Call::open, Call::open_nameless, Call::read, Call::write})
      faults.fail(call, sys_errno);
    EXPECT_ERRC(errc, backend().open("object"));
    EXPECT_ERRC(errc, backend().read_object("object", 10, out));
    EXPECT_ERRC(errc, (*reader)->read_at(0, out));
    EXPECT_ERRC(errc, put("other", pattern(10)));
    const auto failed = backend().open("object");
    EXPECT_EQ(failed.error().sys_errno, sys_errno);
    EXPECT_NE(failed.error().what.find("object"), std::string::npos) << "the error names the object";
  }
  EXPECT_EQ(all_names(), std::vector<std::string>{"object"});
}

class PosixPublishFaults : public PosixFaults, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { reopen(GetParam()); }
};

TEST_P(PosixPublishFaults, AFailedWriteLeavesNothingBehindAndSpendsTheWriter) {
  ASSERT_OK(put("object", bytes_of("old")));
  for (const int sys_errno : {ENOSPC, EDQUOT, EFBIG, EIO}) {
    auto writer = backend().create("object");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(bytes_of("half")));
    {
      InjectedFaults faults;
      faults.fail(Call::write, sys_errno);
      EXPECT_FALSE((*writer)->append(bytes_of("other half")).ok());
    }
    EXPECT_ERRC(Errc::invalid_argument, (*writer)->append(bytes_of("again")));
    EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
  }
  EXPECT_EQ(all_names(), std::vector<std::string>{"object"});
  EXPECT_EQ(get("object"), "old");
}

TEST_P(PosixPublishFaults, AFailedSyncOrCloseLeavesTheOldObject) {
  ASSERT_OK(put("object", bytes_of("old")));
  for (const auto& [call, sys_errno] : std::vector<std::pair<Call, int>>{
           {Call::fdatasync, EIO}, {Call::fdatasync, ENOSPC}, {Call::close, EIO}, {Call::close, EDQUOT}}) {
    for (const char* name : {"object", "fresh"}) {
      auto writer = backend().create(name);
      ASSERT_OK(writer);
      ASSERT_OK((*writer)->append(bytes_of("new")));
      {
        InjectedFaults faults;
        faults.fail(call, sys_errno, 1, 1'000'000);
        EXPECT_ERRC(sys_errno == EIO ? Errc::io : Errc::no_space, (*writer)->publish(Durability::file));
      }
      EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::file))
          << "a sync must not be tried again";
    }
  }
  EXPECT_EQ(all_names(), std::vector<std::string>{"object"});
  EXPECT_EQ(get("object"), "old");
}

TEST_P(PosixPublishFaults, AFailedNamingLeavesTheOldObject) {
  for (const Call call : {Call::linkat, Call::renameat, Call::renameat2}) {
    for (const IfExists if_exists : {IfExists::replace, IfExists::fail}) {
      ASSERT_OK(put("object", bytes_of("old")));
      auto writer = backend().create("object");
      ASSERT_OK(writer);
      ASSERT_OK((*writer)->append(bytes_of("new")));
      InjectedFaults faults;
      faults.fail(call, EIO);
      const auto published = (*writer)->publish(Durability::visible, if_exists);
      if (faults.calls(call) == 0) continue;  // this way of publishing does not make that call
      EXPECT_ERRC(Errc::io, published);
      EXPECT_EQ(get("object"), "old");
    }
  }
  EXPECT_EQ(all_names(), std::vector<std::string>{"object"});
}

TEST_P(PosixPublishFaults, SyncingTheNameSyncsEveryFolderUpToTheRoot) {
  ASSERT_OK(put("a/b/first", bytes_of("x")));
  for (const auto& [wanted, data, folders] :
       std::vector<std::tuple<Durability, unsigned, unsigned>>{{Durability::visible, 0, 0},
                                                               {Durability::leaving, 0, 0},
                                                               {Durability::file, 1, 0},
                                                               {Durability::file_and_name, 1, 3}}) {
    InjectedFaults faults;
    ASSERT_OK(put("a/b/object", bytes_of("x"), wanted));
    EXPECT_EQ(faults.calls(Call::fdatasync), data);
    EXPECT_EQ(faults.calls(Call::fsync), folders);
  }
}

TEST_P(PosixPublishFaults, AFailedFolderSyncIsAFailure) {
  ASSERT_OK(backend().names().make_folders("a/b"));
  InjectedFaults faults;
  faults.fail(Call::fsync, EIO, 2);
  EXPECT_ERRC(Errc::io, put("a/b/object", bytes_of("x"), Durability::file_and_name));
  EXPECT_EQ(get("a/b/object"), "x") << "all but the name's sync succeeded";
}

INSTANTIATE_TEST_SUITE_P(Ways, PosixPublishFaults, testing::Values("", ",publish=rename"),
                         [](const auto& row) { return row.param.empty() ? "nameless" : "rename"; });

TEST_F(PosixFaults, WithoutThePrivilegeToLinkADescriptorProcIsUsed) {
  if (!has_nameless_files(root().parent_path()))
    GTEST_SKIP() << "this file system has no files without a name";
  InjectedFaults faults;
  faults.fail(Call::linkat, ENOENT, 1, 1000);
  ASSERT_OK(put("first", bytes_of("x")));
  EXPECT_EQ(faults.calls(Call::linkat), 2U);
  ASSERT_OK(put("second", bytes_of("y")));
  EXPECT_EQ(faults.calls(Call::linkat), 3U) << "asked once, remembered";
  EXPECT_EQ(get("first") + get("second"), "xy");
}

TEST_F(PosixFaults, WithoutNamelessFilesTheTemporaryNameIsHidden) {
  InjectedFaults faults;
  faults.fail(Call::open_nameless, EOPNOTSUPP);
  ASSERT_OK(put("first", bytes_of("x")));
  auto writer = backend().create("object");
  ASSERT_OK(writer);
  EXPECT_EQ(faults.calls(Call::open_nameless), 1U) << "asked once, remembered";
  EXPECT_EQ(all_names().size(), 2U);
  unsigned listed = 0;
  ASSERT_OK(backend().names().list("", [&](const Entry&) { return ++listed != 0; }));
  EXPECT_EQ(listed, 1U);
  ASSERT_OK((*writer)->publish(Durability::visible));
  EXPECT_EQ(all_names(), (std::vector<std::string>{"first", "object"}));
  { const auto dropped = backend().create("dropped"); }
  EXPECT_EQ(all_names(), (std::vector<std::string>{"first", "object"}));
}

TEST_F(PosixFaults, WithoutRenameNoreplaceALinkDecides) {
  // EPERM: a container whose profile does not know renameat2, and perhaps not linkat either.
  for (const auto& [no_rename, no_link] : std::vector<std::pair<int, int>>{
           {EINVAL, 0}, {ENOSYS, 0}, {EPERM, 0}, {EINVAL, EPERM}, {EPERM, EPERM}, {EPERM, EOPNOTSUPP}}) {
    std::filesystem::remove_all(root());
    reopen(",publish=rename");
    InjectedFaults faults;
    faults.fail(Call::renameat2, no_rename);
    if (no_link != 0) faults.fail(Call::linkat, no_link);
    ASSERT_OK(put("object", bytes_of("old"), Durability::visible, IfExists::fail));
    EXPECT_ERRC(Errc::already_exists, put("object", bytes_of("new"), Durability::visible, IfExists::fail));
    EXPECT_EQ(get("object"), "old");
    Namespace& names = backend().names();
    ASSERT_OK(names.rename_noreplace("object", "moved"));
    EXPECT_ERRC(Errc::already_exists, names.rename_noreplace("moved", "moved"));
    EXPECT_EQ(get("moved"), "old");
    ASSERT_OK(put("object", bytes_of("other")));
    EXPECT_ERRC(Errc::already_exists, names.rename_noreplace("object", "moved"));
    ASSERT_OK(names.make_folders("folder"));
    ASSERT_OK(names.make_folders("there"));
    EXPECT_ERRC(Errc::already_exists, names.rename_noreplace("folder", "there"));
    EXPECT_OK(names.rename_noreplace("folder", "elsewhere"));
    EXPECT_EQ(all_names(), (std::vector<std::string>{"elsewhere", "moved", "object", "there"}));
  }
}

TEST_F(PosixFaults, WhereLinksAreForbiddenObjectsAreRenamed) {
  EXPECT_TRUE(in_child_process([&] {
    if (!deny_calls({SYS_linkat, SYS_renameat2})) return;  // the kernel has no such filter
    reopen("");
    ASSERT_OK(put("object", bytes_of("old"), Durability::file_and_name, IfExists::fail));
    EXPECT_ERRC(Errc::already_exists, put("object", bytes_of("new"), Durability::visible, IfExists::fail));
    ASSERT_OK(put("object", bytes_of("new")));
    ASSERT_OK(backend().names().rename_noreplace("object", "moved"));
    EXPECT_EQ(get("moved"), "new");
    EXPECT_EQ(all_names(), std::vector<std::string>{"moved"});
  }));
}

TEST_F(PosixFaults, AFileSystemWithoutLocksIsUnsupported) {
  for (const int sys_errno : {ENOSYS, EOPNOTSUPP, ENOLCK, EINVAL, EIO}) {
    InjectedFaults faults;
    faults.fail(Call::lock, sys_errno);
    EXPECT_ERRC(sys_errno == EIO ? Errc::io : Errc::unsupported, backend().names().lock("lock"), "lock");
  }
  EXPECT_OK(backend().names().lock("lock"));
}

TEST_F(PosixFaults, AReservationThatDoesNotFitFailsAtOnce) {
  ASSERT_OK(put("object", bytes_of("x")));
  {
    InjectedFaults faults;
    faults.fail(Call::fallocate, ENOSPC);
    EXPECT_ERRC(Errc::no_space, backend().create("large", 1U << 30U));
    EXPECT_OK(backend().create("small", 1'000));
    faults.fail(Call::fallocate, EOPNOTSUPP);
    EXPECT_OK(backend().create("large", 1U << 30U));
  }
  EXPECT_EQ(all_names(), std::vector<std::string>{"object"});
}

TEST_F(PosixFaults, UnusedReservedSpaceIsReleased) {
  constexpr uint64_t kHint = 32U << 20U;
  auto writer = backend().create("object", kHint);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(10'000)));
  ASSERT_OK((*writer)->publish(Durability::visible));
  struct stat status {};
  ASSERT_EQ(::stat((root() / "object").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 10'000);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST_F(PosixFaults, ReadingAnObjectAllocatesNothing) {
  ASSERT_OK(put("folder/object", pattern(10'000)));
  std::vector<std::byte> out(10'000);
  ASSERT_OK(backend().read_object("folder/object", out.size(), out));
  const uint64_t before = allocations();
  for (int i = 0; i < 10; ++i) ASSERT_OK(backend().read_object("folder/object", out.size(), out));
  EXPECT_EQ(allocations(), before);
}

TEST_F(PosixFaults, DirectModeReadsAndWritesWhatIsNotAligned) {
  reopen(",direct=1");
  const auto bytes = pattern(2'500'001);
  const std::span<const std::byte> all(bytes);
  if (const auto probe = put("probe", bytes_of("x")); !probe && probe.error().code == Errc::unsupported)
    GTEST_SKIP() << probe.error().message();
  EXPECT_TRUE(backend().caps().bypasses_cache);
  auto writer = backend().create("object", bytes.size());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(all.first(3)));
  ASSERT_OK((*writer)->append(all.subspan(3)));
  ASSERT_OK((*writer)->write_at(5, all.subspan(5, 10)));
  ASSERT_OK((*writer)->publish(Durability::file));
  EXPECT_EQ(get("object"), text_of(bytes));
  for (const size_t limit : {SIZE_MAX, size_t{8192}}) {
    InjectedFaults faults;
    faults.shorten(Call::read, limit);
    std::vector<std::byte> out(bytes.size());
    EXPECT_OK(backend().read_object("object", out.size(), out));
    EXPECT_EQ(out, bytes);
    const auto reader = backend().open("object");
    ASSERT_OK(reader);
    for (const auto& [offset, length] : std::vector<std::pair<size_t, size_t>>{
             {0, 4096}, {4096, 8192}, {1, 1}, {4095, 2}, {123'456, 1'500'000}, {2'500'000, 1}}) {
      std::vector<std::byte> part(length);
      EXPECT_OK((*reader)->read_at(offset, part));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + ptrdiff_t(offset)));
    }
    EXPECT_ERRC(Errc::truncated, (*reader)->read_at(2'500'000, std::span(out).first(2)));
    EXPECT_ERRC(Errc::truncated, (*reader)->read_at(9'000'000, std::span(out).first(2)));
  }
}

TEST_F(PosixFaults, DirectModeWritesLargeAlignedBytesWithoutACopy) {
  reopen(",direct=1");
  if (const auto probe = put("probe", bytes_of("x")); !probe && probe.error().code == Errc::unsupported)
    GTEST_SKIP() << probe.error().message();
  constexpr size_t kMiB = 1 << 20;
  const auto bytes = pattern(6 * kMiB);
  Buffer memory(bytes.size());
  const std::span<const std::byte> all = memory.first(bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory.data());
  struct Case {
    std::vector<size_t> appended;  // offset in bytes at which each append ends
    uint64_t writes;
  };
  for (const Case& one : std::vector<Case>{
           {{5 * kMiB}, 1},                             // all blocks go in one system call
           {{5 * kMiB + 4096}, 1},                      // also with a last block of 4 KiB
           {{5 * kMiB + 100}, 2},                       // the last 100 bytes are copied to a buffer
           {{2 * kMiB, 4 * kMiB + 8192, 6 * kMiB}, 3},  // each is written directly, without a copy
           {{kMiB - 4096, kMiB}, 1},                    // small appends are gathered into one call
           {{100, 4 * kMiB + 100}, 4 + 1},              // after a partial block all bytes are copied
           {{4096, 4 * kMiB}, 4},                       // copied bytes are written first
       }) {
    auto writer = backend().create("object");
    ASSERT_OK(writer);
    InjectedFaults faults;
    size_t from = 0;
    for (const size_t to : one.appended) {
      ASSERT_OK((*writer)->append(all.subspan(from, to - from)));
      from = to;
    }
    ASSERT_OK((*writer)->publish(Durability::visible));
    EXPECT_EQ(faults.calls(Call::write), one.writes) << from;
    EXPECT_TRUE(get("object") == text_of(all.first(from))) << from;
  }
  // The caller may change the memory after append(). Memory that is not aligned is copied.
  auto writer = backend().create("object");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(all.subspan(1, 3 * kMiB)));
  std::fill_n(memory.data(), bytes.size(), std::byte{0});
  ASSERT_OK((*writer)->publish(Durability::visible));
  EXPECT_TRUE(get("object") == text_of(std::span(bytes).subspan(1, 3 * kMiB)));
}

TEST_F(PosixFaults, AFileSystemWithoutDirectModeIsNamed) {
  ASSERT_OK(put("object", bytes_of("x")));
  reopen(",direct=1");
  std::vector<std::byte> out(1);
  InjectedFaults faults;
  faults.fail(Call::open, EINVAL);
  faults.fail(Call::open_nameless, EINVAL);
  EXPECT_ERRC(Errc::unsupported, backend().read_object("object", 1, out));
  EXPECT_ERRC(Errc::unsupported, backend().create("other"));
}

TEST_F(PosixFaults, AFileSystemWithoutDirectModeFallsBackWhereThatIsAskedFor) {
  ASSERT_OK(put("object", pattern(5'000)));
  const auto without_direct = [&](InjectedFaults& faults, int nameless_errno) {
    faults.fail(Call::open_nameless, nameless_errno, 1, 1000);
    // The first open is that of the folder.
    if (nameless_errno != EINVAL) faults.fail(Call::open, EINVAL, 2, 1000);
    reopen(",direct=1,fallback=buffered");
  };
  // The back end finds the lack of direct I/O with a new file, or with an existing one.
  for (const int nameless_errno : {EINVAL, EOPNOTSUPP}) {
    {
      InjectedFaults faults;
      without_direct(faults, nameless_errno);
    }
    EXPECT_FALSE(backend().caps().bypasses_cache);
    ASSERT_EQ(backend().remarks().size(), 1U);
    EXPECT_NE(backend().remarks().front().find("fallback=buffered"), std::string::npos);
    std::vector<std::byte> out(5'000);
    EXPECT_OK(backend().read_object("object", 5'000, out));
    EXPECT_EQ(out, pattern(5'000));
    EXPECT_OK(put("other", pattern(10)));
  }
  reopen(",fallback=buffered");
  EXPECT_TRUE(backend().remarks().empty()) << "nothing was asked for that is not there";
}

TEST_F(PosixFaults, ReadingToTheEndTakesOneCallMore) {
  ASSERT_OK(put("object", pattern(10'000)));
  ASSERT_OK(put("empty", {}));
  std::vector<std::byte> out(10'000);
  for (const auto& [options, calls] :
       std::vector<std::pair<std::string, unsigned>>{{"", 1}, {",eof_read=1", 2}}) {
    reopen(options);
    for (const uint64_t hint : {10'000U, 0U}) {
      InjectedFaults faults;
      ASSERT_OK(backend().read_object("object", hint, out));
      EXPECT_EQ(faults.calls(Call::read), calls) << options;
      EXPECT_EQ(out, pattern(10'000));
    }
    InjectedFaults faults;
    ASSERT_OK(backend().read_object("empty", 0, out));
    EXPECT_EQ(faults.calls(Call::read), calls - 1) << options;
    ASSERT_OK(backend().read_object("object", 9'000, out));
    EXPECT_EQ(backend().moved_bytes().read, 29'000U) << "what lies behind is not counted";
  }
  InjectedFaults faults;
  faults.fail(Call::read, EIO, 2, 1000);
  EXPECT_ERRC(Errc::io, backend().read_object("object", 10'000, out));
}

TEST_F(PosixFaults, ReadaheadIsAdvisedForEachOpenedObject) {
  ASSERT_OK(put("object", pattern(10)));
  std::vector<std::byte> out(10);
  for (const auto& [options, calls] :
       std::vector<std::pair<std::string, unsigned>>{{"", 0},
                                                     {",readahead=normal", 0},
                                                     {",readahead=random", 2},
                                                     {",readahead=sequential", 2},
                                                     {",readahead=willneed", 2}}) {
    reopen(options);
    InjectedFaults faults;
    EXPECT_OK(backend().open("object"));
    EXPECT_OK(backend().read_object("object", 10, out));
    EXPECT_EQ(faults.calls(Call::fadvise), calls) << options;
  }
}

}  // namespace
}  // namespace penstock
