#include "benchmarks/probe/probe_report.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace penstock {
namespace {

// The line of the table about a probe.
std::string line_of(const std::string& table, const std::string& probe) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    if (line.find(" " + probe + " ") != std::string::npos) return line;
  return "";
}

TEST(ProbeTable, EachRowHasItsOwnSpreadAndVerdict) {
  Record record;
  record.command = "tiers";
  record.parameters =
      Json{{"tier", "disk"}, {"threads", 1}, {"verdicts", Json{{"write.random.1m.1", "short"}}}};
  record.verdict = Verdict::short_time;
  record.reason = "write.random.1m.1 lasted 0.472 s, less than 0.5 s";
  const auto set = [&](const std::string& probe, std::vector<double> rates) {
    record.metrics[probe + ".ops_per_s"] = {"1/s", Better::higher, "repeat", std::move(rates)};
  };
  set("metadata.create", {35013, 16066, 2709});
  set("read.random.4k.1", {1000, 1010, 1020});
  set("write.random.1m.1", {100, 101});
  set("write.sequential.1m.1", {100});
  const std::string table = probe_table({&record, 1}, Output{});
  EXPECT_NE(line_of(table, "metadata.create").find("201%  noisy"), std::string::npos) << table;
  EXPECT_TRUE(line_of(table, "read.random.4k.1").ends_with(" 2%")) << table;
  EXPECT_NE(line_of(table, "write.random.1m.1").find("1.0%  short"), std::string::npos) << table;
  EXPECT_TRUE(line_of(table, "write.sequential.1m.1").ends_with(" -")) << "one repeat has no spread\n"
                                                                       << table;
  EXPECT_NE(table.find(record.reason), std::string::npos);
}

}  // namespace
}  // namespace penstock
