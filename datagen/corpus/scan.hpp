// The option --scan: makes a manifest of the objects on a tier that has none.
#pragma once

#include "datagen/corpus/corpus.hpp"

namespace penstock {

struct ScanResult {
  Manifest manifest;
  ScanReport report;
};

// Lists the tier's objects and makes a manifest of their samples, by the rules that open_corpus() describes
// (corpus.hpp). Fails with `not_found` if there is no sample, and with Errc::interrupted after Ctrl-C.
Result<ScanResult> scan_tier(Tier& tier, const CorpusRequest& request);

}  // namespace penstock
