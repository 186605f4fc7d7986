#include "profiling/interpose/counting/paths.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::interpose {
namespace {

std::string absolute(const char* path, bool* had_parent_parts = nullptr) {
  AbsoluteName name;
  if (!absolute_name(AT_FDCWD, path, name)) return "?";
  if (had_parent_parts != nullptr) *had_parent_parts = name.had_parent_parts;
  return {name.text, name.length};
}

TEST(AbsoluteName, HasNoEmptyPartsAndNoDots) {
  EXPECT_EQ(absolute("/a/b"), "/a/b");
  EXPECT_EQ(absolute("//a///b/"), "/a/b");
  EXPECT_EQ(absolute("/./a/./b/."), "/a/b");
  EXPECT_EQ(absolute("/"), "/");
  EXPECT_EQ(absolute("/.."), "/");
  bool had_parent_parts = false;
  EXPECT_EQ(absolute("/a/c/../b", &had_parent_parts), "/a/b");
  EXPECT_TRUE(had_parent_parts);
  EXPECT_EQ(absolute("/...", &had_parent_parts), "/...");
  EXPECT_FALSE(had_parent_parts);
  EXPECT_EQ(absolute(("/" + std::string(5000, 'x')).c_str()), "?");
  EXPECT_EQ(absolute(nullptr), "?");
}

// The expected result, part by part: "" and "." are left out, and ".." removes the part before it.
std::string by_parts(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t from = 0; from < path.size();) {
    const size_t to = std::min(path.find('/', from), path.size());
    const std::string part = path.substr(from, to - from);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (part != ".." && part != "." && !part.empty()) parts.push_back(part);
    from = to + 1;
  }
  std::string text;
  for (const std::string& part : parts) text += "/" + part;
  return text.empty() ? "/" : text;
}

// Long names are copied in pieces of sixteen bytes. A part may begin in one piece and end in the next. No
// byte after the end of the name may be read.
TEST(AbsoluteName, IsRightForPartsAtEveryOffset) {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const end = static_cast<char*>(memory) + page;
  ASSERT_EQ(::mprotect(end, page, PROT_NONE), 0);
  for (size_t length = 1; length <= 50; ++length) {
    for (const char* odd_part : {"", "//", "/./", "/../", "/.x", "/..x", "x."}) {
      const size_t bytes = std::string_view(odd_part).size();
      for (size_t at = 1; at + bytes <= length; ++at) {
        std::string path = "/" + std::string(length - 1, 'a');
        path.replace(at, bytes, odd_part);
        char* text = end - path.size() - 1;
        memcpy(text, path.c_str(), path.size() + 1);
        ASSERT_EQ(absolute(text), by_parts(path)) << path;
        if (bytes == 0) break;
      }
    }
  }
  ::munmap(memory, 2 * page);
}

TEST(AbsoluteName, BeginsInTheWorkingDirectory) {
  note_working_directory();
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(absolute("a/b"), here + "/a/b");
  EXPECT_EQ(absolute("./a"), here + "/a");
  EXPECT_EQ(absolute("../a"), std::filesystem::path(here).parent_path() / "a");
}

TEST(AbsoluteName, EqualTextsHaveEqualKeysAndOtherTextsDoNot) {
  AbsoluteName a;
  AbsoluteName b;
  ASSERT_TRUE(absolute_name(AT_FDCWD, "/a//b", a));
  ASSERT_TRUE(absolute_name(AT_FDCWD, "/a/b", b));
  EXPECT_EQ(a.file, b.file);
  ASSERT_TRUE(absolute_name(AT_FDCWD, "/a/c", b));
  EXPECT_NE(a.file, b.file);
}

// A page of memory that is followed by a guard page, which cannot be read.
class GuardedMemory {
 public:
  GuardedMemory()
      : at_(static_cast<char*>(
            ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(at_ + kPage, kPage, PROT_NONE);
  }
  ~GuardedMemory() { ::munmap(at_, 2 * kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  char* end() const { return at_ + kPage; }

 private:
  static constexpr size_t kPage = 4096;
  char* at_;
};

TEST(ProgramsMemory, IsReadUpToItsEndAndNoFurther) {
  const GuardedMemory memory;
  std::memcpy(memory.end() - 6, "/file", 6);
  EXPECT_TRUE(is_readable_path(memory.end() - 6));
  memory.end()[-1] = 'x';
  EXPECT_FALSE(is_readable_path(memory.end() - 6));
  EXPECT_FALSE(is_readable_path(memory.end()));
  EXPECT_FALSE(is_readable_path(nullptr));
  const std::string longest(size_t{1} << 14U, 'a');
  EXPECT_FALSE(is_readable_path(longest.c_str()));
  EXPECT_TRUE(is_readable(memory.end() - 6, 6));
  EXPECT_FALSE(is_readable(memory.end() - 6, 7));
  EXPECT_FALSE(is_readable(nullptr, 8));
}

}  // namespace
}  // namespace penstock::interpose
