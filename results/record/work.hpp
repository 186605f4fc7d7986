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

// The role of a parameter, according to the tables of this build. A parameter that is an option has the role
// of the option. A fact that the run itself found out (CommandInfo::findings) has the role `output`. All
// other parameters are `work`, and so are all parameters of an unknown command.
OptionRole parameter_role(std::string_view command, std::string_view name);

// Whether a parameter is work, that is, identifies what was measured. The record's own list decides
// (Record::work). Records of earlier versions have no list; for them parameter_role() decides. Always false
// for an option that only other subcommands take.
bool is_work(const Record& record, std::string_view name);

// The names of the record's work parameters, in the order of the record, which is the order of the command's
// options.
std::vector<std::string> work_parameters(const Record& record);

// The parameter's value as text. "" if the record has no such parameter, or if it is `false`: a flag that was
// not given may be recorded in either way.
std::string work_text(const Record& record, std::string_view name);

// A text of all work parameters that have a value, except those named in `excluded`. Two records of the same
// work have the same text.
std::string work_key(const Record& record, std::span<const std::string_view> excluded);

// Returns a row of texts such as "depth 4" for each record. A row has one column for each work parameter that
// any record has, except those in `excluded`. If the record has no value for it, the text is "". From these
// columns titles_of() in cells.hpp then takes those that differ.
std::vector<std::vector<std::string>> work_rows(std::span<const Record* const> records,
                                                std::span<const std::string_view> excluded);

// Whether the record says nothing about the value that this parameter had. False if the record has the
// parameter, even as null. Also false for a flag in a record of an earlier version: such records have only
// the flags that were given.
bool is_unknown(const Record& record, std::string_view name);

}  // namespace penstock
