// The files of a session that are wanted, by key: for what knows files by their keys alone, as segments do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

struct NamedFile {
  std::uint64_t file = 0;
  std::string_view path;   // is in a mapping
  bool of_python = false;  // what Python programs did to it is wanted; what others did
  bool of_others = false;
};

// Takes 32 bytes a file. Of names that share a key the first one stands for all.
class NamedFiles {
 public:
  NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter);

  // Null where what the image did to the file is not wanted.
  const NamedFile* find(std::uint64_t file, const SessionImage& image) const;
  // Of what find() gave: counting from 0.
  std::size_t number(const NamedFile& file) const { return static_cast<std::size_t>(&file - files_.data()); }

 private:
  std::vector<NamedFile> files_;  // by key
};

}  // namespace penstock
