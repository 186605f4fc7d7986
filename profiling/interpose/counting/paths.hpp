// A file's absolute name as the program called it: from the root, without "//", "." and "..", links not
// followed.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace penstock::interpose {

struct AbsoluteName {
  static constexpr std::size_t kRoom = 4352;
  std::uint64_t file = 0;  // XXH3_64bits of the text, never 0
  std::uint32_t length = 0;
  bool climbed = false;  // there was a "..": behind a link the text may be another file's
  char text[kRoom];
};

// False where it cannot be told: a name that is too long, or a directory that nobody knows.
bool absolute_name(int at, const char* path, AbsoluteName& name) noexcept;
// Whether it is a name for an open file of the process: /dev/stdin, /dev/fd/3, /proc/self/fd/3.
bool is_descriptors_name(const AbsoluteName& name) noexcept;
inline bool names_descriptor(const AbsoluteName& name) noexcept {
  const auto begins = [&name](const char* four) { return __builtin_memcmp(name.text, four, 4) == 0; };
  return (begins("/dev") || begins("/pro")) && is_descriptors_name(name);
}
// Of a descriptor, as /proc says: also "pipe:[7]" and what else has no place in a file system.
bool name_of_descriptor(int fd, AbsoluteName& name) noexcept;
// What a path leads to, links followed; "" is the descriptor `at` itself. False where nothing is there.
bool inspect(int at, const char* path, struct stat& about) noexcept;

// The working directory has changed (or may have).
void note_working_directory() noexcept;

}  // namespace penstock::interpose
