// A file's absolute name as the program gave it: from the root, without "//", "." and "..". Symbolic links
// are not followed.
//
// Threads: the functions that fill an AbsoluteName fill the member `name` of the calling thread's log, and
// run only within an Update of that log. A handler that interrupted an Update of its own thread never calls
// them, because that Update may be using `name`. All other functions need no Update, and any thread or
// handler may call them.
// Locks: none.
// Memory: nothing is allocated; stdio and the locale are not used. errno does not change.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace penstock::interpose {

struct AbsoluteName {
  static constexpr size_t kMostBytes = 4352;
  uint64_t file = 0;  // XXH3_64bits of the text, never 0
  uint32_t length = 0;
  bool had_parent_parts =
      false;  // the path had "..": if that followed a symbolic link, the text may name another file
  char text[kMostBytes];
};

// Stores the absolute name of `path` in `name`. `at` is the directory of a relative path (AT_FDCWD or a
// descriptor). False if the name is too long, or if its directory is not known.
bool absolute_name(int at, const char* path, AbsoluteName& name) noexcept;
// Whether the name stands for an open descriptor of the process: /dev/stdin, /dev/fd/3, /proc/self/fd/3.
bool is_descriptors_name(const AbsoluteName& name) noexcept;
// A faster is_descriptors_name(): it calls that function only for names that begin with "/dev" or "/pro".
inline bool names_descriptor(const AbsoluteName& name) noexcept {
  const auto begins_with = [&name](const char* four) { return __builtin_memcmp(name.text, four, 4) == 0; };
  return (begins_with("/dev") || begins_with("/pro")) && is_descriptors_name(name);
}
// Reads the name of a descriptor's file from /proc. The file may be outside of all file systems: "pipe:[7]".
bool name_of_descriptor(int fd, AbsoluteName& name) noexcept;
// Calls stat() for a path; symbolic links are followed. If `path` is "", it describes the descriptor `at`
// itself. False if the call fails.
bool inspect(int at, const char* path, struct stat& status) noexcept;

// Reads the working directory's name again. Called after the directory has changed, or may have.
void note_working_directory() noexcept;

// Whether the program's memory at `from` can be read. Used for pointers that the kernel has not checked yet.
bool is_readable(const void* from, size_t bytes) noexcept;
// Whether the program's text at `text` can be read up to its NUL. False also if there is no NUL within
// PATH_MAX bytes.
bool is_readable_path(const char* text) noexcept;

}  // namespace penstock::interpose
