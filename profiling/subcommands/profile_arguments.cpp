#include "profiling/subcommands/profile_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io_backends/core/cli/progress.hpp"
#include "profiling/session/session_folder.hpp"

namespace penstock {

Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions) {
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::weakly_canonical(output, failed);
  if (failed) return success();  // writing it will say more
  for (const std::string& argument : sessions) {
    const std::filesystem::path session = std::filesystem::weakly_canonical(argument, failed);
    if (!failed && std::ranges::mismatch(session, target).in1 == session.end())
      return make_error(
          Errc::invalid_argument,
          fmt::format("'{}' is of the session '{}' itself: write to another place", output, argument));
  }
  return success();
}

Result<Session> open_named_sessions(ProfileArguments arguments) {
  if (arguments.empty())
    return make_error(Errc::invalid_argument,
                      "this needs a SESSION: the folder that 'penstock profile run' wrote to");
  const std::vector<std::filesystem::path> paths(arguments.begin(), arguments.end());
  PENSTOCK_ASSIGN(Session session, open_session(paths));
  for (const std::string& argument : arguments) {
    const SessionNote told = read_note(argument);
    if (told.command.empty()) continue;
    session.exit_codes.push_back(told.exit_code);
    session.detached.push_back(told.exit_code < 0 ? told.ended : "");
  }
  for (const std::string& problem : session.problems) warn(problem);
  return session;
}

SessionFilter filter_of(const Options& options, ProfileArguments arguments) {
  SessionFilter filter{.include = options.texts("include"),
                       .exclude = options.texts("exclude"),
                       .everything = options.flag("all")};
  if (!filter.include.empty() || !filter.exclude.empty() || filter.everything) return filter;
  for (const std::string& argument : arguments) {
    const SessionNote told = read_note(argument);
    filter.include.insert(filter.include.end(), told.include.begin(), told.include.end());
    filter.exclude.insert(filter.exclude.end(), told.exclude.begin(), told.exclude.end());
  }
  return filter;
}

}  // namespace penstock
