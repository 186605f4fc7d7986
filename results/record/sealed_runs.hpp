// Finds the lines that are missing in a file of sealed records.
#pragma once

#include <cstddef>
#include <string>

#include "results/record/store.hpp"

namespace penstock {

// Follows the seals through a file and says which lines are not there. Files that were joined are runs one
// after the other.
class SealedRuns {
 public:
  // Each returns a text ("line 3 of 3 of a run is missing"), or "" where nothing is missing.
  std::string at(const Seal& seal);
  std::string at_end();
  // A line that could not be read, which is named elsewhere: it is not missing as well.
  void damaged();

 private:
  static std::string missing(std::size_t first, std::size_t last, std::size_t of);

  std::size_t next_ = 1;  // the line that is due
  std::size_t of_ = 0;    // 0 where no run has started
};

}  // namespace penstock
