// The records of files and folders, as they are read. record_file.hpp writes them; import/record_files.cpp
// finds and reads the files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"
#include "results/record/record_file.hpp"

namespace penstock {

Result<Record> record_from_json(const Json& json);  // corrupt, naming the field
Result<Verdict> parse_verdict(std::string_view name);

// Which line of a run's records a line is.
struct Seal {
  std::size_t line = 0;  // from 1
  std::size_t of = 0;
};

// The seal of a line whose JSON is `json`; nothing where it has none (lines of earlier versions, and those
// that somebody made). corrupt where the line is not what was sealed.
Result<std::optional<Seal>> check_seal(std::string_view line, const Json& json);

struct StoredRecord {
  Record record;
  std::filesystem::path file;
  std::size_t line = 0;        // from 1
  std::optional<Seal> seal{};  // of the line, where it has one
};

struct RecordSet {
  std::vector<StoredRecord> records;  // by file name (so by time), then by line
  std::vector<std::string>
      problems;  // "runs/x.jsonl:3: not a record: ...": what could not be read, and where
  std::vector<std::filesystem::path> files;  // all that were read, in order
};

// Reads *.jsonl files, JSON of other tools (import/foreign.hpp), folders of both (not what lies deeper; other
// JSON there is skipped), and baselines (baseline.hpp). A line that is no record, or not what was
// written, becomes a problem and is left out, and so does one that is missing; the rest is kept. A path that
// is named twice counts once. An Error only where a path itself cannot be read (not_found names it), or where
// a baseline does not hold any more.
Result<RecordSet> read_records(std::span<const std::filesystem::path> paths);

// `path` itself, and of a folder also its folders and theirs, in order, but for hidden ones: a sweep keeps
// the records of an arm in RESULTS/NAME/ARM.
std::vector<std::filesystem::path> with_folders(const std::filesystem::path& path);

// One line of a file, checked against its seal: depth and size are bounded, so that a hostile file cannot
// exhaust the stack. Without file and number.
Result<StoredRecord> parse_sealed_line(std::string_view line);
Result<Record> parse_record_line(std::string_view line);

// The record files of a folder, sorted: *.jsonl, and *.json, which may be of other tools.
Result<std::vector<std::filesystem::path>> record_files(const std::filesystem::path& folder);

}  // namespace penstock
