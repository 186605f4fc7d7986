// Decides which parameters of a record identify what was measured (its "work"). Cells, reports and
// comparisons all use these functions, so that they agree.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The role of a parameter according to the tables of this build: the role of its option, or `output` for a
// fact that the run itself found out (CommandInfo::findings), or else `work`. If the command is unknown, all
// its parameters are work.
OptionRole parameter_role(std::string_view command, std::string_view name);

// Whether a parameter is work. The record's own list decides (Record::work). Records of earlier versions have
// no list; for them parameter_role() decides. Always false for an option that only other subcommands take.
bool is_work(const Record& record, std::string_view name);

// The names of the record's work parameters, in the order of the record. That is the order of the option
// table.
std::vector<std::string> work_parameters(const Record& record);

// The parameter's value as text. "" if it is missing, or a flag that is off: a record without the flag means
// the same as a record with `false`.
std::string work_text(const Record& record, std::string_view name);

// A text of all work parameters that have a value, except those named in `excluded`. Records of the same work
// have equal texts.
std::string work_key(const Record& record, std::span<const std::string_view> excluded);

// One row of texts such as "depth 4" for each record, with one column for each work parameter that any record
// has, except those in `excluded`. The text is "" if the record has no value. titles_of() in cells.hpp then
// selects the columns that differ.
std::vector<std::vector<std::string>> work_rows(std::span<const Record* const> records,
                                                std::span<const std::string_view> excluded);

// Whether the record does not say which value this parameter had. False if the record has the parameter, even
// as null. Also false for a flag in a record of an earlier version: a missing flag was not given there.
bool is_unknown(const Record& record, std::string_view name);

}  // namespace penstock
