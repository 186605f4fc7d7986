// Which of a session's files a report is about: what the user's patterns say, files rather than pipes, and of
// Python programs not what the interpreter itself reads to start.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/session/file_sums.hpp"

namespace penstock {

// Whether a path is a folder, or what is in it at any depth.
bool is_within(std::string_view path, std::string_view folder);

// A shell pattern (fnmatch): '*' stands for any characters, '/' included. One that begins with '/' is held
// against the whole path; "dir/" means all below folders of that name; one without '/' is held against the
// last part of the path, and any other one against its end ("data/*.jpg" finds /a/data/1.jpg).
bool matches(std::string_view pattern, std::string_view path);

// What a Python interpreter and the libraries below it read to start: .py, .pyc, .so and folders below
// Python's own library folders, /proc, /sys, /dev (but /dev/shm), and what libc reads for itself.
bool is_start_up_noise(std::string_view path, unsigned kind, bool moved_bytes);

struct SessionFilter {
  std::vector<std::string> include;  // none: all
  std::vector<std::string> exclude;
  bool everything = false;  // pipes, sockets, devices and Python's start-up as well

  bool wants(std::string_view path, unsigned kind, bool moved, const SessionImage& image) const;
  FileWanted wanted() const { return std::bind_front(&SessionFilter::wants, this); }
};

}  // namespace penstock
