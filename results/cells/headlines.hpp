// The metrics by which records are compared unless others are asked for: those that they mark as headlines.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/metric.hpp"
#include "results/record/record.hpp"

namespace penstock {

using Commands = std::span<const CommandInfo* const>;  // command_registry().present()

// The table of metrics of a command, or of a tool whose results can be imported; empty where neither is
// known.
std::span<const MetricInfo> metrics_of(std::string_view command, Commands commands);

// Of records of one command, with its table. Where a record has no mark (an earlier version made it), the
// headlines of the table are taken; where there are none either, every metric is one.
class Headlines {
 public:
  explicit Headlines(std::span<const MetricInfo> table) : table_(table) {}

  void add(const Record& record);
  bool contains(std::string_view metric) const;

 private:
  std::span<const MetricInfo> table_;
  std::set<std::string, std::less<>> marked_;
  std::vector<MetricInfo> declared_;
};

// The metric that one figure of the record is shown by: the first of the table that it has, else a headline,
// else any; never one without a direction. "" where it has none.
std::string first_metric(const Record& record, std::span<const MetricInfo> table);

}  // namespace penstock
