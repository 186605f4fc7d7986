// The checksums of a scan, which reads every object whole for them.
#pragma once

#include "datagen/corpus/scan_left_out.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// The same manifest with the checksum of every sample and object as they lie there now, read by that many
// threads. Objects that cannot be read are left out and added to `left_out`; the first one's error where that
// are all, and any that tells nothing of one object.
Result<Manifest> with_checksums(Tier& tier, const Manifest& manifest, unsigned threads, bool progress,
                                LeftOut& left_out);

}  // namespace penstock
