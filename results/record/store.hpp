// Reads records from files and folders. record.hpp writes them; import/record_files.cpp finds and reads
// the files.
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

Result<Record> record_from_json(const Json& json);  // fails with corrupt, which names the field
Result<Verdict> parse_verdict(std::string_view name);

// What the seal of a line says about its place in the run (the checksum is in check_seal()): line `line` of
// `lines`.
struct SealedPosition {
  size_t line = 0;  // counted from 1
  size_t lines = 0;
};

// Checks the seal of a line; `json` is the parsed line. Nothing if it has no seal: it is from an earlier
// version or not from penstock. corrupt if the line was changed after it was sealed.
Result<std::optional<SealedPosition>> check_seal(std::string_view line, const Json& json);

struct StoredRecord {
  Record record;
  std::filesystem::path file;
  size_t line = 0;                       // counted from 1
  std::optional<SealedPosition> seal{};  // absent if the line has no seal
};

struct RecordSet {
  std::vector<StoredRecord> records;  // by file name (so by time), then by line
  std::vector<std::string>
      problems;  // what could not be read, and where: "runs/x.jsonl:3: not a record: ..."
  std::vector<std::filesystem::path> files;  // all files that were read, in order
};

// Reads *.jsonl files, JSON of other tools (import/foreign.hpp), folders with such files, and baselines
// (baseline.hpp). Of a folder, deeper folders and unrelated JSON are skipped. A line that is not a record, or
// that was changed, becomes a problem and is left out. A missing line becomes a problem too. All other
// records are returned. A path that is named twice counts once. An error only if a path itself cannot be read
// (not_found names it), or if a baseline is invalid.
Result<RecordSet> read_records(std::span<const std::filesystem::path> paths);

// `path`, and if it is a folder, also its folders and their folders, sorted, without hidden ones. A sweep
// stores the records of an arm in RESULTS/NAME/ARM.
std::vector<std::filesystem::path> with_folders(const std::filesystem::path& path);

// Parses one line and checks its seal. The nesting of the JSON is limited, so that a hostile file cannot
// exhaust the stack. The result has no file name and no line number.
Result<StoredRecord> parse_sealed_line(std::string_view line);
Result<Record> parse_record_line(std::string_view line);

// The possible record files of a folder, sorted: *.jsonl, and *.json, which may be from other tools.
Result<std::vector<std::filesystem::path>> record_files(const std::filesystem::path& folder);

}  // namespace penstock
