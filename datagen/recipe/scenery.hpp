// The stock from which pictures are cut: canvases with the statistics of photographs, and noise fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// Uses only integer arithmetic and exactly rounded operations, so that a seed gives the same scenery on every
// machine. Takes about 0.13 s of processor time to make (with AVX2), and 13 MiB of memory. Throws
// std::bad_alloc if memory runs out. Immutable after it is made; any thread.
//
// The canvases are "dead leaves": opaque shapes of random position, colour and texture on top of one another.
// Their radii r are drawn with density r^-3. Such pictures have edges, flat parts and the scale-free 1/f^2
// power spectrum, like photographs (Ruderman, Origins of scaling in natural images, Vision Research 1997;
// Lee, Mumford, Huang, Occlusion models for natural images, IJCV 2001).
struct Scenery {
  explicit Scenery(std::uint64_t seed, unsigned threads = 0);  // 0: the number of processors

  static constexpr std::size_t kSharp = 4;  // the first kSharp canvases are in focus and show objects
  std::vector<Canvas> canvases;             // the others are backgrounds: clouds, and objects out of focus
  NoiseField grain;                         // fine detail: equal power in each octave from 2 to 32 pixels
  NoiseField patches;                       // smooth: 32 to 512 pixels
  std::vector<std::int8_t> patches_half;    // `patches` at half resolution
};

}  // namespace penstock
