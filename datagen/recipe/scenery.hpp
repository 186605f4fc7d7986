// The stock that pictures are cut from: canvases with the statistics of photographs, and noise fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io_backends/base/random.hpp"

namespace penstock {

inline constexpr std::uint32_t kSceneryBits = 10;
inline constexpr std::uint32_t kScenerySide = 1U << kSceneryBits;  // canvases and fields wrap around at this

// Numbers of one stream, one after another. A value.
class Draws {
 public:
  explicit Draws(RandomStream stream) : stream_(stream) {}
  // In [low, high].
  int between(int low, int high) {
    return low + static_cast<int>(stream_.below(next_++, static_cast<std::uint64_t>(high - low) + 1));
  }
  bool percent(int chance) { return between(0, 99) < chance; }
  double uniform() { return stream_.uniform(next_++); }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

// A picture without borders: kScenerySide squared in Y, half of that on each side in Cb and Cr.
struct Canvas {
  std::vector<std::uint8_t> y;
  std::vector<std::uint8_t> cb;
  std::vector<std::uint8_t> cr;
};

// Signed noise without borders, kScenerySide squared.
using NoiseField = std::vector<std::int8_t>;

// Integer arithmetic and exactly rounded operations only: the same on every machine for a seed. Takes about
// 0.2 s of processor time to make, on a thread for each processor, and 13 MiB to keep; std::bad_alloc where
// memory or threads run out. Immutable afterwards; any thread.
//
// The canvases are "dead leaves": opaque shapes of random place, colour and texture laid over one another,
// their radii r drawn with density r^-3. Such pictures have the edges, flat parts and the scale-free 1/f^2
// power spectrum that photographs have (Ruderman, Origins of scaling in natural images, Vision Research 1997;
// Lee, Mumford, Huang, Occlusion models for natural images, IJCV 2001).
struct Scenery {
  explicit Scenery(std::uint64_t seed);

  static constexpr std::size_t kSharp = 4;  // the first so many canvases are in focus, with things in them
  std::vector<Canvas> canvases;             // then backdrops: clouds, and things out of focus
  NoiseField grain;                         // fine detail: equal power in each octave from 2 to 32 pixels
  NoiseField patches;                       // smooth: 32 to 512 pixels
  std::vector<std::int8_t> patches_half;    // `patches` at half resolution
};

}  // namespace penstock
