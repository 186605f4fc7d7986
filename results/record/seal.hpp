// The seal of a line in a record file: which of how many lines of its run it is, and the CRC32C of all that
// stands before. It is the last member of the record's own object, so that every line stays a record:
//
//   {"schema":1,...,"reason":"","seal":{"line":2,"of":3,"crc32c":"0a1b2c3d"}}
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct Seal {
  std::size_t line = 0;  // of the run, from 1
  std::size_t of = 0;
};

// `record`, the JSON object of a record in one line, with its seal.
std::string seal_line(std::string_view record, const Seal& seal);

// The seal of a line whose JSON is `json`; nothing where it has none (lines of earlier versions, and those
// that somebody made). corrupt where the line is not what was sealed.
Result<std::optional<Seal>> check_seal(std::string_view line, const Json& json);

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
