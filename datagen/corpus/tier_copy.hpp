// Checks that a tier holds the objects of a corpus, before anything is measured there.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Checks that the tier has a copy of the corpus. Looks for some objects, spread over the whole corpus; `name`
// returns the name of one of its `objects`. The error not_found names the object that is missing and the
// `penstock copy` that makes the copy.
Result<void> check_copy(const Tier& tier, const Corpus& corpus, uint64_t objects,
                        const std::function<std::string_view(uint32_t)>& name);

}  // namespace penstock
