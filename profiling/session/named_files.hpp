// Finds the files that a filter wants by their keys. It serves data that contain only keys, such as segments.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

struct NamedFile {
  uint64_t file = 0;
  std::string_view path;              // points into a mapped file
  bool is_wanted_for_python = false;  // what Python programs did to the file is wanted
  // what other programs did to the file is wanted
  bool is_wanted_for_others = false;
};

// Uses 32 bytes for each file. If several names have the same key, the first is used for all.
class NamedFiles {
 public:
  NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter);

  // Returns null if the filter does not want what this process file did to the file.
  const NamedFile* find(uint64_t file, const ProcessFile& process_file) const;
  // The number of a file that find() returned, from 0.
  size_t number(const NamedFile& file) const { return size_t(&file - files_.data()); }

 private:
  std::vector<NamedFile> files_;  // sorted by key
};

}  // namespace penstock
