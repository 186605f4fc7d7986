// A file that appears under its name whole or not at all.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {

// Written next to its name and renamed in the end; what is there already is replaced. A name that stands for
// something else than a plain file (/dev/stdout, a pipe) is written to as it is. One thread.
class WholeFile {
 public:
  // `what` it is, for messages: "the report". invalid_argument where there is no such folder.
  static Result<WholeFile> create(const std::string& path, std::string_view what);
  ~WholeFile();
  WholeFile(WholeFile&& other) noexcept = default;
  WholeFile& operator=(WholeFile&&) = delete;

  std::FILE* file() { return file_.get(); }
  Result<void> write(std::string_view text);
  // interrupted, with nothing new there, if we were asked to stop.
  Result<void> publish();

 private:
  WholeFile() = default;
  Error failed(int sys_errno) const;

  std::string path_;
  std::string what_;
  std::string temporary_;  // "" where there is none, or none any more
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// The whole text as one such file.
Result<void> write_whole_file(const std::string& path, std::string_view what, std::string_view text);

}  // namespace penstock
