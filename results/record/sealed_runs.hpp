// Finds the lines that are missing in a file of sealed records.
#pragma once

#include <cstddef>
#include <string>

#include "results/record/store.hpp"

namespace penstock {

// Follows the seals through a file, line by line, and names the missing lines. A file may have several runs,
// one after the other.
class SealedRuns {
 public:
  // next_line() is called with the seal of each line, end_of_file() after the last line. Each returns a text
  // such as "line 3 of 3 of a run is missing", or "" if no line is missing.
  std::string next_line(const SealedPosition& seal);
  std::string end_of_file();
  // Counts a line that could not be read. It is reported elsewhere, so it must not be reported as missing
  // too.
  void unreadable_line();

 private:
  static std::string missing(size_t first, size_t last, size_t lines);

  size_t next_number_ = 1;  // the number of the line that should come next
  size_t lines_ = 0;        // lines of the current run; 0 before its first line
};

}  // namespace penstock
