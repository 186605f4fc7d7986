// Describes the records of `tiers --probe` in sentences and in a section of the report page.
//
// The rules (a record has the probes of one tier with one number of clients):
// - The best of a kind of probes is the highest median of all its records, depths and block sizes.
// - Two tiers differ in a kind of probes only if the best of one is above the best of the other by more than
//   their spread, and in any two repeats.
// - A probe is noisy if its repeats differ by more than 20%.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock {

// Whether the record has results of probes.
bool is_probe(const Record& record);
// The names of all probes of the records, such as "read.random.4k.8". Numbers in names are sorted by value.
std::vector<std::string> probe_names(std::span<const Record* const> records);
// A name for people: "random reads of 4 KiB, depth 8".
std::string probe_title(const std::string& probe);
// The depth at the end of a name, "read.random.4k.8"; absent for any other name.
std::optional<uint64_t> probe_depth(std::string_view probe);

// The figure in which a probe is shown: bytes per second of large blocks, else operations per second. nullptr
// if the record lacks it.
const Metric* probe_metric(const Record& record, const std::string& probe);
// The unit of that figure: "MiB/s", "IOPS", "files/s" or "entries/s" and the figure as a number in it.
std::string probe_unit(const std::string& probe, const Output& output);
std::string probe_text(const Metric& metric, const Output& output);

// The kinds of probes that sentences, tiles and the page's first table compare.
struct ProbeKind {
  std::string_view start;    // how the names of its probes begin
  std::string_view does;     // "reads sequentially"
  std::string_view heading;  // "sequential reads"
};
std::span<const ProbeKind> probe_kinds();
// The best of a kind on one tier: a record and one of its probes.
struct BestProbe {
  const Record* record = nullptr;
  std::string probe;
  const Metric* metric = nullptr;
};
BestProbe best_probe(std::span<const Record* const> records, const std::string& tier, const ProbeKind& kind);
std::vector<std::string> probed_tiers(std::span<const Record* const> records);
// The probe records of all, in their order.
RecordList probe_records(std::span<const Record> records);

namespace report {
std::string probe_section(std::span<const Record> records, PageState& state);
}

}  // namespace penstock
