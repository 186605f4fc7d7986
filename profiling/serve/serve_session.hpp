// Answers the requests of `penstock profile serve` for one session, while its processes run and afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/serve/armed_trace.hpp"
#include "profiling/serve/http_request.hpp"
#include "profiling/serve/http_server.hpp"
#include "profiling/serve/live_view.hpp"
#include "profiling/serve/side_job.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

struct ServeOptions {
  std::filesystem::path folder;               // absolute path of the session's folder
  SessionFilter filter;                       // the files that the live view shows
  std::vector<std::string> report_arguments;  // options that give `profile report` the same filter and units
  bool si_units = false;
  std::string token;
  uint16_t port = 0;
};

// The state of the server: the live view, the trace and the running jobs. Only one thread may use an
// instance.
class ServeSession {
 public:
  explicit ServeSession(ServeOptions options);
  ~ServeSession();
  ServeSession(const ServeSession&) = delete;
  ServeSession& operator=(const ServeSession&) = delete;

  // Makes the answer to a request. Returns nullopt if a job makes the answer; update() sends it later. See
  // HttpServer::Answer.
  std::optional<HttpResponse> answer(const HttpRequest& request, uint64_t connection);
  // Does what is due: updates the trace, and sends the results of finished jobs to the connections that wait
  // for them.
  void update(HttpServer& server);
  // True if update() must be called often: a trace or a job runs.
  bool busy() const { return trace_.armed() || !jobs_.empty(); }
  // Switches off the trace, ends all jobs and the live view. False if the live view does not end within
  // `timeout`.
  bool end(std::chrono::milliseconds timeout);

 private:
  enum class JobKind { page, json, snapshot };
  struct Page {
    std::string_view path;
    bool needs_post;  // true if the request changes something: then only POST is accepted
    // the kind of job that makes the answer; nullopt: no job is needed, and the answer is made at once
    std::optional<JobKind> job;
    HttpResponse (ServeSession::*answer)(const HttpRequest& request);
  };
  static const std::array<Page, 7> kPages;
  struct Job {
    SideJob job;
    std::vector<uint64_t> waiting_connections;  // connections to which the job's output is sent
    std::filesystem::path new_snapshot;         // for a snapshot: its new folder
  };

  HttpResponse home_page(const HttpRequest& request);
  HttpResponse live_json(const HttpRequest& request);
  HttpResponse arm_trace(const HttpRequest& request);
  HttpResponse download_archive(const HttpRequest& request);
  std::optional<HttpResponse> wait_for(JobKind kind, uint64_t connection);
  HttpResponse job_response(JobKind kind, const Job& job, Result<Fd>& output) const;
  std::string name() const { return options_.folder.filename().string(); }

  const ServeOptions options_;
  ArmedTrace trace_;
  std::map<JobKind, Job> jobs_;
  LiveView live_view_;
};

}  // namespace penstock
