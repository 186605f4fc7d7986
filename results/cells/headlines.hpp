// Decides by which metrics records are compared if the user names none. These are the headlines: the metrics
// that a record marks as most important.
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

using Commands = std::span<const CommandInfo* const>;  // all commands of this build: command_registry()

// All metrics that records of a command can have. `command` may also be the name of a tool whose results can
// be imported. Empty if the name is unknown.
std::span<const MetricInfo> metrics_of(std::string_view command, Commands commands);

// Collects the headlines of several records of one command. `table` is the command's table of metrics. For a
// record that marks no headlines (from an earlier version), the headlines of the table are added. If no
// headline is found at all, every metric counts as a headline.
class Headlines {
 public:
  explicit Headlines(std::span<const MetricInfo> table) : table_(table) {}

  void add(const Record& record);
  bool contains(std::string_view metric) const;

 private:
  std::span<const MetricInfo> table_;
  std::set<std::string, std::less<>> marked_names_;
  std::vector<MetricInfo> table_headlines_;
};

// The name of the metric that represents the record when only one figure is shown: the first metric of
// `table` that the record has, else a headline, else any metric. Metrics of which neither direction is better
// are skipped. "" if no metric is left.
std::string first_metric(const Record& record, std::span<const MetricInfo> table);

// The names of the metrics that a short table shows of the record: that of first_metric(), then the headlines
// of the table that are rates, times or sizes and no families. At most four; the only one may be "".
std::vector<std::string> shown_metrics(const Record& record, std::span<const MetricInfo> table);

}  // namespace penstock
