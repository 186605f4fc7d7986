// Baselines: names for records with which later runs are compared. A baseline does not copy records. It is a
// small file `baselines/NAME` in a results folder. The file lists record files, with the size and the CRC32C
// that each had when the baseline was saved. The small file is replaced atomically. If a listed file is
// missing or has changed, the baseline is invalid.
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

// The default results folder: commands store records in it, and look up "baseline:NAME" in it.
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

// Saves a baseline of the records in `paths`, which read_records() reads. If a path is a folder, the baseline
// lists the record files that are in it now; files that come later are not part of it. Tests use `hook` to
// make steps of the write fail.
// Errors: invalid_argument if is_plain_word(name) is false or `paths` have no record file; corrupt if some of
// the records cannot be read.
Result<Baseline> save_baseline(const std::filesystem::path& folder, const std::string& name,
                               std::span<const std::filesystem::path> paths, const FileStepHook& hook = {});

// All baselines of the folder, sorted by name; empty if it has none. If a baseline cannot be read, the result
// is an error that names it.
Result<std::vector<Baseline>> list_baselines(const std::filesystem::path& folder);

// Removes the baseline, but not its records. not_found if there is no baseline of that name.
Result<void> remove_baseline(const std::filesystem::path& folder, const std::string& name);

// Succeeds if all files of the baseline are unchanged. Otherwise the error is `corrupt` or `not_found`, and
// names the baseline and the file.
Result<void> check_baseline(const std::filesystem::path& folder, const Baseline& baseline);

// Whether `path` names a baseline: "baseline:NAME", or "FOLDER/baseline:NAME" for another results folder.
bool is_baseline(const std::filesystem::path& path);

// The error if the folder has no baseline of that name. Its last words are a command that lists those it has.
Error no_baseline_error(const std::filesystem::path& folder, std::string_view name);

// Checks the baseline that `path` names, by check_baseline(), and returns its record files.
Result<std::vector<std::filesystem::path>> baseline_files(const std::filesystem::path& path);

// Parses the text of a baseline's file. The error is `corrupt` if the text is not a baseline. `what` is the
// name of the file in error messages.
Result<Baseline> parse_baseline(std::string_view text, const std::string& what);

}  // namespace penstock
