// The results folder: one immutable file per run, `<utc time>-<command>-<short id>.jsonl`, one record a line,
// each sealed.
//
// A file appears whole or not at all: written under a name that no reader takes for a record file, synced,
// renamed without replacing, and the folder synced. No locks, so it works on network file systems and with
// many writers.
//
// The seal of a line says which of how many lines of its run it is, and the CRC32C of all that is before it.
// It is the last member of the record's own object, so that every line stays a record:
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

// `record`, the JSON object of a record in one line, with its seal: it is `line` (from 1) of `of` lines.
std::string seal_line(std::string_view record, std::size_t line, std::size_t of);

// What ends a sealed line: the CRC32C of `text`, which is all before it.
std::string seal_end(std::string_view text);
inline constexpr std::string_view kSumBegins = R"(,"crc32c":")";
inline constexpr std::string_view kSumEnds = R"("}})";

// Writes `text` as `folder`/`name`, whole or not at all; replaces what is there where `replace` is set, else
// that is already_exists.
Result<void> write_whole(const std::filesystem::path& folder, const std::string& name, std::string_view text,
                         bool replace, const StoreStep& step = {});

// All of `text` to `fd`, which is of `path`.
Result<void> write_all(int fd, std::string_view text, const std::filesystem::path& path);

// Makes the names in `folder` durable, where its file system does not do that itself.
Result<void> sync_folder(const std::filesystem::path& folder);

// Hexadecimal digits from the system's random source.
std::string random_id(std::size_t digits);

}  // namespace penstock
