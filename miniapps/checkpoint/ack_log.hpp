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
  // Made where it is not there, and synced with its folder; lines go behind those that it has. A last one
  // that was torn, by a power cut or a full disk, told nobody of anything and is taken away. invalid_argument
  // where what is there is the begin of no such line.
  static Result<AckLog> open(const std::string& path);

  // "120 fast", synced.
  Result<void> write(const CheckpointId& id, Reached level);

 private:
  AckLog(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_;
};

}  // namespace penstock
