// What a training was told of its checkpoints, in a file that outlives it: a line "STEP LEVEL" for each
// acknowledgement, synced before anybody who waits hears of it.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// One thread at a time.
class AckLog {
 public:
  // Creates the file if it is missing, and syncs it with its folder; new lines are appended. A torn last line
  // (a power cut, a full disk) was never acknowledged and is removed. invalid_argument where the end of the
  // file is no beginning of such a line.
  static Result<AckLog> open(const std::string& path);

  // "120 fast", synced.
  Result<void> write(const CheckpointId& id, Reached level);

 private:
  AckLog(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_;
};

}  // namespace penstock
