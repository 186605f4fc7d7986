// How large a data set becomes on storage: what a format puts around its samples.
#pragma once

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Bytes that `format` takes besides the payload for all of the recipe's samples, in as many objects as it
// makes of them; companions are left out. Known by trying: up to 256 samples of the planned sizes, zeros, are
// laid down into nothing, and an object's head and what each sample adds are told apart by two such trials.
// Errors are the format's.
Result<double> bytes_around(const Recipe& recipe, const Format& format);

// The format's error where it cannot hold the largest of the recipe's samples, as they are planned.
Result<void> check_largest(const Recipe& recipe, const Format& format);

}  // namespace penstock
