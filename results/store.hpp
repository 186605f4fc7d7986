// The results folder: one immutable file per run, `<utc time>-<command>-<short id>.jsonl`, one record a line.
//
// A file appears whole or not at all: written under a name that no reader takes for a record file, synced,
// renamed without replacing, and the folder synced. No locks, so it works on network file systems and with
// many writers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/result.hpp"
#include "results/record.hpp"

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

// Whether write_records() could make its file there, asked before anything is measured: by making what is
// missing of the folder, below a name of its own beside it, and an empty file in it, since permissions do not
// tell what a file system takes. All is taken away again; others that do the same at once do not matter.
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

// Reads *.jsonl files, and folders of them (not what lies deeper). A line that is no record becomes a problem
// and the rest is kept. An Error only where a path itself cannot be read (not_found names it).
Result<RecordSet> read_records(std::span<const std::filesystem::path> paths);

// One line of a file, checked: depth and size are bounded, so that a hostile file cannot exhaust the stack.
Result<Record> parse_record_line(std::string_view line);

// Hexadecimal digits from the system's random source.
std::string random_id(std::size_t digits);

// Now, as "2026-11-20T09:30:00Z".
std::string utc_now();

}  // namespace penstock
