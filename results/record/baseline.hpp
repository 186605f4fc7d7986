// Baselines: names for the records that later runs are compared with. A baseline is a reference and not a
// copy: a small file `baselines/NAME` in a results folder lists record files with the size and the CRC32C
// that each had. It is replaced atomically. A baseline whose files are missing or have changed is invalid.
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

// The folder in which "baseline:NAME" is looked up, and in which commands store records by default.
inline constexpr const char* kResultsFolder = "penstock-results";

// Whether `name` may be the name of a file or a label: letters, digits, '_', '-' and '.', but no '.' at the
// start.
bool is_plain_word(std::string_view name);

struct Baseline {
  struct File {
    std::string path;  // relative to the results folder if the file is inside it
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };
  std::string name;
  std::string saved_at;  // time in UTC
  std::vector<File> files;
};

// Saves a baseline of the records in `paths`, as read_records() reads them. Of a folder, the baseline gets
// the files that it has now. Errors: invalid_argument if is_plain_word(name) is false or `paths` have no
// record file; corrupt if not all of their records can be read. `hook` is for tests.
Result<Baseline> save_baseline(const std::filesystem::path& folder, const std::string& name,
                               std::span<const std::filesystem::path> paths, const FileStepHook& hook = {});

// All baselines of the folder, sorted by name; empty if it has none. A baseline that cannot be read is an
// error that names it.
Result<std::vector<Baseline>> list_baselines(const std::filesystem::path& folder);

// Removes the baseline, not its records. not_found if there is no baseline of that name.
Result<void> remove_baseline(const std::filesystem::path& folder, const std::string& name);

// Succeeds if all files of the baseline are unchanged. Else fails with corrupt or not_found, and names the
// baseline and the file.
Result<void> check_baseline(const std::filesystem::path& folder, const Baseline& baseline);

// Whether `path` refers to a baseline: "baseline:NAME" or "FOLDER/baseline:NAME".
bool is_baseline(const std::filesystem::path& path);

// The files of the baseline that `path` refers to, after check_baseline().
Result<std::vector<std::filesystem::path>> baseline_files(const std::filesystem::path& path);

// Parses the text of a baseline's file; corrupt if it is not one. `what` is its name in messages.
Result<Baseline> parse_baseline(std::string_view text, const std::string& what);

}  // namespace penstock
