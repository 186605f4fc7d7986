// For tests only: checks of Results, scratch folders, and work in a child process.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

#define EXPECT_OK(...) EXPECT_TRUE(::penstock::is_ok(__VA_ARGS__))
#define ASSERT_OK(...) ASSERT_TRUE(::penstock::is_ok(__VA_ARGS__))
#define EXPECT_ERRC(errc, ...) EXPECT_TRUE(::penstock::fails_with(errc, __VA_ARGS__))

namespace penstock {

template <class T>
testing::AssertionResult is_ok(const Result<T>& result) {
  if (result.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << errc_name(result.error().code) << ": " << result.error().message();
}
// Tests that the result is an error with this Errc and a message that contains `words` and is not empty.
template <class T>
testing::AssertionResult fails_with(Errc errc, const Result<T>& result, std::string_view words = "") {
  if (result.ok()) return testing::AssertionFailure() << "should fail with " << errc_name(errc);
  if (result.error().what.empty() || result.error().what.find(words) == std::string::npos)
    return testing::AssertionFailure() << "does not say '" << words << "': " << result.error().message();
  if (result.error().code == errc) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "should fail with " << errc_name(errc) << ", not "
                                     << errc_name(result.error().code) << ": " << result.error().message();
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += char(byte);
  return text;
}
// Returns `count` bytes that depend on their offset and on the seed.
inline std::vector<std::byte> pattern(size_t count, unsigned seed = 1) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + size_t{seed} * 97) & 0xffU);
  return bytes;
}

// A temporary folder that other users may read. The destructor removes it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    std::filesystem::permissions(name, std::filesystem::perms(0755));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Runs `body` in a forked child process and returns whether its EXPECTs held. Of all threads, only the
// calling one exists in the child.
template <class Body>
bool in_child_process(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Lets this process open only `count` more descriptors. Call it only in a child process. Returns false if the
// limit cannot be set.
inline bool leave_descriptors(rlim_t count) {
  const int lowest_free = ::dup(STDIN_FILENO);
  if (lowest_free < 0) return false;
  ::close(lowest_free);
  const rlimit limit{static_cast<rlim_t>(lowest_free) + count, static_cast<rlim_t>(lowest_free) + count};
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// Does the same as in_child_process(), but without root's rights: if the tests run as root, the child becomes
// user 65534.
template <class Body>
bool as_plain_user(Body body) {
  return in_child_process([&] {
    constexpr uid_t kUserNobody = 65534;
    if (::geteuid() == 0) {
      ASSERT_EQ(::setgroups(0, nullptr), 0);
      ASSERT_EQ(::setgid(kUserNobody), 0);
      ASSERT_EQ(::setuid(kUserNobody), 0);
    }
    body();
  });
}

}  // namespace penstock
