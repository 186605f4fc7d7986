// Predicts how large a data set becomes on storage: the bytes that a format adds around its samples.
#pragma once

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The bytes that `format` adds to the payload for all of the recipe's samples, without companions. Measured
// by two trial objects, one of up to 256 samples and one of half as many. Their samples have the planned
// sizes but only zeros, and are written to a back end that discards them. The difference of the two gives the
// bytes per object and per sample. Errors are the format's.
Result<double> format_overhead(const Recipe& recipe, const Format& format);

// Fails with the format's error if the format cannot store the recipe's largest sample. Sizes are the planned
// ones.
Result<void> check_largest_sample(const Recipe& recipe, const Format& format);

}  // namespace penstock
