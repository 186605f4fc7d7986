// What `penstock profile serve` answers: one session, while its processes run and after.
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
  SessionFilter filter;                       // of what is shown live
  std::vector<std::string> report_arguments;  // options of `profile report` that say the same
  bool si_units = false;
  std::string token;
  std::uint16_t port = 0;
};

// One thread.
class ServeSession {
 public:
  explicit ServeSession(ServeOptions options);
  ~ServeSession();
  ServeSession(const ServeSession&) = delete;
  ServeSession& operator=(const ServeSession&) = delete;

  // As HttpServer::Answer.
  std::optional<HttpResponse> answer(const HttpRequest& request, std::uint64_t connection);
  // What goes on next to the requests; its outcomes go to who waits for them.
  void look(HttpServer& server);
  // look() has to be called often.
  bool busy() const { return trace_.armed() || !jobs_.empty(); }
  // Disarms, ends what was started, and the looks; false where one of them takes longer than that.
  bool end(std::chrono::milliseconds most);

 private:
  enum class Kind { page, json, snapshot };
  struct Page {
    std::string_view path;
    bool changes;             // asked for by POST
    std::optional<Kind> job;  // that makes it; none: it is answered at once
    HttpResponse (ServeSession::*answer)(const HttpRequest& request);
  };
  static const std::array<Page, 7> kPages;
  struct Job {
    SideJob job;
    std::vector<std::uint64_t> waiting;  // connections
    std::filesystem::path makes;         // of a snapshot: the new session
  };

  HttpResponse home(const HttpRequest& request);
  HttpResponse live(const HttpRequest& request);
  HttpResponse trace(const HttpRequest& request);
  HttpResponse download(const HttpRequest& request);
  std::optional<HttpResponse> wait_for(Kind kind, std::uint64_t connection);
  HttpResponse outcome(Kind kind, const Job& job, Result<Fd>& made) const;
  std::string name() const { return options_.folder.filename().string(); }

  const ServeOptions options_;
  ArmedTrace trace_;
  std::map<Kind, Job> jobs_;
  LiveView live_;
};

}  // namespace penstock
