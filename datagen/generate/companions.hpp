// Objects of a data set that hold no samples (recipe.hpp says what a companion is).
#pragma once

#include <string>

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// "stats.h5", however many samples an object has and whatever folders they are in: a program finds it by its
// name.
std::string companion_name(const Format& format, const Companion& companion);

// Writes it, in place of one that is there.
Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve = {});

}  // namespace penstock
