// Turns results of other programs into records. The content decides which program it is, not the file name.
// importers() lists the programs; each has its own file in this folder, which says what becomes what.
//
// For all of them: rates are in bytes and operations per second (`payload_bytes_per_s`, `ops_per_s`),
// latencies in nanoseconds. A number that the program did not write, or wrote as NaN or infinity, is no
// metric: unknown is never 0. Percentiles are never averaged. What the program says about its work becomes
// parameters, and all of them but the tier are work (Record::work), so that runs of different work stay
// apart. Repeats of the same work become samples of one record. What a program does not say, such as the
// cache state, is "unknown".
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/metric.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct Imported {
  std::vector<Record> records;
  std::map<std::string, size_t>
      repeats;                        // what was measured -> number of its record (imported::add_repeat())
  std::vector<std::string> problems;  // what could not be imported, and why
};

// A program whose results can be imported. `import_document` adds the results in one JSON object,
// `import_text` those in the text of a whole file; each may only be called if the function before it returned
// true. `id` is the prefix of the records' ids.
struct Importer {
  std::string_view command;  // Record::command of its records
  std::string_view program;  // as its users write it
  std::string_view form;     // which of its outputs is read
  std::span<const MetricInfo> metrics;
  bool (*is_document)(const Json&) = nullptr;
  void (*import_document)(const Json&, const std::string& id, Imported&) = nullptr;
  // Whether the later of two documents has all that the earlier one has, so that this one is left out.
  bool (*replaces)(const Json& earlier, const Json& later) = nullptr;
  bool (*is_text)(std::string_view) = nullptr;
  void (*import_text)(std::string_view, const std::string& id, Imported&) = nullptr;
};
extern const Importer importer_dlio;
extern const Importer importer_elbencho;
extern const Importer importer_fio;
extern const Importer importer_google_benchmark;
extern const Importer importer_ior;
extern const Importer importer_mdtest;
extern const Importer importer_warp;
std::span<const Importer* const> importers();
const Importer* find_importer(std::string_view command);  // nullptr if no importer makes such records

// Imports results of one or more programs. Absent if `text` has none. JSON may be one object, several, one in
// each line, or an array of objects. Text before, between and after them is skipped.
std::optional<Imported> import_foreign(std::string_view text);

// What to do with a text that import_foreign() does not take, if it is another output of a known program: "it
// is IOR's text: run IOR with ...". "" if it is not. `file` is the file's name as a word of the shell.
std::string advice_on_foreign(std::string_view text, std::string_view file);
// All that import_foreign() takes, as a text: "fio (--output-format=json), ...".
std::string importable_forms();

// Adds to a record of DLIO what its summary lacks: the parameters in `overrides`, the content of the file
// .hydra/overrides.yaml that Hydra writes next to the summary.
void add_dlio_overrides(Record& record, std::string_view overrides);

// Gives names to the tiers of imported records, which have only a path. A tier gets the name that penstock's
// own records use for a folder above this path: the nearest root of a tier, or else the nearest mount point.
// So the results of both programs are shown together.
void name_foreign_tiers(std::span<Record* const> records);

// The rate of another program's operations. They are not called samples, because these programs do not know
// samples.
inline constexpr MetricInfo kOpRate{"ops_per_s", "1/s", Better::higher};
// The accelerator utilization by DLIO's definition, as a part.
inline constexpr MetricInfo kDlioUtilization{"au_dlio", "1", Better::higher, "epoch", kHeadline};

}  // namespace penstock
