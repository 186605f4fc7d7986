#include "profiling/subcommands/watched_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "io_backends/testing/testing.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_folder.hpp"
#include "profiling/subcommands/program_check.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

Result<int> shell(const std::string& script, const std::function<void(uint32_t)>& on_end = {}) {
  return run_watched("/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, on_end);
}

TEST(WatchedRun, ReturnsTheExitCodeOfTheProgram) {
  EXPECT_EQ(shell("exit 0").value(), 0);
  EXPECT_EQ(shell("exit 7").value(), 7);
  EXPECT_EQ(shell("kill -KILL $$").value(), 128 + SIGKILL);
  EXPECT_EQ(shell("kill -INT $$").value(), 128 + SIGINT);
}

TEST(WatchedRun, KernelCountersOfAKilledProgramCanBeRead) {
  penstock_kernel_io io{};
  bool asked = false;
  EXPECT_EQ(shell("kill -KILL $$", [&](uint32_t pid) { asked = read_kernel_io(pid, io); }).value(), 137);
  EXPECT_TRUE(asked);
  EXPECT_GT(io.rchar, 0U);
}

TEST(WatchedRun, ForwardsSignals) {
  EXPECT_TRUE(in_child_process([] {
    EXPECT_EQ(shell("trap 'exit 42' TERM; kill -TERM $PPID; while :; do sleep 0.05; done").value(), 42);
  }));
}

TEST(WatchedRun, KeepsDescriptorsAndSignals) {
  EXPECT_TRUE(in_child_process([] {
    ScratchFolder folder;
    const std::string file = (folder.path() / "out").string();
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::dup2(fd, 9), 9);
    std::signal(SIGXFSZ, SIG_IGN);  // like the main program
    EXPECT_EQ(shell("echo here >&9; grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status && exit 5").value(),
              5);
    std::ifstream in(file);
    std::string text;
    std::getline(in, text);
    EXPECT_EQ(text, "here");
  }));
}

TEST(WatchedRun, ReportsAProgramThatCannotBeRun) {
  EXPECT_ERRC(Errc::not_found, run_watched("/none", {"none"}, {}, {}));
}

class ProgramCheckTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content, mode_t mode = 0755) const {
    const fs::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), mode);
    return path.string();
  }
  static std::string copy_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  ScratchFolder folder_;
};

TEST_F(ProgramCheckTest, FindsProgramsAsAShellDoes) {
  EXPECT_OK(find_program("sh"));
  EXPECT_ERRC(Errc::not_found, find_program("no-such-program-anywhere"));
  EXPECT_ERRC(Errc::not_found, find_program("/no/such/program"));
  EXPECT_ERRC(Errc::not_found, find_program(""));
  EXPECT_ERRC(Errc::permission_denied, find_program(file("data", "x", 0644)));
  EXPECT_ERRC(Errc::permission_denied, find_program(folder_.path().string()));
}

TEST_F(ProgramCheckTest, AcceptsDynamicProgramsAndTheirScripts) {
  EXPECT_OK(check_watchable("/bin/sh"));
  EXPECT_OK(check_watchable(file("script", "#!/bin/sh -e\nexit 0\n")));
  EXPECT_OK(check_watchable(file("indirect", "#! " + file("script2", "#!/bin/sh\n") + "\n")));
}

TEST_F(ProgramCheckTest, ReportsWhyAProgramCannotBeWatched) {
  std::string program = copy_of("/bin/sh");
  ASSERT_GT(program.size(), 4096U);
  std::string narrow = program;
  narrow[4] = 1;
  EXPECT_TRUE(fails_with(Errc::invalid_argument, check_watchable(file("narrow", narrow)), "32-bit"));
  // A program without the header that names the loader is static.
  std::string fixed = program;
  for (size_t at = 64; at + 56 <= 2048; at += 56)
    if (fixed[at] == 3 && fixed[at + 1] == 0 && fixed[at + 2] == 0 && fixed[at + 3] == 0) fixed[at] = 0;
  EXPECT_TRUE(fails_with(Errc::invalid_argument, check_watchable(file("fixed", fixed)), "statically"));
  EXPECT_ERRC(Errc::permission_denied, check_watchable(file("text", "exit 0\n")));
  EXPECT_ERRC(Errc::permission_denied, check_watchable(file("short", program.substr(0, 40))));
  EXPECT_ERRC(Errc::permission_denied, check_watchable(file("cut", program.substr(0, 100))));
  EXPECT_ERRC(Errc::not_found, check_watchable(file("orphan", "#!/no/such/interpreter\n")));
}

TEST_F(ProgramCheckTest, RefusesAProgramThatGainsRights) {
  const std::string own = file("own", copy_of("/bin/sh"), 04755);
  EXPECT_OK(check_watchable(own)) << "its owner gains nothing";
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a program to somebody else";
  const std::string others = file("others", copy_of("/bin/sh"));
  ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(others.c_str(), 04755), 0);
  EXPECT_TRUE(fails_with(Errc::invalid_argument, check_watchable(others), "setuid"));
}

TEST(SessionFolders, ArePrivateToTheirOwnerAndMustBeEmpty) {
  ScratchFolder scratch;
  const auto mode = [](const fs::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0U;
  };
  const auto made = make_session_folder(scratch.path() / "new");
  ASSERT_OK(made);
  EXPECT_EQ(mode(*made), 0700U);
  fs::create_directory(scratch.path() / "there");
  EXPECT_EQ(mode(make_session_folder(scratch.path() / "there/").value()), 0700U);
  SessionNote note;
  note.command = {"a", "b\xff"};
  note.exclude = {"*.log"};
  note.exit_code = 3;
  ASSERT_OK(write_note(*made, note));
  EXPECT_EQ(mode(*made / "session.json"), 0600U);
  EXPECT_EQ(read_note(*made).exclude, note.exclude);
  EXPECT_EQ(read_note(*made).exit_code, 3);
  EXPECT_TRUE(fails_with(Errc::already_exists, make_session_folder(*made), "not empty"));
  EXPECT_ERRC(Errc::not_found, make_session_folder(scratch.path() / "a" / "b"));
  std::ofstream(scratch.path() / "file") << "x";
  EXPECT_ERRC(Errc::already_exists, make_session_folder(scratch.path() / "file"));
}

TEST(SessionFolders, AnInvalidSessionJsonIsIgnored) {
  ScratchFolder scratch;
  EXPECT_TRUE(read_note(scratch.path()).command.empty());
  for (const std::string text : {"", "[]", "{\"command\": 7, \"exit_code\": \"x\"}", "{", "\xff"}) {
    std::ofstream(scratch.path() / "session.json") << text;
    EXPECT_TRUE(read_note(scratch.path()).command.empty()) << text;
  }
  std::ofstream(scratch.path() / "session.json") << std::string(100'000, '[');
  EXPECT_TRUE(read_note(scratch.path()).command.empty());
  EXPECT_TRUE(read_note("/no/such/folder").command.empty());
}

}  // namespace
}  // namespace penstock
