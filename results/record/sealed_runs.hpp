// Finds the lines that are missing in a file of sealed records.
#pragma once

#include <cstddef>
#include <string>

#include "results/record/store.hpp"

namespace penstock {

// Follows the seals through a file, line by line, and says which lines are missing. A file may have several
// runs, one after another.
class SealedRuns {
 public:
  // Call next_line() with the seal of each line, and end_of_file() after the last line. They return a text
  // such as "line 3 of 3 of a run is missing", or "" if no line is missing.
  std::string next_line(const SealedPosition& seal);
  std::string end_of_file();
  // Call it for a line that could not be read. Its reader reports it, so it must not be reported as missing,
  // too.
  void unreadable_line();

 private:
  static std::string missing(size_t first, size_t last, size_t lines);

  size_t next_number_ = 1;  // number of the line that should come next in its run
  size_t lines_ = 0;        // number of lines of the current run; 0 before its first line
};

}  // namespace penstock
