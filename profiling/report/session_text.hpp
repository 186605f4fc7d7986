// A session as people read it: a few lines and tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

// Who ran, how much moved, how long, what is missing. One line each, "words  figures".
struct Fact {
  std::string title;
  std::string text;
};
std::vector<Fact> session_facts(const Session& session, const SessionSummary& summary,
                                const SessionFilter& filter, const Output& output);

// Rows of words for a table whose first column is a name and whose others are numbers.
struct Rows {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  std::uint64_t not_shown = 0;  // rows that found no room
};
Rows file_rows(const TopFiles& files, const Output& output);
Rows roll_up_rows(std::string_view title, std::span<const RollUp> rows, const Output& output,
                  std::uint64_t not_shown = 0);
Rows process_rows(std::span<const ProcessSum> processes, std::size_t most, const Output& output);
Rows size_rows(const SessionSummary& summary);

// A name in one line that a terminal does not obey.
std::string printable_path(std::string_view path);

// "20 more not shown"; "" where all are.
std::string not_shown_text(const Rows& rows);
// "5,461 calls of the trace, the oldest (--trace-limit)".
std::string dropped_calls_text(const Drops& drops);
// A rate in the usual unit, or where that would be a small fraction in one that suits it.
std::string bytes_per_s_text(double bytes_per_s, const Output& output);
// How much of what the kernel counted as `word` ("read", "written") was seen: a share of it, or where only
// some KiB are missing, how many.
std::string coverage_share_text(const Coverage& coverage, std::string_view word, const Output& output);

std::string facts_text(std::span<const Fact> facts);
std::string rows_text(const Rows& rows);

}  // namespace penstock
