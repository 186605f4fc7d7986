// Prepares the samples of a corpus for fast access during a measurement.
#pragma once

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Decodes all names of the manifest once, before the measurement. In the manifest, names are front-coded, and
// each access decodes part of a block. This would slow down a shuffled reader of small files. Takes 24 bytes
// per sample plus the names (about 600 MB for ten million files). The reader and its baselines share the
// list. `corrupt` if an entry is outside its object, `exhausted` if memory does not suffice.
Result<SampleList> corpus_samples(const Manifest& manifest);

}  // namespace penstock
