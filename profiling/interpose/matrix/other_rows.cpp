// Rows of the matrix (matrix.hpp) for metadata calls, and for the ways in which processes begin and end.
//
// Threads: the rows run one after the other in one thread. The row "thread" starts a second thread and joins
// it at once.
// Locks: none.
// Forks: the process has one thread at each fork, so a child may call any function.
// Signals: some children end by a signal that they send to themselves.
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "profiling/interpose/matrix/matrix.hpp"

extern char** environ;

namespace penstock::matrix {

namespace {

bool stat_of_descriptor(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  struct stat status {};
  MATRIX_CHECK(::fstat(fd, &status) == 0 && status.st_size == off_t(kBytes));
  return ::close(fd) == 0;
}

bool list_folder(const std::string& path) {
  MATRIX_CHECK(::mkdir((path + ".folder").c_str(), 0700) == 0);
  DIR* folder = ::opendir((path + ".folder").c_str());
  MATRIX_CHECK(folder != nullptr);
  while (::readdir(folder) != nullptr) {
  }
  return ::closedir(folder) == 0;
}

bool list_folder_by_calls(const std::string& path) {
  const std::string folder = path + ".folder";
  MATRIX_CHECK(::mkdir(folder.c_str(), 0700) == 0);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  off64_t position = 0;
  MATRIX_CHECK(fd >= 0 && ::getdents64(fd, block, sizeof(block)) > 0);
  MATRIX_CHECK(::getdirentries64(fd, block, sizeof(block), &position) == 0);
  return ::close(fd) == 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
bool list_folder_with_memory(const std::string& path) {
  MATRIX_CHECK(::mkdir((path + ".folder").c_str(), 0700) == 0);
  DIR* folder = ::opendir((path + ".folder").c_str());
  MATRIX_CHECK(folder != nullptr);
  dirent entry{};
  for (dirent* next = &entry; next != nullptr;) {
    MATRIX_CHECK(::readdir_r(folder, &entry, &next) == 0);
  }
  return ::closedir(folder) == 0;
}
#pragma GCC diagnostic pop

constexpr Row kMetadata[] = {
    {"metadata", "stat",
     [](const std::string& path) {
       struct stat status {};
       return ::stat(path.c_str(), &status) == 0;
     }},
    {"metadata", "lstat",
     [](const std::string& path) {
       struct stat status {};
       return ::lstat(path.c_str(), &status) == 0;
     }},
    {"metadata", "fstat", stat_of_descriptor},
    {"metadata", "fstatat",
     [](const std::string& path) {
       struct stat status {};
       return ::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
     }},
    {"metadata", "statx",
     [](const std::string& path) {
       struct statx status {};
       return ::statx(AT_FDCWD, path.c_str(), 0, STATX_SIZE, &status) == 0;
     }},
    {"metadata", "access", [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }},
    {"metadata", "readdir", list_folder},
    {"metadata", "readdir_r", list_folder_with_memory},
    {"metadata", "getdents64", list_folder_by_calls},
    {"metadata", "fchmodat",
     [](const std::string& path) { return ::fchmodat(AT_FDCWD, path.c_str(), 0600, 0) == 0; }},
    {"metadata", "linkat",
     [](const std::string& path) {
       return ::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, (path + ".to").c_str(), 0) == 0;
     }},
    {"metadata", "rename",
     [](const std::string& path) { return ::rename(path.c_str(), (path + ".to").c_str()) == 0; }},
    {"metadata", "unlink", [](const std::string& path) { return ::unlink(path.c_str()) == 0; }},
    {"metadata", "mkdir",
     [](const std::string& path) { return ::mkdir((path + ".folder").c_str(), 0700) == 0; }},
};

// Runs `work` in a child. `work` must end the child, with this exit code or signal.
template <typename Work>
bool in_child(Work work, int expect_exit, int expect_signal = 0) {
  const pid_t child = ::fork();
  MATRIX_CHECK(child >= 0);
  if (child == 0) {
    work();
    ::abort();
  }
  int status = 0;
  MATRIX_CHECK(::waitpid(child, &status, 0) == child);
  MATRIX_CHECK(expect_signal != 0 ? WIFSIGNALED(status) && WTERMSIG(status) == expect_signal
                                  : WIFEXITED(status) && WEXITSTATUS(status) == expect_exit);
  return true;
}

// The child reads by a descriptor that its parent opened.
bool read_inherited(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  MATRIX_CHECK(fd >= 0);
  in_child(
      [&] {
        MATRIX_CHECK(::read(fd, block, kBytes) == ssize_t(kBytes));
        ::_exit(0);
      },
      0);
  return ::close(fd) == 0;
}

// A child executes this program, which reads the file. vfork(): until execv() the child runs in this
// process's memory, so it only calls execv() and _exit().
bool read_in_new_program(const std::string& path, bool spawns) {
  const std::string program = own_program();
  std::string texts[] = {program, "read", path};
  char* arguments[] = {texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  pid_t child = -1;
  if (spawns) {
    MATRIX_CHECK(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
  } else {
    child = ::vfork();
    if (child == 0) {
      ::execv(program.c_str(), arguments);
      ::_exit(127);
    }
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

constexpr Row kProcesses[] = {
    {"processes", "thread",
     [](const std::string& path) {
       std::thread([&] { open_and_read(path); }).join();
       return true;
     }},
    {"processes", "fork_exit",
     [](const std::string& path) { return in_child([&] { open_and_read(path), std::exit(3); }, 3); }},
    {"processes", "fork__exit",
     [](const std::string& path) { return in_child([&] { open_and_read(path), ::_exit(4); }, 4); }},
    {"processes", "fork_exit_group",
     [](const std::string& path) {
       return in_child([&] { open_and_read(path), ::syscall(SYS_exit_group, 5); }, 5);
     }},
    {"processes", "fork_quick_exit",
     [](const std::string& path) { return in_child([&] { open_and_read(path), std::quick_exit(6); }, 6); }},
    {"processes", "fork_abort",
     [](const std::string& path) {
       return in_child([&] { open_and_read(path), std::abort(); }, 0, SIGABRT);
     }},
    {"processes", "fork_sigterm",
     [](const std::string& path) {
       return in_child([&] { open_and_read(path), ::raise(SIGTERM); }, 0, SIGTERM);
     }},
    {"processes", "fork_sigkill",
     [](const std::string& path) {
       return in_child([&] { open_and_read(path), ::raise(SIGKILL); }, 0, SIGKILL);
     }},
    {"processes", "syscall_fork",
     [](const std::string& path) {
#ifdef SYS_fork
       const long child = ::syscall(SYS_fork);
       if (child == 0) {
         open_and_read(path);
         ::_exit(0);
       }
       return ::waitpid(static_cast<pid_t>(child), nullptr, 0) == child;
#else
       return path.empty();
#endif
     }},
    {"processes", "inherited", read_inherited},
    {"processes", "posix_spawn", [](const std::string& path) { return read_in_new_program(path, true); }},
    {"processes", "vfork_exec", [](const std::string& path) { return read_in_new_program(path, false); }},
};

}  // namespace

std::span<const Row> metadata_rows() {
  return kMetadata;
}
std::span<const Row> process_rows() {
  return kProcesses;
}

}  // namespace penstock::matrix
