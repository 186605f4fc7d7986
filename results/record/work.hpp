// Decides which parameters of a record identify what was measured ("work"). Cells, reports and comparisons
// all use these functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The role of a parameter by this build's tables: the role of its option, `output` for a fact that a run only
// found out (CommandInfo::findings), else `work`. All parameters of an unknown command are work.
OptionRole parameter_role(std::string_view command, std::string_view name);

// Whether a parameter is work: by the record's own list (Record::work), or by parameter_role() if it has none
// (earlier versions). False for an option that only other subcommands take, whatever the list contains.
bool is_work(const Record& record, std::string_view name);

// The names of the work parameters, in the order of the record, which is that of the option table.
std::vector<std::string> work_parameters(const Record& record);

// The parameter's value as text. "" if it is missing, and for a flag that is off: a record without the flag
// means the same as one with `false`.
std::string work_text(const Record& record, std::string_view name);

// All work parameters with a value, except those named in `excluded`, as one text. Records of the same work
// have equal texts.
std::string work_key(const Record& record, std::span<const std::string_view> excluded);

// For each record a row of texts such as "depth 4", with one column for each work parameter of any record,
// except those in `excluded`. "" if a record has no value. titles_of() in cells.hpp keeps the columns that
// differ.
std::vector<std::vector<std::string>> work_rows(std::span<const Record* const> records,
                                                std::span<const std::string_view> excluded);

// Whether the value of this parameter is unknown. False if the record has the parameter, even as null. Also
// false for a flag in a record of an earlier version: those recorded a flag only when it was given.
bool is_unknown(const Record& record, std::string_view name);

}  // namespace penstock
