// Reads records from files and folders. record.hpp writes records; results/import/record_files.cpp finds and
// reads the files.
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

// The place of a line in its run, according to its seal: line `line` of `lines`. check_seal() tests the
// checksum of the seal.
struct SealedPosition {
  size_t line = 0;  // counted from 1
  size_t lines = 0;
};

// Checks the seal of a line; `json` is the parsed line. Returns nothing if the line has no seal: it is from
// an earlier version or not from Penstock. corrupt if the line was changed after it was sealed.
Result<std::optional<SealedPosition>> check_seal(std::string_view line, const Json& json);

struct StoredRecord {
  Record record;
  std::filesystem::path file;
  size_t line = 0;                       // counted from 1
  std::optional<SealedPosition> seal{};  // absent if the line has no seal
};

struct RecordSet {
  std::vector<StoredRecord> records;  // sorted by file name (so by time), then by line
  std::vector<std::string>
      problems;  // what could not be read, and where: "runs/x.jsonl:3: not a record: ..."
  std::vector<std::filesystem::path> files;  // all files that were read, in the order of reading
};

// Reads the records in files and folders: *.jsonl files, JSON of other tools (import/foreign.hpp), folders
// with such files, and baselines (baseline.hpp). In a folder, deeper folders and unrelated JSON files are
// skipped. A line that is missing, is not a record or was changed is reported as a problem, and all other
// records are returned. A path that is named twice counts once. Fails only if a path itself cannot be read
// (not_found names it), or if a baseline is invalid.
Result<RecordSet> read_records(std::span<const std::filesystem::path> paths);

// Returns `path`, and if it is a folder, also the folders in it at all depths, sorted, without hidden ones.
// This finds all records of a sweep with arms: it stores those of an arm in RESULTS/NAME/ARM.
std::vector<std::filesystem::path> with_folders(const std::filesystem::path& path);

// Parses one line and checks its seal. It limits the nesting of the JSON, because a hostile file could
// otherwise exhaust the stack. The result has no file name and no line number.
Result<StoredRecord> parse_sealed_line(std::string_view line);
Result<Record> parse_record_line(std::string_view line);

// The files of a folder that may have records, sorted: *.jsonl, and *.json, which may be from other tools.
Result<std::vector<std::filesystem::path>> record_files(const std::filesystem::path& folder);

}  // namespace penstock
