// The stock that pictures are cut from: canvases with the statistics of photographs, and noise fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// Integer arithmetic and exactly rounded operations only: the same on every machine for a seed. Takes about
// 0.13 s of processor time to make (with AVX2), and 13 MiB to keep; std::bad_alloc where memory runs out.
// Immutable afterwards; any thread.
//
// The canvases are "dead leaves": opaque shapes of random place, colour and texture laid over one another,
// their radii r drawn with density r^-3. Such pictures have the edges, flat parts and the scale-free 1/f^2
// power spectrum that photographs have (Ruderman, Origins of scaling in natural images, Vision Research 1997;
// Lee, Mumford, Huang, Occlusion models for natural images, IJCV 2001).
struct Scenery {
  explicit Scenery(std::uint64_t seed, unsigned threads = 0);  // 0: as many as there are processors

  static constexpr std::size_t kSharp = 4;  // number of canvases that come first: in focus, with things
  std::vector<Canvas> canvases;             // then backdrops: clouds, and things out of focus
  NoiseField grain;                         // fine detail: equal power in each octave from 2 to 32 pixels
  NoiseField patches;                       // smooth: 32 to 512 pixels
  std::vector<std::int8_t> patches_half;    // `patches` at half resolution
};

}  // namespace penstock
