// Runs a long penstock command in a separate process. So the server can answer other requests meanwhile, and
// can kill the command.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

// One run of `penstock ARGUMENTS` in a process of its own. Only one thread may use an instance. The
// destructor ends the process if it still runs, and removes its temporary output.
class SideJob {
 public:
  // `output` is the word in `arguments` that is replaced by the path of the output file, or "" if the job
  // prints its output.
  static Result<SideJob> begin(std::vector<std::string> arguments, const std::string& output);
  SideJob(SideJob&& other) noexcept;
  SideJob& operator=(SideJob&&) = delete;
  ~SideJob();

  // Returns nullopt while the job runs. After its end returns its output, opened for reading, or its error
  // message.
  std::optional<Result<Fd>> poll();

 private:
  SideJob(pid_t pid, std::filesystem::path folder) : pid_(pid), folder_(std::move(folder)) {}
  Result<Fd> open_output(int status) const;

  pid_t pid_ = -1;
  std::filesystem::path folder_;
};

}  // namespace penstock
