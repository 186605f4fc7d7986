// Long work of our own program, done by a process of its own: it delays no other request, and it can be
// ended.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

// `penstock WORDS`. One thread. Ends the process and removes what it made so far where it dies before.
class SideJob {
 public:
  // `output`: a word that stands for the file to write; "" where the job prints it.
  static Result<SideJob> begin(std::vector<std::string> words, const std::string& output);
  SideJob(SideJob&& other) noexcept;
  SideJob& operator=(SideJob&&) = delete;
  ~SideJob();

  // Nothing while it works; then what it made, open to be read, or what it said of its failure.
  std::optional<Result<Fd>> look();

 private:
  SideJob(pid_t pid, std::filesystem::path folder) : pid_(pid), folder_(std::move(folder)) {}
  Result<Fd> made(int status) const;

  pid_t pid_ = -1;
  std::filesystem::path folder_;
};

}  // namespace penstock
