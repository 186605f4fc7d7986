// The sessions that a subcommand's arguments name, and which of their files its options choose.
#pragma once

#include "profiling/session/session.hpp"
#include "profiling/session/session_filter.hpp"
#include "profiling/subcommands/profile_subcommands.hpp"

namespace penstock {

// With a warning for each file of them that cannot be read.
Result<Session> open_named_sessions(ProfileArguments arguments);

// invalid_argument where a file or folder that is to be written would take the place of, or lie within, what
// the sessions were written to.
Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions);

// --include, --exclude and --all; where none of them is given, what `profile run` was told.
SessionFilter filter_of(const Options& options, ProfileArguments arguments);

}  // namespace penstock
