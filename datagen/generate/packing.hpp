// Predicts how large a data set becomes on storage: the bytes that a format adds around its samples.
#pragma once

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The bytes that `format` adds to the payload of all of the recipe's samples. Companions are not counted.
// Writes two trial objects to a back end that discards them: one of up to 256 samples, and one of half of
// these. If the first object of the data set has one sample, one trial object is enough. The samples have the
// planned sizes but only zeros. The sizes of the two objects give the bytes per object and per sample. Errors
// are those of the format.
Result<double> format_overhead(const Recipe& recipe, const Format& format);

// Fails with the format's error if the format cannot store the recipe's largest sample. Uses the planned
// sizes of the first 16384 samples, and those of all samples if one of these has 128 MiB or more.
Result<void> check_largest_sample(const Recipe& recipe, const Format& format);

}  // namespace penstock
