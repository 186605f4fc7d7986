// What a training was told of its checkpoints, in a file that outlives it: a line "STEP LEVEL" for each
// acknowledgement, synced before anybody who waits hears of it.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Writes "120 fast" for each acknowledgement, synced; one thread at a time. Creates the file if it is
// missing, and syncs it with its folder; new lines are appended. A torn last line (a power cut, a full disk)
// was never acknowledged and is removed. invalid_argument where the end of the file is no beginning of such a
// line.
Result<Checkpointer::Acknowledged> log_acknowledgements(const std::string& path);

}  // namespace penstock
