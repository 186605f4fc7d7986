#include "profiling/serve/serve_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "io_backends/core/text.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/serve/access.hpp"
#include "profiling/serve/serve_page.hpp"
#include "profiling/serve/tar_stream.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// a word in a job's arguments; SideJob replaces it with the path of the output file
constexpr std::string_view kOutputPlaceholder = "{made}";
constexpr uint64_t kMostTraceSeconds = 3600;

// A report has scripts, and an attacker may have chosen the file names in it. This policy keeps the scripts
// from sending requests to this server.
constexpr const char* kReportPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads";

HttpResponse error_response(const Error& error) {
  // 409, because the page asked for something that has ended meanwhile.
  const bool is_missing = error.code == Errc::not_found;
  return plain_response(is_missing ? 409 : 500, error.message());
}

// Makes a file name from the first 80 bytes of `name`. '_' replaces characters that are not valid in every
// file system and HTTP header.
std::string file_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 80)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += is_plain || c == '-' || c == '_' || (c == '.' && !out.empty()) ? c : '_';
  }
  return out.empty() ? "session" : out;
}

// Creates a new, empty folder next to the session's folder, for a snapshot. It is created before the job that
// fills it: if the job fails, the folder can be removed with all files in it.
Result<fs::path> make_snapshot_folder(const fs::path& folder) {
  std::string time_text = utc_now();
  std::erase_if(time_text, [](char c) { return c == '-' || c == ':'; });
  const std::string stem = fmt::format("{}-snapshot-{}", folder.filename().string(), time_text);
  fs::path snapshot_folder = folder.parent_path() / stem;
  for (int i = 2; ::mkdir(snapshot_folder.c_str(), 0700) != 0; ++i) {
    if (errno != EEXIST) return errno_error(errno, "cannot make the session", snapshot_folder.string());
    snapshot_folder = folder.parent_path() / fmt::format("{}-{}", stem, i);
  }
  return snapshot_folder;
}

void remove_partial_snapshot(const fs::path& snapshot) {
  std::error_code ignored_error;
  if (!snapshot.empty()) fs::remove_all(snapshot, ignored_error);
}

}  // namespace

ServeSession::ServeSession(ServeOptions options)
    : options_(std::move(options)), trace_(options_.folder), live_view_(options_.folder, options_.filter) {}

ServeSession::~ServeSession() {
  end(std::chrono::milliseconds(0));
}

bool ServeSession::end(std::chrono::milliseconds timeout) {
  trace_.disarm();
  const auto snapshot = jobs_.find(JobKind::snapshot);
  const fs::path partial_snapshot = snapshot == jobs_.end() ? fs::path() : snapshot->second.new_snapshot;
  jobs_.clear();  // the destructor of each job ends its process
  remove_partial_snapshot(partial_snapshot);
  return live_view_.end(timeout);
}

const std::array<ServeSession::Page, 7> ServeSession::kPages{{
    {"/", false, std::nullopt, &ServeSession::home_page},
    {"/live", false, std::nullopt, &ServeSession::live_json},
    {"/trace", true, std::nullopt, &ServeSession::arm_trace},
    {"/snapshot", true, JobKind::snapshot, nullptr},
    {"/report", false, JobKind::page, nullptr},
    {"/report.json", false, JobKind::json, nullptr},
    {"/download", false, std::nullopt, &ServeSession::download_archive},
}};

std::optional<HttpResponse> ServeSession::answer(const HttpRequest& request, uint64_t connection) {
  if (!is_for_this_server(request, options_.port))
    return plain_response(403, "this request names another host, or comes from another page");
  if (!has_token(request, options_.token)) {
    return HttpResponse{
        .status = 401,
        .headers = {{"WWW-Authenticate", "Bearer"}},
        .text = "this needs the token: open the address that 'penstock profile serve' has printed\n"};
  }
  const auto* const page =
      std::find_if(kPages.begin(), kPages.end(), [&](const Page& one) { return one.path == request.path; });
  if (page == kPages.end()) return plain_response(404, "there is no such page");
  const bool method_fits =
      page->needs_post ? request.method == "POST" : request.method == "GET" || request.method == "HEAD";
  if (!method_fits)
    return HttpResponse{.status = 405,
                        .headers = {{"Allow", page->needs_post ? "POST" : "GET, HEAD"}},
                        .text = page->needs_post ? "use POST here\n" : "use GET or HEAD here\n"};
  if (page->job) return wait_for(*page->job, connection);
  return (this->*page->answer)(request);
}

HttpResponse ServeSession::home_page(const HttpRequest& /*request*/) {
  return serve_page(name(), options_.si_units);
}

HttpResponse ServeSession::live_json(const HttpRequest& /*request*/) {
  Json out{
      {"kind", "live"}, {"name", name()}, {"session", options_.folder.string()}, {"trace", trace_.json()}};
  out.update(*live_view_.json());
  return json_response(200, out);
}

HttpResponse ServeSession::arm_trace(const HttpRequest& request) {
  const auto seconds = parse_digits<uint64_t>(request.parameter("seconds").value_or(""));
  if (!seconds || *seconds > kMostTraceSeconds)
    return plain_response(400, fmt::format("seconds must be a whole number from 0 to {}", kMostTraceSeconds));
  if (*seconds == 0) {
    trace_.disarm();
  } else if (const Result<void> armed = trace_.arm(std::chrono::seconds(*seconds)); !armed.ok()) {
    return error_response(armed.error());
  }
  return json_response(200, trace_.json());
}

HttpResponse ServeSession::download_archive(const HttpRequest& /*request*/) {
  const std::string stem = file_name(name());
  Result<std::unique_ptr<TarStream>> archive = TarStream::of_session(options_.folder, stem);
  if (!archive.ok()) return error_response(archive.error());
  return {.content_type = "application/x-tar",
          .headers = {{"Content-Disposition", fmt::format("attachment; filename=\"{}.tar\"", stem)}},
          .body = *std::move(archive)};
}

std::optional<HttpResponse> ServeSession::wait_for(JobKind kind, uint64_t connection) {
  if (const auto at = jobs_.find(kind); at != jobs_.end()) {
    // a job of this kind runs already, and its output will answer this request too
    at->second.waiting_connections.push_back(connection);
    return std::nullopt;
  }
  std::vector<std::string> arguments{"profile"};
  fs::path new_snapshot;
  if (kind == JobKind::snapshot) {
    Result<fs::path> snapshot_folder = make_snapshot_folder(options_.folder);
    if (!snapshot_folder.ok()) return error_response(snapshot_folder.error());
    new_snapshot = *std::move(snapshot_folder);
    arguments.insert(arguments.end(),
                     {"snapshot", options_.folder.string(), "-o", new_snapshot.string(), "--json"});
  } else {
    arguments.insert(arguments.end(), {"report", options_.folder.string(), "--json"});
    arguments.insert(arguments.end(), options_.report_arguments.begin(), options_.report_arguments.end());
    if (kind == JobKind::page) arguments.insert(arguments.end(), {"--html", std::string(kOutputPlaceholder)});
  }
  arguments.insert(arguments.end(), {"--no-config", "--progress", "never"});
  Result<SideJob> job =
      SideJob::begin(std::move(arguments), kind == JobKind::page ? std::string(kOutputPlaceholder) : "");
  if (!job.ok()) {
    remove_partial_snapshot(new_snapshot);
    return error_response(job.error());
  }
  jobs_.emplace(kind, Job{*std::move(job), {connection}, std::move(new_snapshot)});
  return std::nullopt;
}

HttpResponse ServeSession::job_response(JobKind kind, const Job& job, Result<Fd>& output) const {
  if (!output.ok()) return plain_response(500, output.error().message());
  if (kind == JobKind::snapshot) return json_response(200, Json{{"session", job.new_snapshot.string()}});
  Result<std::unique_ptr<BodySource>> body = file_body(Fd(::fcntl(output->get(), F_DUPFD_CLOEXEC, 0)));
  if (!body.ok()) return plain_response(500, body.error().message());
  if (kind == JobKind::json) return {.content_type = "application/x-ndjson", .body = *std::move(body)};
  return {
      .content_type = "text/html; charset=utf-8", .body = *std::move(body), .content_policy = kReportPolicy};
}

void ServeSession::update(HttpServer& server) {
  trace_.update();
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    std::optional<Result<Fd>> output = at->second.job.poll();
    if (!output) {
      ++at;
      continue;
    }
    if (!output->ok()) remove_partial_snapshot(at->second.new_snapshot);
    for (const uint64_t connection : at->second.waiting_connections)
      server.reply(connection, job_response(at->first, at->second, *output));
    at = jobs_.erase(at);
  }
}

}  // namespace penstock
