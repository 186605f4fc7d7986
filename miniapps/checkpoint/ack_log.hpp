// A log of acknowledgements, in a file that outlives the process. Each line is "STEP LEVEL": the checkpoint
// of this step has reached this level. A line is synced before save(), wait() or finalize() reports the
// level.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Opens or creates the log, and syncs its folder. Returns a function that appends a line such as "120 fast"
// for an acknowledgement and syncs the file. Only one thread at a time may call that function. Removes a torn
// last line (after a power cut or a full disk): its level was never acknowledged. invalid_argument if the
// file is not such a log: the text after its last newline cannot be the beginning of a line.
Result<Checkpointer::OnReached> log_acknowledgements(const std::string& path);

}  // namespace penstock
