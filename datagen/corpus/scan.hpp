// --scan: makes a manifest of the objects of a tier that has none.
#pragma once

#include "datagen/corpus/corpus.hpp"

namespace penstock {

struct Scanned {
  Manifest manifest;
  ScanReport report;
};

// As open_corpus() says; not_found when there is no sample. Errc::interrupted when the user stops us.
Result<Scanned> scan_tier(Tier& tier, const OpenCorpus& how);

}  // namespace penstock
