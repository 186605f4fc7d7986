// Writes a file that appears under its name complete or not at all.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {

// Writes a file under a temporary name in the same folder, and renames it at the end, which replaces an
// existing file. It does not sync: after a power cut the file may be lost. A name that is not a plain file
// (/dev/stdout, a pipe) is written directly. Only one thread may use it.
class WholeFile {
 public:
  // Opens the temporary file. `what` names the file in messages: "the report". Fails with invalid_argument if
  // the folder does not exist.
  static Result<WholeFile> create(const std::string& path, std::string_view what);
  ~WholeFile();
  WholeFile(WholeFile&& other) noexcept = default;
  WholeFile& operator=(WholeFile&&) = delete;

  std::FILE* file() { return file_.get(); }
  Result<void> write(std::string_view text);
  // Gives the file its name. Fails with `interrupted` if the process was asked to stop; then an existing file
  // is unchanged.
  Result<void> publish();

 private:
  WholeFile() = default;
  Error write_error(int sys_errno) const;

  std::string path_;
  std::string purpose_;
  std::string temporary_;  // path of the temporary file; "" if none exists
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// Writes `text` to `path` as one WholeFile, and publishes it.
Result<void> write_whole_file(const std::string& path, std::string_view what, std::string_view text);

}  // namespace penstock
