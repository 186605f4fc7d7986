// A log of acknowledgements, in a file that outlives the process. Each line is "STEP LEVEL": the checkpoint
// of this step has reached this level. A line is synced before save(), wait() or finalize() reports the
// level.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Returns a function that appends a line such as "120 fast" for each acknowledgement and syncs it; one thread
// at a time may call it. Creates the file if it is missing, and syncs its folder. A torn last line (after a
// power cut or a full disk) was never acknowledged, and is removed. invalid_argument if the text after the
// last newline cannot be the beginning of such a line.
Result<Checkpointer::OnReached> log_acknowledgements(const std::string& path);

}  // namespace penstock
