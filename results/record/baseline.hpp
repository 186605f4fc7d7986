// Baselines: names for records with which later runs are compared. A baseline does not copy records. It is a
// small file `baselines/NAME` in a results folder, which lists record files with the size and the CRC32C that
// each had. This file is replaced atomically. If a listed file is missing or has changed, the baseline is
// invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/record/store.hpp"

namespace penstock {

// The default results folder: commands store records there, and "baseline:NAME" is looked up there.
inline constexpr const char* kResultsFolder = "penstock-results";

// Whether `name` may be the name of a file or a label: letters, digits, '_', '-' and '.', but no '.' at the
// start.
bool is_plain_word(std::string_view name);

struct Baseline {
  struct File {
    std::string path;  // the path of a record file; relative to the results folder if the file is inside it
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };
  std::string name;
  std::string saved_at;  // when the baseline was saved, in UTC
  std::vector<File> files;
};

// Saves a baseline of the records in `paths`. Finds them as read_records() does. If a path is a folder, the
// baseline gets the files that the folder has now. Errors: invalid_argument if is_plain_word(name) is false
// or `paths` have no record file; corrupt if not all of their records can be read. Tests use `hook` to make
// steps of the write fail.
Result<Baseline> save_baseline(const std::filesystem::path& folder, const std::string& name,
                               std::span<const std::filesystem::path> paths, const FileStepHook& hook = {});

// All baselines of the folder, sorted by name; empty if it has none. A baseline that cannot be read is an
// error that names it.
Result<std::vector<Baseline>> list_baselines(const std::filesystem::path& folder);

// Removes the baseline, but not its records. not_found if there is no baseline of that name.
Result<void> remove_baseline(const std::filesystem::path& folder, const std::string& name);

// Succeeds if all files of the baseline are unchanged. Else fails with corrupt or not_found, and names the
// baseline and the file.
Result<void> check_baseline(const std::filesystem::path& folder, const Baseline& baseline);

// Whether `path` names a baseline: "baseline:NAME", or "FOLDER/baseline:NAME" for another results folder.
bool is_baseline(const std::filesystem::path& path);

// Checks the baseline that `path` names (check_baseline()), and returns its files.
Result<std::vector<std::filesystem::path>> baseline_files(const std::filesystem::path& path);

// Parses the text of a baseline's file; corrupt if it is none. Error messages call it `what`.
Result<Baseline> parse_baseline(std::string_view text, const std::string& what);

}  // namespace penstock
