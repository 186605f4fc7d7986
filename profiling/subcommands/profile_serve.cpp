// `penstock profile serve SESSION|PID [--port N]`: serves a page that shows a session in a browser.
#include "io_backends/core/cli/command.hpp"
#include "profiling/subcommands/profile_arguments.hpp"
#ifdef PENSTOCK_HAS_HTTPLIB
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "profiling/live/trace_window.hpp"
#include "profiling/serve/access.hpp"
#include "profiling/serve/http_server.hpp"
#include "profiling/serve/serve_session.hpp"
#endif

namespace penstock {
namespace {

#ifdef PENSTOCK_HAS_HTTPLIB
namespace fs = std::filesystem;

constexpr int64_t kMostPort = 65535;
constexpr std::chrono::milliseconds kShortInterval{25};  // longest wait in step() while a trace or a job runs
constexpr std::chrono::milliseconds kLongInterval{250};  // longest wait in step() otherwise
// how long the command waits, at its end, for an inspection that still runs
constexpr std::chrono::milliseconds kEndTimeout{400};

Result<fs::path> session_folder_of(ProfileArguments arguments) {
  PENSTOCK_ASSIGN(const TraceTargets targets, trace_targets(arguments));
  const fs::path folder =
      targets.folders.empty() ? fs::path(targets.processes[0].file).parent_path() : targets.folders[0];
  const std::vector<fs::path> folders{folder};
  PENSTOCK_ASSIGN(const Session session, open_session(folders));
  for (const std::string& problem : session.problems) warn(problem);
  return folder;
}

// The options with which `profile report` shows the same as this page.
std::vector<std::string> report_arguments(const CommandContext& context) {
  std::vector<std::string> arguments;
  for (const std::string& glob : context.options.texts("include")) arguments.push_back("--include=" + glob);
  for (const std::string& glob : context.options.texts("exclude")) arguments.push_back("--exclude=" + glob);
  if (context.options.flag("all")) arguments.emplace_back("--all");
  if (context.output.si_units) arguments.insert(arguments.end(), {"--units", "si"});
  return arguments;
}

void print_address(const CommandContext& context, const ServeOptions& options) {
  const std::string url = fmt::format("http://127.0.0.1:{}/?token={}", options.port, options.token);
  if (context.output.json)
    print_json(Json{{"url", url},
                    {"port", options.port},
                    {"token", options.token},
                    {"session", options.folder.string()}});
  else
    print_line(url);
  std::fflush(stdout);
}

Result<int> run_serve(const CommandContext& context) {
  const int64_t port = context.options.integer("port");
  if (port > kMostPort) return make_error(Errc::invalid_argument, "--port must be at most {}", kMostPort);
  ServeOptions options;
  PENSTOCK_ASSIGN(options.folder, session_folder_of(context.positionals));
  PENSTOCK_ASSIGN(options.token, make_token());
  const std::vector<std::string> folder_texts{options.folder.string()};
  options.filter = filter_of(context.options, folder_texts);
  options.report_arguments = report_arguments(context);
  options.si_units = context.output.si_units;
  PENSTOCK_ASSIGN(HttpServer server, HttpServer::listen(uint16_t(port)));
  options.port = server.port();
  print_address(context, options);

  ServeSession serve_session(std::move(options));
  const HttpServer::Answer answer = [&](const HttpRequest& request, uint64_t connection) {
    return serve_session.answer(request, connection);
  };
  while (!interrupted()) {
    server.step(serve_session.busy() ? kShortInterval : kLongInterval, answer);
    serve_session.update(server);
  }
  // If an inspection still runs after kEndTimeout, the process exits without waiting for it: it may take some
  // seconds, and its result is not needed. _exit() is used, because the destructors would wait.
  if (!serve_session.end(kEndTimeout)) ::_exit(128 + interrupt_signal());
  return 0;
}
#else
Result<int> run_serve(const CommandContext& /*context*/) {
  return make_error(
      Errc::unsupported,
      "this build has no 'profile serve', because cpp-httplib was not found when it was built. Install it "
      "with ci/bootstrap and rebuild, or write a page with 'penstock profile report SESSION --html FILE'.");
}
#endif

constexpr OptionSpec kServeOptions[] = {
    kIncludeOption,
    kExcludeOption,
    kAllOption,
    {.name = "port",
     .role = OptionRole::output,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "port on 127.0.0.1, the only address it listens on (0: any free port); from another machine: "
             "ssh -L PORT:127.0.0.1:PORT NODE",
     .group = "Address",
     .at_least = 0},
};

}  // namespace

extern const CommandInfo profile_serve;
const CommandInfo profile_serve{
    .name = "profile serve",
    .summary = "serve a live page of a session to a browser on this machine",
    .options = kServeOptions,
    .run = &run_serve,
    .synopsis = "penstock profile serve SESSION|PID [--port N]",
    .examples = {"penstock profile serve session   # prints the address"},
    .arguments = "SESSION|PID",
};

}  // namespace penstock
