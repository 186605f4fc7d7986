// Which parameters of a record identify what was measured. Cells, reports and comparisons ask here and
// nowhere else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "results/record/record.hpp"

namespace penstock {

// By this build's table of the command: the option's role, `output` for what a run only found out
// (CommandInfo::findings), else `work`. A command that this build lacks knows no names: all are work.
OptionRole parameter_role(std::string_view command, std::string_view name);

// A record's own list decides (Record::work); without one (older versions) parameter_role() does. False for
// an option that only other subcommands take, whatever the list says.
bool is_work(const Record& record, std::string_view name);

// The names of a record's parameters that are work, in the record's order, which is that of the option table.
std::vector<std::string> work_parameters(const Record& record);

// The parameter's value as text. "" where there is none, and for a flag that is off: a record without the
// flag says the same as one with `false`.
std::string work_text(const Record& record, std::string_view name);

// All work parameters with a value, but those named in `but`, as one text: equal for records of the same
// work.
std::string work_key(const Record& record, std::span<const std::string_view> but);

// For each record a row of texts "depth 4", one column for each work parameter that any of them has, but
// `but`: "" where a record has no value (titles_of() in cells.hpp keeps the columns that differ).
std::vector<std::vector<std::string>> work_rows(std::span<const Record* const> records,
                                                std::span<const std::string_view> but);

// Whether the record says nothing of this parameter. False where the parameter is there, also as null, and
// where it is a flag: older versions recorded flags only when they were given.
bool is_unknown(const Record& record, std::string_view name);

}  // namespace penstock
