// A log of acknowledgements, in a file that outlives the process. A line such as "120 fast" means: the
// checkpoint of step 120 has reached the level fast. A line is synced before the Checkpointer's save(),
// wait() or finalize() reports the level.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Opens or creates the log, and syncs its folder. Removes a torn last line (left by a power cut or a full
// disk): its level was never acknowledged. Returns a function that appends a line and syncs the file. Only
// one thread at a time may call that function. invalid_argument if the file is not such a log: the text after
// its last newline cannot be the beginning of a line.
Result<Checkpointer::OnReached> log_acknowledgements(const std::string& path);

}  // namespace penstock
