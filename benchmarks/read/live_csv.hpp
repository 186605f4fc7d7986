// Writes a line a second while a measurement runs, to watch it or to plot it with other counters.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// time,tier,threads,files_per_s,mib_per_s: UTC seconds since 1970 with three decimals, then the rates of the
// time since the line before. Every line is flushed. Does nothing when made without a file. One thread.
class LiveCsv {
 public:
  static Result<LiveCsv> open(const std::string& path);  // "" : silent; replaces a file that is there

  void begin(std::string_view tier, unsigned threads);  // one measured repeat
  void tick(const RunTally& so_far);                    // as often as you like; writes once a second
  void end(const RunTally& total);                      // the rest of the last second

 private:
  void line(const RunTally& now);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::string tier_;
  unsigned threads_ = 0;
  RunTally last_;
};

}  // namespace penstock
