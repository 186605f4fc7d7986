// Serves the live figures of the running command as OpenMetrics text, on 127.0.0.1 (--metrics-port).
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/live_tiers.hpp"
#include "results/export/open_metrics.hpp"

namespace penstock {

// What the figures are of.
struct WatchedRun {
  OpenMetricsLabels labels;  // of penstock_run_info: the command, the version, the labels of the user
  std::time_t started = 0;
  std::function<void(std::string_view)> log{};   // tells the user the address
  std::function<void(std::string_view)> warn{};  // tells that the server has failed, on the server's thread
};

// The figures of the tiers, and of all progress lines of this process. HELP lines explain each family.
std::string live_metrics_text(const WatchedRun& run, const LiveTiers& tiers);

// Starts a server, which ends when the returned object is destroyed. It has a thread of its own, which sleeps
// between requests. The thread reads only counters that exist anyway, and takes no lock that a measured loop
// takes. Any user of this machine may read the figures, because Prometheus usually runs as a user of its own.
// Requests from pages of other sites are refused.
//
// Port 0 selects a free port; `run.log` gets the address. `tiers` must outlive the server. Errors:
// already_exists if the port is in use; unsupported if the build lacks cpp-httplib.
Result<std::shared_ptr<void>> serve_metrics(int64_t port, WatchedRun run, const LiveTiers& tiers);

}  // namespace penstock
