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
  std::filesystem::path folder;               // absolute
  SessionFilter filter;                       // for the live view
  std::vector<std::string> report_arguments;  // the same filter and units as options of `profile report`
  bool si_units = false;
  std::string token;
  std::uint16_t port = 0;
};

// For one thread.
class ServeSession {
 public:
  explicit ServeSession(ServeOptions options);
  ~ServeSession();
  ServeSession(const ServeSession&) = delete;
  ServeSession& operator=(const ServeSession&) = delete;

  // Has the signature of HttpServer::Answer.
  std::optional<HttpResponse> answer(const HttpRequest& request, std::uint64_t connection);
  // Continues the trace and the jobs. Sends the results of finished jobs to the connections that wait for
  // them.
  void update(HttpServer& server);
  // True if update() must be called often.
  bool busy() const { return trace_.armed() || !jobs_.empty(); }
  // Switches off the trace, ends all jobs and the live view. False if the live view does not end within
  // `most`.
  bool end(std::chrono::milliseconds most);

 private:
  enum class Kind { page, json, snapshot };
  struct Page {
    std::string_view path;
    bool needs_post;          // it changes something, so only POST is accepted
    std::optional<Kind> job;  // the job that makes the answer; nullopt: the page is answered at once
    HttpResponse (ServeSession::*answer)(const HttpRequest& request);
  };
  static const std::array<Page, 7> kPages;
  struct Job {
    SideJob job;
    std::vector<std::uint64_t> waiting;  // connections that get the job's answer
    std::filesystem::path new_snapshot;  // the folder of a new snapshot
  };

  HttpResponse home(const HttpRequest& request);
  HttpResponse live(const HttpRequest& request);
  HttpResponse trace(const HttpRequest& request);
  HttpResponse download(const HttpRequest& request);
  std::optional<HttpResponse> wait_for(Kind kind, std::uint64_t connection);
  HttpResponse outcome(Kind kind, const Job& job, Result<Fd>& output) const;
  std::string name() const { return options_.folder.filename().string(); }

  const ServeOptions options_;
  ArmedTrace trace_;
  std::map<Kind, Job> jobs_;
  LiveView live_;
};

}  // namespace penstock
