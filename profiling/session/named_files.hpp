// Finds a file by its key, if the filter wants the file. Segments, for example, contain only this key and no
// name.
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
  bool is_wanted_for_python = false;  // the filter wants the calls of Python programs on this file
  // the filter wants the calls of other programs on this file
  bool is_wanted_for_others = false;
};

// The files that the filter wants. Each needs 32 bytes of memory. If several names have the same key, find()
// returns the first of them.
class NamedFiles {
 public:
  NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter);

  // Returns the file with the key `file`; null if no wanted file has this key, or if the filter does not want
  // the calls of this process on the file.
  const NamedFile* find(uint64_t file, const ProcessFile& process_file) const;
  // The index of a file that find() returned, from 0.
  size_t number(const NamedFile& file) const { return size_t(&file - files_.data()); }

 private:
  std::vector<NamedFile> files_;  // sorted by key
};

}  // namespace penstock
