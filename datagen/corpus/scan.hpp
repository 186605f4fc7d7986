// --scan: makes a manifest of the objects on a tier that has none.
#pragma once

#include "datagen/corpus/corpus.hpp"

namespace penstock {

struct ScanResult {
  Manifest manifest;
  ScanReport report;
};

// Works as open_corpus() describes. `not_found` if there is no sample. Errc::interrupted when the user stops
// the program.
Result<ScanResult> scan_tier(Tier& tier, const CorpusRequest& request);

}  // namespace penstock
