// How many files this process may have open at once.
#pragma once

namespace penstock {

// As many as the system lets it have without more rights: the soft limit (`ulimit -n`) becomes the hard one,
// for this process and what it begins from then on. Not for commands that run programs of others: some cannot
// live with descriptors above 1023 (select). Where that is refused, nothing changes.
void use_all_descriptors();

}  // namespace penstock
