// Writes one line each second of a measurement, for a user who watches it or plots it with other counters.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The columns are time,tier,threads,files_per_s,mib_per_s. The time is UTC seconds since 1970 with three
// decimals. The rates are those since the previous line. Every line is flushed. Does nothing if constructed
// without a file. One thread.
class LiveCsv {
 public:
  static Result<LiveCsv> open(const std::string& path);  // replaces an existing file; "": writes nothing

  void begin(std::string_view tier, unsigned threads);  // starts a measured repeat
  // May be called at any rate. Writes one line each second.
  void tick(const RunTally& so_far);
  void end(const RunTally& total);  // writes the line of the last, incomplete second

 private:
  void write_line(const RunTally& now);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::string tier_;
  unsigned threads_ = 0;
  RunTally last_tally_;
};

}  // namespace penstock
