// Dead leaves: opaque shapes of random place, colour and texture laid over one another (scenery.hpp says
// why).
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
  int smallest;  // radius in pixels
  int largest;
  bool boxes;          // upright rectangles rather than blobs
  int texture;         // strongest grain, percent
  int layers_percent;  // how often the leaves could cover the canvas
};

struct LeafNoise {
  const NoiseField& grain;    // of each leaf's surface
  const NoiseField& patches;  // of the light, and of ragged borders
};

// As sharp as painted: soften() it.
Canvas dead_leaves(RandomStream random, const LeafStyle& style, const LeafNoise& noise);

}  // namespace penstock
