// Writes record files into the results folder: one immutable file per run, `<utc time>-<command>-<short
// id>.jsonl`, with one sealed record per line.
//
// A file appears whole or not at all. It is written under a hidden name that no reader takes for a record
// file and synced. It is then renamed without replacing another file, and the folder is synced. There are no
// locks, so this works on network file systems and with many writers.
//
// The seal of a line has its number, the number of lines of its run, and the CRC32C of all text before it. It
// is the last member of the record's own JSON object, so that every line stays a record:
//
//   {"schema":1,...,"reason":"","seal":{"line":2,"of":3,"crc32c":"0a1b2c3d"}}
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

// A hook for tests: called with "create", "write", "sync", "rename" or "sync_dir" before that step. If it
// returns an error, the step is not done and fails with that error.
using StoreStep = std::function<Result<void>(std::string_view step)>;

// Writes the records of one run, and returns the path once the file is durable under its name. Makes the
// folder if it is missing. The name is made from `command` and the first record's `started` and `id`; if the
// name is taken, another id is tried. After an error no file is left that a reader takes for records. The
// exception is a failed "sync_dir", which leaves the whole file in place.
Result<std::filesystem::path> write_records(const std::filesystem::path& folder,
                                            std::span<const Record> records, const StoreStep& step = {});

// Checks before a measurement that write_records() can make its file in `folder`. Permissions alone do not
// show what a file system accepts. So this makes the missing folders under a unique name, with an empty file
// in the innermost, and removes them again. Several processes may do this at the same time.
Result<void> check_results_folder(const std::filesystem::path& folder);

// Adds the seal to `record`, a JSON object in one line: it is line number `line` (from 1) of `of` lines.
std::string seal_line(std::string_view record, std::size_t line, std::size_t of);

// The end of a sealed line: the CRC32C of `text`, which is everything before it.
std::string seal_end(std::string_view text);
inline constexpr std::string_view kSumBegins = R"(,"crc32c":")";
inline constexpr std::string_view kSumEnds = R"("}})";

// Writes `text` as `folder`/`name`, whole or not at all, and durable when it returns. An existing file is
// replaced if `replace` is set, else the error is already_exists.
Result<void> write_whole(const std::filesystem::path& folder, const std::string& name, std::string_view text,
                         bool replace, const StoreStep& step = {});

// Writes all of `text` to `fd`. `path` is for messages.
Result<void> write_all(int fd, std::string_view text, const std::filesystem::path& path);

// Makes the names in `folder` durable. Succeeds without a sync on file systems that do it themselves and
// refuse the call.
Result<void> sync_folder(const std::filesystem::path& folder);

// That many hexadecimal digits from the system's random source. If it fails, from the clock and the process
// id.
std::string random_id(std::size_t digits);

}  // namespace penstock
