// Writes a file that is complete and durable, or not there at all. (WholeFile in whole_file.hpp also writes
// complete files, but does not sync them.)
//
// The file is written under a hidden temporary name and synced. It is then renamed, and the folder is synced.
// There are no locks, so this works on network file systems and with many writers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// A hook for tests: called with "create", "write", "sync", "rename" or "sync_dir" before that step. If it
// returns an error, the step is not done and fails with that error.
using FileStepHook = std::function<Result<void>(std::string_view step)>;

// Writes `text` as `folder`/`name`, whole or not at all. The file is durable when the function returns. The
// folder must exist. An existing file is replaced if `replace` is set, else the error is already_exists.
// After an error there is no new file. One exception: if the step "sync_dir" failed, the whole file exists.
Result<void> write_durable_file(const std::filesystem::path& folder, const std::string& name,
                                std::string_view text, bool replace, const FileStepHook& hook = {});

// Renames a file or a folder without replacing anything, and returns 0 or an errno (EEXIST if `to` exists).
// The names are relative to the descriptor `folder`, or AT_FDCWD. If the file system or the process cannot do
// that in one call, a file gets its new name by a hard link, which also succeeds only if the name is free.
// For a folder, and without hard links, this function checks that `to` is free and then renames. Then another
// process may take the name `to` between the check and the rename, and lose what it wrote there.
int rename_noreplace(int folder, const char* from, const char* to);

// Writes all of `text` to `fd`. `path` is for messages.
Result<void> write_all(int fd, std::string_view text, const std::filesystem::path& path);

// Makes the names in `folder` durable. Some network file systems do that themselves and refuse the call;
// there this succeeds without a sync.
Result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace penstock
