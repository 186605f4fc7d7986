// The conclusion from the records of `train` in three sentences. They are about the run with the highest
// accelerator utilization (AU); if several have the same, about the one with the fewest threads.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "results/cells/cells.hpp"

namespace penstock::verdicts {
namespace {

using namespace train_metrics;

double utilization_of(const Record& record) {
  return metric_value(record, kUtilization).value_or(-1);
}

// "4 threads, prefetch 2"
std::string configuration_text(const Record& record) {
  const auto threads = threads_of(record);
  return (threads ? threads_text(*threads) + ", " : "") + fmt::format("prefetch {}", *train_prefetch(record));
}

std::string limit_text(const Record& best, const std::string& title, const std::string& cause) {
  if (best.verdict == Verdict::client_bound)
    return fmt::format("This machine's processors limit {}, so the tier cannot be judged.", title);
  if (utilization_of(best) >= kAcceleratorLimits)
    return fmt::format("The accelerator limits {}, not its input.", title);
  if (cause.empty()) return fmt::format("What limits {} is unknown from its lost time.", title);
  return fmt::format("The input limits {}: the accelerator waits most for '{}'.", title, cause);
}

std::string advice_text(const Record& best, const std::string& cause) {
  if (best.verdict == Verdict::client_bound) return "Run the same command on a machine with more processors.";
  if (utilization_of(best) >= kAcceleratorLimits)
    return fmt::format("Use {}; a faster tier would not help.", configuration_text(best));
  if (*train_prefetch(best) == 0)
    return "Run the same command with --prefetch 4, so that input is prepared during the steps.";
  const uint64_t threads = threads_of(best).value_or(1);
  if (cause == "read" || cause == "open" || cause == "list")
    return fmt::format("Run the same command with --threads {}, or with the data on a faster tier.",
                       2 * threads);
  if (cause == "straggler")
    return "Find out why one rank is slower than the others; its figures are in the section Training.";
  return fmt::format(
      "Run the same command with --threads {}, or on a machine with more processors; '{}' does not wait for "
      "the "
      "tier.",
      2 * threads, cause);
}

}  // namespace

std::vector<std::string> train_bottom_line(std::span<const Record> records, const Output& output) {
  const Record* best = nullptr;
  const Record* worst = nullptr;
  std::string title;
  const Record* any = nullptr;
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at) {
      any = record;
      if (utilization_of(*record) < 0) continue;
      const auto is_better = [](const Record& a, const Record& b) {
        return utilization_of(a) > utilization_of(b) ||
               (utilization_of(a) == utilization_of(b) && threads_of(a) < threads_of(b));
      };
      if (worst == nullptr || utilization_of(*record) < utilization_of(*worst)) worst = record;
      if (best != nullptr && !is_better(*record, *best)) continue;
      best = record;
      title = group.title;
    }
  if (any == nullptr) return {};
  if (best == nullptr)
    return {
        "What limits the training is unknown, because no accelerator was emulated.",
        fmt::format("It used {} samples/s.", or_dash(metric_value(*any, kSampleRate), format_number, output)),
        "Run the same command with --accelerator emulated:step=100ms, or the step time of yours."};
  const auto causes = lost_parts(*best);
  const std::string cause = causes.empty() || causes.front().seconds <= 0 ? "" : causes.front().cause;
  const std::string at_best = fmt::format("Its accelerator utilization (AU) is at most {} ({})",
                                          format_percent(utilization_of(*best)), configuration_text(*best));
  return {limit_text(*best, title, cause),
          worst == best ? at_best + "."
                        : fmt::format("{}, and at least {} ({}).", at_best,
                                      format_percent(utilization_of(*worst)), configuration_text(*worst)),
          advice_text(*best, cause)};
}

}  // namespace penstock::verdicts
