// A corpus's samples, ready for a hot loop.
#pragma once

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Spells out the manifest once before anything is measured: front-coded names are short on disk, but each
// costs a walk through its block, which a shuffled reader of small files would feel. Takes 24 bytes a sample
// and the names themselves (some 600 MB for ten million files), shared by the reader and its yardsticks.
// `corrupt` where an entry points outside its object, `exhausted` where memory does not suffice.
Result<SampleList> corpus_samples(const Manifest& manifest);

}  // namespace penstock
