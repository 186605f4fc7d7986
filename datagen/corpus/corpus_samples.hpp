// Prepares the samples of a corpus for fast access during a measurement.
#pragma once

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Makes a list of all samples with their names, before the measurement. In the manifest, names are
// front-coded, so each access to a name decodes part of a block. That would slow down a reader that reads
// small files in shuffled order. The list takes 24 bytes per sample plus the names (about 600 MB for ten
// million files). The reader and its baselines share it. `corrupt` if an entry is outside its object,
// `exhausted` if memory does not suffice.
Result<SampleList> corpus_samples(const Manifest& manifest);

}  // namespace penstock
