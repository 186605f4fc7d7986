// Paints "dead leaves": opaque shapes of random position, colour and texture on top of one another
// (scenery.hpp explains why).
#pragma once

#include <span>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

struct Colour {
  int y;
  int cb;
  int cr;
};

struct LeafStyle {
  std::span<const Colour> colours;
  int min_radius;  // in pixels
  int max_radius;
  bool has_rectangles;  // upright rectangles instead of blobs
  int texture_percent;  // strength of the roughest surface's grain, in percent
  int layers_percent;   // areas of all leaves together, in percent of the canvas's area
};

struct LeafNoise {
  const NoiseField& grain;    // roughens the surface of each leaf
  const NoiseField& patches;  // varies the light and makes borders ragged
};

// Paints a canvas of dead leaves. The leaves have hard edges, so call soften() on the canvas.
Canvas dead_leaves(RandomStream random, const LeafStyle& style, const LeafNoise& noise);

}  // namespace penstock
