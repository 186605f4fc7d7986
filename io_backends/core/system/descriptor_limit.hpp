// Raises the number of files that this process may have open.
#pragma once

namespace penstock {

// Raises the soft limit (`ulimit -n`) to the hard limit, for this process and the children that it starts
// later. Do not call it in commands that run other programs: some of those use select(), which fails with
// descriptors above 1023. If the system refuses, nothing changes.
void raise_descriptor_limit();

}  // namespace penstock
