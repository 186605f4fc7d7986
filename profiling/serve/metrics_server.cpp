// Threads: MetricsServer's own thread answers. The thread of the command starts and ends it.
// Locks: only those of LiveTiers and of the list of progress lines, for a few microseconds. Loops that are
// measured take neither of them.
// Signals: the thread blocks all signals, so that Ctrl-C interrupts a system call of the command and not of
// this thread.
#include "profiling/serve/metrics_server.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "io_backends/core/cli/progress.hpp"
#ifdef PENSTOCK_HAS_HTTPLIB
#include "profiling/serve/access.hpp"
#include "profiling/serve/http_server.hpp"
#endif

namespace penstock {
namespace {

using TierFigures = LiveTiers::Figures;

// Adds one family with a sample for each tier.
void add_tiers(std::string& out, const std::vector<TierFigures>& tiers, std::string_view name,
               bool is_counter, std::string_view help, uint64_t (*value)(const TierFigures& figures)) {
  add_open_metrics_family(out, name, is_counter ? "counter" : "gauge", help);
  for (const TierFigures& one : tiers)
    add_open_metrics_sample(out, std::string(name) + (is_counter ? "_total" : ""), {{"tier", one.tier}},
                            double(value(one)));
}

void add_progress(std::string& out, std::string_view name, std::string_view help,
                  const std::function<uint64_t(const Progress::Figures&)>& value) {
  add_open_metrics_family(out, name, "gauge", help);
  for (const Progress::Figures& line : Progress::all())
    add_open_metrics_sample(out, name, {{"task", line.title}, {"unit", line.unit}}, double(value(line)));
}

}  // namespace

std::string live_metrics_text(const WatchedRun& run, const LiveTiers& tiers) {
  std::string out;
  add_open_metrics_family(out, "penstock_run_info", "gauge", "the command that runs; always 1");
  add_open_metrics_sample(out, "penstock_run_info", run.labels, 1);
  add_open_metrics_family(out, "penstock_run_start_time_seconds", "gauge",
                          "when the command started, in seconds since 1970");
  add_open_metrics_sample(out, "penstock_run_start_time_seconds", {}, double(run.started));
  const std::vector<TierFigures> all = tiers.figures();
  add_tiers(out, all, "penstock_tier_read_bytes", true,
            "bytes that this process has read from the tier, with warm-up, baselines and ceilings",
            [](const TierFigures& one) { return one.bytes.read; });
  add_tiers(out, all, "penstock_tier_written_bytes", true, "bytes that this process has written to the tier",
            [](const TierFigures& one) { return one.bytes.written; });
  add_tiers(
      out, all, "penstock_tier_operations", true,
      "measured operations on the tier: samples read, trained with or made; checkpoints; probes; runs of a "
      "sweep",
      [](const TierFigures& one) { return one.operations; });
  add_tiers(out, all, "penstock_tier_errors", true,
            "operations on the tier that failed, counted when a pass ends",
            [](const TierFigures& one) { return one.errors; });
  add_tiers(out, all, "penstock_tier_repeat", false,
            "number of the present repeat or training step on the tier, from 1",
            [](const TierFigures& one) { return one.repeat; });
  add_progress(out, "penstock_progress_done", "how much of a task of the command is done",
               [](const Progress::Figures& line) { return line.done; });
  add_progress(out, "penstock_progress_planned", "how much the task has in all; 0: not known",
               [](const Progress::Figures& line) { return line.total; });
  return out.append(kOpenMetricsEnd);
}

#ifdef PENSTOCK_HAS_HTTPLIB
namespace {

// The longest wait for a request, and so the longest time that the end of the command waits for the thread.
constexpr std::chrono::milliseconds kMetricsStep{50};
constexpr std::string_view kClassicType = "text/plain; version=0.0.4; charset=utf-8";

class MetricsServer {
 public:
  MetricsServer(HttpServer http, WatchedRun run, const LiveTiers& tiers)
      : http_(std::move(http)), run_(std::move(run)), tiers_(tiers) {
    sigset_t all_signals;
    sigset_t mask_before;
    ::sigfillset(&all_signals);
    ::pthread_sigmask(SIG_SETMASK, &all_signals, &mask_before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
  }
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer() {
    is_ending_ = true;
    thread_.join();
  }

 private:
  // Runs on the server's thread. If memory runs out, the figures are not served any longer; the measurement
  // goes on.
  void serve() noexcept try {
    while (!is_ending_)
      http_.step(kMetricsStep, [this](const HttpRequest& request, uint64_t) { return answer(request); });
  } catch (const std::exception& thrown) {
    if (run_.warn)
      run_.warn(fmt::format("--metrics-port: no figures are served any longer: {}", thrown.what()));
  }

  std::optional<HttpResponse> answer(const HttpRequest& request) const {
    if (!is_for_this_server(request, http_.port()))
      return plain_response(403, fmt::format("ask for 127.0.0.1:{0} or localhost:{0}", http_.port()));
    if (request.method != "GET" && request.method != "HEAD")
      return plain_response(405, "only GET and HEAD are answered");
    if (request.path != "/metrics") return plain_response(404, "the figures are at /metrics");
    HttpResponse response;
    // Older programs read the same text as the classic format of Prometheus.
    const auto accepted = request.header("accept");
    const bool reads_open_metrics =
        accepted && accepted->find("application/openmetrics-text") != std::string_view::npos;
    response.content_type = reads_open_metrics ? kOpenMetricsType : kClassicType;
    response.text = live_metrics_text(run_, tiers_);
    return response;
  }

  HttpServer http_;
  const WatchedRun run_;
  const LiveTiers& tiers_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace
#endif

Result<std::shared_ptr<void>> serve_metrics([[maybe_unused]] int64_t port, [[maybe_unused]] WatchedRun run,
                                            [[maybe_unused]] const LiveTiers& tiers) {
#ifdef PENSTOCK_HAS_HTTPLIB
  if (port < 0 || port > std::numeric_limits<uint16_t>::max())
    return make_error(Errc::invalid_argument, "--metrics-port is at most {}, not {}",
                      std::numeric_limits<uint16_t>::max(), port);
  Result<HttpServer> http = HttpServer::listen(uint16_t(port), HttpServer::Clients::any_user);
  if (!http.ok() && http.error().code == Errc::already_exists)
    return make_error(Errc::already_exists,
                      "--metrics-port {}: the port is in use; choose another one, or 0 for a free port",
                      port);
  if (!http.ok()) return http.error();
  if (run.log) run.log(fmt::format("live figures: http://127.0.0.1:{}/metrics", http->port()));
  return std::shared_ptr<void>(std::make_shared<MetricsServer>(*std::move(http), std::move(run), tiers));
#else
  return make_error(Errc::unsupported,
                    "this build has no --metrics-port, because cpp-httplib was not found when it was built; "
                    "install it with ci/bootstrap and build again, or leave the option out");
#endif
}

}  // namespace penstock
