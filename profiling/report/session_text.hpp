// A session as text for people: a few lines and tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

// One line of a report, "title  text": the programs, the bytes, the times, or what is missing.
struct Fact {
  std::string title;
  std::string text;
};
std::vector<Fact> session_facts(const Session& session, const SessionSummary& summary,
                                const SessionFilter& filter, const Output& output);

// The rows of a table. The first column is a name, and all others are numbers.
struct Rows {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  uint64_t not_shown = 0;  // number of rows that are not in the table because of the limit
};
Rows file_rows(const TopFiles& files, const Output& output);
Rows roll_up_rows(std::string_view title, std::span<const RollUp> rows, const Output& output,
                  uint64_t not_shown = 0);
Rows process_rows(std::span<const ProcessSum> processes, size_t most, const Output& output);
Rows size_rows(const SessionSummary& summary, const Output& output = {});

// The path in one line, without characters that control a terminal.
std::string printable_path(std::string_view path);

// Returns text such as "20 more not shown"; "" if no row was left out.
std::string not_shown_text(const Rows& rows);
// Returns text such as "5,461 calls of the trace, the oldest (--trace-limit)".
std::string dropped_calls_text(const Drops& drops);
// Returns a rate in the unit that `output` selects, such as MiB/s. Rates below 1 MiB/s have a smaller unit.
std::string bytes_per_s_text(double bytes_per_s, const Output& output);
// Says how much of the bytes that the kernel counted was recorded. `word`: "read" or "written".
std::string coverage_share_text(const Coverage& coverage, std::string_view word, const Output& output);
// Says how many processes still run on this machine, and how many forked children that have made no call
// yet; "" if there are none.
std::string still_running_text(const SessionCoverage& coverage);
// The shares of reads and of writes; "unknown" if the kernel's counts are known of no process.
std::string coverage_summary_text(const Session& session, const SessionCoverage& coverage,
                                  const Output& output);

std::string facts_text(std::span<const Fact> facts);
std::string rows_text(const Rows& rows);

}  // namespace penstock
