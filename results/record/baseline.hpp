// Baselines: what runs are compared with, by name. A baseline is a reference, not a copy: a small file
// `baselines/NAME` in a results folder that names record files, and the size and CRC32C that each had. It
// is replaced at once or not at all, and one whose files are gone or changed does not hold any more.
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

// Where "baseline:NAME" looks, and where `penstock` keeps records if it is not told.
inline constexpr const char* kResultsFolder = "penstock-results";

// Letters, digits, '_', '-' and '.', which is not the first: what may be the name of a file or a label.
bool is_plain_word(std::string_view name);

struct Baseline {
  struct File {
    std::string path;  // relative to the results folder where it is in it
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
  };
  std::string name;
  std::string saved;  // UTC
  std::vector<File> files;
};

// Of `paths`, as read_records() takes them: folders as they are now. invalid_argument for a name that is no
// plain word (letters, digits, '_', '-', '.') and for paths without a record file; corrupt where not all of
// their records could be read.
Result<Baseline> save_baseline(const std::filesystem::path& folder, const std::string& name,
                               std::span<const std::filesystem::path> paths, const StoreStep& step = {});

// By name; none where the folder has none. One that cannot be read is an error that names it.
Result<std::vector<Baseline>> list_baselines(const std::filesystem::path& folder);

// not_found where there is none of that name.
Result<void> remove_baseline(const std::filesystem::path& folder, const std::string& name);

// Nothing where all its files are as they were; else corrupt or not_found, naming the baseline and the file.
Result<void> check_baseline(const std::filesystem::path& folder, const Baseline& baseline);

// Whether `path` is written as a baseline: "baseline:NAME" or "FOLDER/baseline:NAME".
bool is_baseline(const std::filesystem::path& path);

// The files of such a one, checked.
Result<std::vector<std::filesystem::path>> baseline_files(const std::filesystem::path& path);

// The text of a baseline's file; corrupt where it is none. `what` names it in messages.
Result<Baseline> parse_baseline(std::string_view text, const std::string& what);

}  // namespace penstock
