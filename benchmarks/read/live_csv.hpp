// Writes the rates of a running measurement to a CSV file, one line each second. A user can watch the file or
// plot it together with other counters.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Writes the columns time,tier,threads,files_per_s,mib_per_s. The time is UTC in seconds since 1970, with
// three decimals. A rate is the mean since the previous line. Every line is flushed. Does nothing if
// constructed without a file. Only one thread may use it.
class LiveCsv {
 public:
  static Result<LiveCsv> open(const std::string& path);  // replaces an existing file; "": writes nothing

  void begin(std::string_view tier, unsigned threads);  // call it when a measured repeat starts
  // Writes a line if a second has passed since the last line. May be called at any rate.
  void tick(const RunTally& so_far);
  void end(const RunTally& total);  // writes the line of the last, incomplete second
  Result<void> check() const;       // the first error of a write, such as a full disk

 private:
  void write_line(const RunTally& now);
  void flush();

  std::string path_;
  int failed_errno_ = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::string tier_;
  unsigned threads_ = 0;
  RunTally last_tally_;
};

}  // namespace penstock
