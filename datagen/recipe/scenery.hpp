// The scenery: a stock from whose parts pictures are painted. It has canvases with the statistics of
// photographs, and noise fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// The scenery of a seed. A seed gives the same scenery on every machine, because it is made only with integer
// arithmetic and exactly rounded operations. It is immutable, so any thread may use it. Making it takes about
// 0.13 s of processor time (with AVX2) and 13 MiB of memory; throws std::bad_alloc if memory runs out.
//
// All canvases except the clouds are "dead leaves": opaque shapes of random position, colour and texture on
// top of one another. Their radii r are drawn with density r^-3. Such pictures have edges, flat parts and the
// scale-free 1/f^2 power spectrum, like photographs. Sources: Ruderman, Origins of scaling in natural images,
// Vision Research 1997; Lee, Mumford, Huang, Occlusion models for natural images, IJCV 2001.
struct Scenery {
  explicit Scenery(uint64_t seed, unsigned threads = 0);  // threads = 0: as many as there are processors

  // The first kSharpCanvases canvases are in focus and show objects. The other canvases are backgrounds:
  // clouds, and objects out of focus.
  static constexpr size_t kSharpCanvases = 4;
  std::vector<Canvas> canvases;
  NoiseField grain;                  // fine detail: equal power in each octave from 2 to 32 pixels
  NoiseField patches;                // smooth noise: equal power in each octave from 32 to 512 pixels
  std::vector<int8_t> patches_half;  // `patches` at half resolution
};

}  // namespace penstock
