// What several importers need: numbers and command lines of other programs, and the common part of their
// records.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/text.hpp"
#include "results/import/foreign.hpp"

namespace penstock::imported {

// Metrics of several programs. Each sample is one repeat of the work.
inline constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher, "repeat", kHeadline};
inline constexpr MetricInfo kRepeatOpRate{kOpRate.name, "1/s", Better::higher, "repeat", kHeadline};
inline constexpr MetricInfo kErrors{"errors", "1", Better::lower, "repeat", kHeadline};
inline constexpr MetricInfo kPayloadBytes{"payload_bytes", "B", Better::neither, "repeat"};
inline constexpr MetricInfo kWallTime{"wall_s", "s", Better::neither, "repeat"};
inline constexpr MetricInfo kLatency{"latency_ns_*", "ns", Better::lower, "repeat"};

// A finite number, from a JSON number or from text. Absent for anything else, such as "nan".
std::optional<double> finite_number(std::string_view text);
std::optional<double> number_of(const Json& object, std::string_view name);
// Adds a sample. A negative number is an error of the program, and unknown.
void add_if_known(Record& record, const MetricInfo& metric, std::optional<double> value, double factor = 1);

// Adds those members of `object` that are numbers from 0 on to the parameters, as whole numbers. `names` has
// each parameter with the name of its member.
void add_counts(Record& record, const Json& object, std::span<const NamedText> names);

// The text with U+FFFD in place of each byte that is not UTF-8. JSON that was parsed has none.
std::string valid_utf8(std::string_view text);

// Formats a time, given in seconds since 1970, as records write it. "" for a time that cannot be right.
std::string utc_time(double seconds);
// The same of a date with an offset: "2026-11-20T10:30:00.123+01:00", "+0100", "Z", or with a blank for the
// T. A date without an offset is taken for UTC. "" if it is none.
std::string utc_of_date(const std::string& date);

// A record of another program, whose cache states are all unknown.
Record new_record(std::string_view command, std::string_view program, std::string_view version);
// Says where the program worked. Without a path there is no tier.
void set_tier(Record& record, const std::string& path, std::string_view backend);
// Declares all parameters but the tier as work.
void set_work(Record& record);

// Splits a command line at blanks outside of quotes, and removes the quotes. Values of options that name a
// key, secret, token or password become "***".
std::vector<std::string> command_arguments(std::string_view command);
// Joins words with blanks, from `begin` on, except each word in `outputs` (which say how results are shown or
// where they go) and, if the word there ends in '=', its value: the word after it, or what follows '='.
std::string options_text(const std::vector<std::string>& words, size_t begin,
                         std::span<const std::string_view> outputs);

// The least value within which `percent` of all counts are. `bins`: upper bound -> count.
std::optional<double> percentile_of_bins(const std::map<double, double>& bins, double percent);

// Adds a record. If one of the same parameters is there already, `record` is one more repeat of it. A metric
// that not every repeat has is left out, so that the samples of all metrics are of the same repeats.
void add_repeat(Imported& found, Record record);

}  // namespace penstock::imported
