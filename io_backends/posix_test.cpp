// Tests the posix back end on a real file system: permissions, limits, full disks, killed writers, and files
// of other programs.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "io_backends/system_faults_test.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

std::unique_ptr<Backend> posix_at(const std::filesystem::path& path, const std::string& options = "") {
  auto tier = open_tier("t=posix:" + path.string() + options, kNoNamedTiers);
  EXPECT_OK(tier);
  return std::move(tier->backend);
}

Result<void> put(Backend& backend, std::string_view name, std::string_view text) {
  PENSTOCK_ASSIGN(const auto writer, backend.create(name, text.size()));
  PENSTOCK_TRY(writer->append(bytes_of(text)));
  return writer->publish(Durability::visible);
}

Result<void> read_all(Backend& backend, std::string_view name) {
  std::vector<std::byte> out(1'000);
  PENSTOCK_TRY(backend.read_object(name, 0, out));
  return success();
}

size_t files_in(const std::filesystem::path& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
}

class Posix : public testing::Test {
 protected:
  std::filesystem::path root() const { return scratch_.path() / "root"; }
  ScratchFolder scratch_;
};

TEST_F(Posix, TouchesNothingBeforeItMust) {
  const auto backend = posix_at(root() / "deep");
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_ERRC(Errc::not_found, backend->open("object"));
  EXPECT_ERRC(Errc::not_found, backend->names().list("", [](const Entry&) { return true; }));
  EXPECT_OK(backend->names().free_bytes());
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_OK(put(*backend, "object", "x"));
  EXPECT_TRUE(std::filesystem::exists(root() / "deep" / "object"));
}

TEST_F(Posix, ARootThatIsAFileIsNoRoot) {
  std::ofstream(root()) << "x";
  const auto backend = posix_at(root());
  EXPECT_ERRC(Errc::not_found, backend->open("object"));
  EXPECT_ERRC(Errc::not_found, put(*backend, "object", "x"));
  EXPECT_EQ(std::filesystem::file_size(root()), 1U);
}

TEST_F(Posix, MakesItsRootAgainWhenSomebodyRemovedIt) {
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "object", "x"));
  std::filesystem::remove_all(root());
  EXPECT_ERRC(Errc::not_found, read_all(*backend, "object"));
  EXPECT_OK(put(*backend, "object", "x"));
  EXPECT_OK(read_all(*backend, "object"));
}

TEST_F(Posix, KeepsARelativePathWhenTheFolderChanges) {
  EXPECT_TRUE(in_child_process([&] {
    std::filesystem::current_path(scratch_.path());
    const auto backend = posix_at("root/./x/../y");
    std::filesystem::current_path("/");
    EXPECT_OK(put(*backend, "object", "x"));
    EXPECT_EQ(*backend->native_path("object"), root() / "y" / "object");
    EXPECT_TRUE(std::filesystem::exists(root() / "y" / "object"));
  }));
}

TEST_F(Posix, MissingPermissionsAreReported) {
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "open/object", "x"));
  ASSERT_OK(put(*backend, "closed/object", "x"));
  ASSERT_OK(put(*backend, "readonly/secret", "x"));
  std::filesystem::permissions(root() / "readonly" / "secret", std::filesystem::perms::none);
  std::filesystem::permissions(root() / "readonly", std::filesystem::perms(0555));
  std::filesystem::permissions(root() / "closed", std::filesystem::perms::none);
  ASSERT_OK(put(*backend, "names_only/object", "x"));
  std::filesystem::permissions(root() / "names_only", std::filesystem::perms(0444));
  EXPECT_TRUE(as_plain_user([&] {
    const auto mine = posix_at(root());
    EXPECT_OK(read_all(*mine, "open/object"));
    EXPECT_ERRC(Errc::permission_denied, read_all(*mine, "closed/object"));
    EXPECT_ERRC(Errc::permission_denied, mine->open("closed/object"));
    EXPECT_ERRC(Errc::permission_denied, mine->open("readonly/secret"));
    EXPECT_ERRC(Errc::permission_denied, mine->names().list("closed", [](const Entry&) { return true; }));
    EXPECT_ERRC(Errc::permission_denied, mine->names().list("names_only", [](const Entry&) { return true; }))
        << "an object that is there is not left out";
    EXPECT_ERRC(Errc::permission_denied, mine->names().stat("closed/object"));
    EXPECT_ERRC(Errc::permission_denied, put(*mine, "readonly/object", "x"));
    EXPECT_ERRC(Errc::permission_denied,
                put(*posix_at(root() / "readonly" / "deep" / "root"), "object", "x"));
    EXPECT_ERRC(Errc::permission_denied, mine->names().remove("readonly/secret"));
    EXPECT_ERRC(Errc::permission_denied, mine->names().lock("readonly/lock"));
    EXPECT_ERRC(Errc::permission_denied, mine->names().make_folders("readonly/folder"));
    EXPECT_ERRC(Errc::permission_denied, mine->names().rename_noreplace("readonly/secret", "readonly/b"));
  }));
  for (const char* folder : {"readonly", "closed", "names_only"})
    std::filesystem::permissions(root() / folder, std::filesystem::perms(0755));
}

TEST_F(Posix, ALowLimitOfDescriptorsIsExhaustion) {
#ifdef PENSTOCK_ADDRESS_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes of its own";
#endif
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "object", "x"));
  EXPECT_TRUE(in_child_process([&] {
    ASSERT_TRUE(leave_descriptors(1));
    const auto held = backend->open("object");
    EXPECT_OK(held);
    EXPECT_ERRC(Errc::exhausted, backend->open("object"));
    EXPECT_ERRC(Errc::exhausted, read_all(*backend, "object"));
    EXPECT_ERRC(Errc::exhausted, backend->create("other"));
  }));
}

TEST_F(Posix, AFileSizeLimitIsNamedAndLeavesNothing) {
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "object", "x"));
  EXPECT_TRUE(in_child_process([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { 100'000, 100'000 };
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (const char* name : {"large", "object"})
      EXPECT_ERRC(Errc::exhausted, put(*backend, name, std::string(200'000, 'x')), "write");
    EXPECT_OK(put(*backend, "small", "x"));
  }));
  EXPECT_EQ(files_in(root()), 2U);
  EXPECT_EQ(std::filesystem::file_size(root() / "object"), 1U);
}

TEST_F(Posix, AFullFileSystemIsNoSpaceAndLeavesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount a small file system";
  std::filesystem::create_directories(root());
  bool mounted = true;
  EXPECT_TRUE(in_child_process([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", root().c_str(), "tmpfs", 0, "size=1m") != 0) {
      std::ofstream(scratch_.path() / "unmounted") << "x";
      return;
    }
    for (const char* way : {"", ",publish=rename"}) {
      const auto backend = posix_at(root(), way);
      const auto before = backend->names().free_bytes();
      ASSERT_OK(before);
      EXPECT_LE(*before, 1U << 20U);
      EXPECT_ERRC(Errc::no_space, put(*backend, "large", std::string(2U << 20U, 'x')));
      EXPECT_EQ(files_in(root()), 0U);
      EXPECT_EQ(*backend->names().free_bytes(), *before);
      EXPECT_OK(put(*backend, "small", "x"));
      EXPECT_OK(backend->names().remove("small"));
    }
  }));
  mounted = !std::filesystem::exists(scratch_.path() / "unmounted");
  if (!mounted) GTEST_SKIP() << "this root may not mount";
}

// A killed writer leaves no file. If the file system has no nameless files, it leaves a file that listings
// skip.
TEST_F(Posix, AKilledWriterLeavesNoHalfObject) {
  const unsigned temporary_files = has_nameless_files(scratch_.path()) ? 0 : 1;
  for (const auto& [way, files_left] : {std::pair{"", temporary_files}, std::pair{",publish=rename", 1U}}) {
    const auto backend = posix_at(root(), way);
    ASSERT_OK(backend->names().make_folders(""));
    const pid_t child = ::fork();
    if (child == 0) {
      const auto writer = backend->create("object");
      if (writer && (*writer)->append(pattern(100'000)).ok()) ::raise(SIGKILL);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(files_in(root()), files_left);
    EXPECT_OK(backend->names().list("", [](const Entry& entry) {
      ADD_FAILURE() << "sees " << entry.name;
      return true;
    }));
    EXPECT_ERRC(Errc::not_found, backend->names().stat("object"));
    std::filesystem::remove_all(root());
  }
}

TEST_F(Posix, ListsWhatCanBeReadAndFollowsLinks) {
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "object", "water"));
  ASSERT_OK(backend->names().make_folders("folder"));
  std::filesystem::create_symlink("object", root() / "link");
  std::filesystem::create_symlink("folder", root() / "folder_link");
  std::filesystem::create_symlink("nowhere", root() / "dangling");
  ASSERT_EQ(::mkfifo((root() / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", root() / "device");
  std::vector<std::string> seen;
  std::vector<std::string> special;
  const auto visit = [&](const Entry& entry) {
    seen.push_back(entry.name + " " + std::to_string(entry.bytes) + (entry.folder ? "/" : ""));
    return true;
  };
  const auto skipped = [&](std::string_view name) { special.emplace_back(name); };
  ASSERT_OK(backend->names().list_all("", visit, skipped));
  std::sort(special.begin(), special.end());
  EXPECT_EQ(special, (std::vector<std::string>{"device", "pipe"}));
  seen.clear();
  ASSERT_OK(backend->names().list("", visit));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen,
            (std::vector<std::string>{"dangling 0", "folder 0/", "folder_link 0/", "link 5", "object 5"}));
  EXPECT_ERRC(Errc::not_found, read_all(*backend, "dangling"));
}

TEST_F(Posix, AnObjectThatShrinksIsTruncated) {
  const auto backend = posix_at(root());
  ASSERT_OK(put(*backend, "object", "water"));
  const auto reader = backend->open("object");
  ASSERT_OK(reader);
  ASSERT_EQ(::truncate((root() / "object").c_str(), 3), 0);
  std::vector<std::byte> out(5);
  EXPECT_ERRC(Errc::truncated, (*reader)->read_at(0, out));
  EXPECT_ERRC(Errc::truncated, backend->read_object("object", 5, out));
}

TEST_F(Posix, ALockKeepsOtherProcessesOutAndDiesWithItsHolder) {
  const auto backend = posix_at(root());
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = posix_at(root());
    const auto held = mine->names().lock("lock");
    const char answer = held ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(0);
  }
  char answer = 'n';
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto refused = backend->names().lock("lock");
  EXPECT_ERRC(Errc::busy, refused);
  EXPECT_NE(refused.error().what.find("pid " + std::to_string(child)), std::string::npos)
      << refused.error().what;
  EXPECT_NE(refused.error().what.find("boot "), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_OK(backend->names().lock("lock"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Posix, FreeSpaceIsWhatDfSaysForEveryUser) {
  std::filesystem::create_directories(root());
  const auto space = std::filesystem::space(root());
  const auto backend = posix_at(root());
  const auto free = backend->names().free_bytes();
  ASSERT_OK(free);
  // Other programs may write to this file system, so the result may differ by a tenth.
  const auto expected = double(space.available);
  EXPECT_NEAR(double(*free), expected, expected / 10);
  EXPECT_TRUE(as_plain_user([&] {
    const auto mine = posix_at(root())->names().free_bytes();
    ASSERT_OK(mine);
    EXPECT_NEAR(double(*mine), expected, expected / 10);
  }));
}

}  // namespace
}  // namespace penstock
