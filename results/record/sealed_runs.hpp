// Finds the lines that are missing in a file of sealed records.
#pragma once

#include <cstddef>
#include <string>

#include "results/record/store.hpp"

namespace penstock {

// Reads the seals of a file, line by line, and finds out which lines are missing. A file may have several
// runs, one after another.
class SealedRuns {
 public:
  // Call next_line() with the seal of each line, and end_of_file() after the last line. Both return "" if no
  // line is missing, otherwise a text such as "line 3 of 3 of a run is missing".
  std::string next_line(const SealedPosition& seal);
  std::string end_of_file();
  // Call it instead of next_line() for a line that could not be read. The caller reports such a line itself,
  // so the line is then not reported as missing.
  void skip_unreadable_line();

 private:
  static std::string missing(size_t first, size_t last, size_t lines);

  size_t next_number_ = 1;  // number of the line that should come next in its run
  size_t lines_ = 0;        // number of lines of the current run; 0 before its first line
};

}  // namespace penstock
