// Selects the files of a session that a report covers. It applies the user's patterns, and leaves out pipes,
// devices and the files that the Python interpreter reads to start.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/session/file_sums.hpp"

namespace penstock {

// True if the path is the folder itself or is inside it at any depth.
bool is_within(std::string_view path, std::string_view folder);

// Matches a path with a shell pattern (fnmatch), in which '*' matches any characters, including '/'. A
// pattern that begins with '/' or '*' is compared with the whole path. A pattern without '/' is compared with
// the last part of the path. Any other pattern is compared with the end of the path: "data/*.jpg" matches
// /a/data/1.jpg. A pattern such as "dir/" matches all files below folders of that name.
bool matches(std::string_view pattern, std::string_view path);

// True for files that a Python interpreter and its libraries read to start. These are /proc, /sys, /dev (but
// not /dev/shm), the configuration of libc and of the interpreter, and some files in Python's library
// folders: code (.py, .pyc, .so), directories, and files of which no bytes were moved.
bool is_start_up_noise(std::string_view path, unsigned kind, bool moved_bytes);

struct SessionFilter {
  std::vector<std::string> include;  // empty: all files
  std::vector<std::string> exclude;
  bool all_files = false;  // true: also pipes, sockets, devices and the files that Python reads to start

  bool wants(std::string_view path, unsigned kind, bool moved_bytes, const ProcessFile& process_file) const;
  FileFilter wanted() const { return std::bind_front(&SessionFilter::wants, this); }
};

}  // namespace penstock
