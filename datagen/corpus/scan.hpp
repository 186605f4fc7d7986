// The option --scan: makes a manifest of the objects on a tier that has none.
#pragma once

#include "datagen/corpus/corpus.hpp"

namespace penstock {

struct ScanResult {
  Manifest manifest;
  ScanReport report;
};

// Lists the tier's objects and makes a manifest of their samples. It takes every object whose extension is
// that of a sample; open_corpus() in corpus.hpp explains all rules. Fails with `not_found` if there is no
// such object, and with `interrupted` after Ctrl-C. If the objects contain no samples, the manifest has none.
Result<ScanResult> scan_tier(Tier& tier, const CorpusRequest& request);

}  // namespace penstock
