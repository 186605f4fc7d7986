// The results folder: one immutable file per run, `<utc time>-<command>-<short id>.jsonl`, one record a line,
// each sealed with its place in the run and a checksum (seal.hpp).
//
// A file appears whole or not at all: written under a name that no reader takes for a record file, synced,
// renamed without replacing, and the folder synced. No locks, so it works on network file systems and with
// many writers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"
#include "results/record/seal.hpp"

namespace penstock {

// A test's way in: called with "create", "write", "sync", "rename", "sync_dir" before that step; an error
// takes the step's place.
using StoreStep = std::function<Result<void>(std::string_view step)>;

// Writes the records of one run and returns the file's path once it is durable under its name. Makes the
// folder when it is not there. `command` and the first record's `started` and `id` make the name; a name that
// is taken gets another id. After an error nothing is left that reads as a record, except that a failed
// "sync_dir" leaves the whole file in place.
Result<std::filesystem::path> write_records(const std::filesystem::path& folder,
                                            std::span<const Record> records, const StoreStep& step = {});

// Whether write_records() could make its file there, asked before anything is measured. Permissions do not
// tell what a file system takes. So it makes what is missing of the folder, under a unique name next to it,
// and an empty file in it, and removes both. Other processes may do the same at once.
Result<void> check_results_folder(const std::filesystem::path& folder);

struct StoredRecord {
  Record record;
  std::filesystem::path file;
  std::size_t line = 0;  // from 1
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

// A record, and where its line is sealed also which line of its run it is.
struct RecordLine {
  Record record;
  std::optional<Seal> seal;
};

// `path` itself, and of a folder also its folders and theirs, in order, but for hidden ones: a sweep keeps
// the records of an arm in RESULTS/NAME/ARM.
std::vector<std::filesystem::path> with_folders(const std::filesystem::path& path);

// One line of a file, checked against its seal: depth and size are bounded, so that a hostile file cannot
// exhaust the stack.
Result<RecordLine> parse_sealed_line(std::string_view line);
Result<Record> parse_record_line(std::string_view line);

// The record files of a folder, sorted: *.jsonl, and *.json, which may be of other tools.
Result<std::vector<std::filesystem::path>> record_files(const std::filesystem::path& folder);

// Writes `text` as `folder`/`name`, whole or not at all; replaces what is there where `replace` is set, else
// that is already_exists.
Result<void> write_whole(const std::filesystem::path& folder, const std::string& name, std::string_view text,
                         bool replace, const StoreStep& step = {});

// Hexadecimal digits from the system's random source.
std::string random_id(std::size_t digits);

// Now, as "2026-11-20T09:30:00Z".
std::string utc_now();

}  // namespace penstock
