// Reads records: single ones from JSON, and all records in files and folders (implemented in
// results/import/record_files.cpp). record.hpp has the functions that write records.
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

namespace penstock {

Result<Record> record_from_json(const Json& json);  // its error is `corrupt` and names the wrong field
Result<Verdict> parse_verdict(std::string_view name);

// The position of a line in its run, which the line's seal contains: line `line` of `lines`. (check_seal()
// compares the checksum of the seal with the line.)
struct SealedPosition {
  size_t line = 0;  // counted from 1
  size_t lines = 0;
};

// Checks the seal of a line; `json` is the parsed line. Returns the line's position in its run. Returns
// nothing if the line has no seal: then the line is from an earlier version or not from Penstock. corrupt if
// the line was changed after it was sealed.
Result<std::optional<SealedPosition>> check_seal(std::string_view line, const Json& json);

struct StoredRecord {
  Record record;
  std::filesystem::path file;
  size_t line = 0;                       // counted from 1
  std::optional<SealedPosition> seal{};  // absent if the line has no seal
  size_t runs = 1;                       // how many records were joined into this one
};

struct RecordSet {
  std::vector<StoredRecord> records;  // sorted by file name (so by time), then by line
  std::vector<std::string>
      problems;  // what could not be read, and where: "runs/x.jsonl:3: not a record: ..."
  std::vector<std::filesystem::path> files;  // all files that were read, in the order of reading
  // What was left out without being a problem: files in folders that hold no results, and results that are in
  // several files. Each remark has a count and names the first.
  std::vector<std::string> remarks;
};

// Reads the records in files and folders. A path may be a *.jsonl file, results of another program
// (import/foreign.hpp), a folder with such files, or a baseline (baseline.hpp). In a folder, deeper folders
// and unrelated files are skipped. A path that is given twice is read once, and so is a result of another
// program that is in several files. If a line is missing, is not a record or was changed, or a JSON file is
// cut short, that becomes one of the `problems`, and all other records are returned. The call fails only if a
// path itself cannot be read (not_found names it), or if a baseline is invalid.
Result<RecordSet> read_records(std::span<const std::filesystem::path> paths);

// Returns `path`. If it is a folder, also returns the folders in it and the folders in those, sorted, without
// hidden ones. A sweep with arms stores the records of each arm in RESULTS/NAME/ARM, two levels below
// RESULTS.
std::vector<std::filesystem::path> with_folders(const std::filesystem::path& path);

// Parses one line and checks its seal. It limits the nesting of the JSON, since a hostile file could
// otherwise overflow the stack. In the result the name of the file and the line number are not set.
Result<StoredRecord> parse_sealed_line(std::string_view line);
Result<Record> parse_record_line(std::string_view line);

// The files in a folder that may have records, sorted. These are *.jsonl files, and files whose names end as
// those of other programs' results do: *.json, *.csv, *.txt, *.log, *.out and *.zst.
Result<std::vector<std::filesystem::path>> record_files(const std::filesystem::path& folder);

}  // namespace penstock
