#include "datagen/recipe/scenery.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <new>

#include "datagen/recipe/dead_leaves.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {
namespace {

// Colours of the leaves in YCbCr (y, cb, cr). Colours of real surfaces are much less saturated than those of
// screens.
constexpr std::array kFoliage{Colour{58, 116, 118},  Colour{82, 108, 118}, Colour{112, 104, 122},
                              Colour{44, 122, 124},  Colour{90, 112, 132}, Colour{140, 108, 128},
                              Colour{168, 110, 126}, Colour{36, 126, 128}, Colour{196, 118, 142}};
constexpr std::array kTown{Colour{150, 128, 128}, Colour{104, 126, 130}, Colour{196, 126, 129},
                           Colour{92, 114, 152},  Colour{62, 130, 127},  Colour{128, 118, 138},
                           Colour{222, 124, 130}, Colour{76, 140, 120},  Colour{172, 138, 120},
                           Colour{40, 130, 127}};
constexpr std::array kObjects{Colour{176, 114, 146}, Colour{120, 108, 156}, Colour{210, 118, 134},
                              Colour{70, 118, 148},  Colour{146, 104, 138}, Colour{96, 138, 122},
                              Colour{226, 126, 128}, Colour{34, 128, 130},  Colour{88, 110, 176},
                              Colour{160, 86, 148},  Colour{110, 148, 112}};
constexpr std::array kStones{Colour{120, 124, 132}, Colour{88, 122, 134},  Colour{150, 120, 134},
                             Colour{64, 124, 132},  Colour{176, 118, 136}, Colour{104, 130, 126},
                             Colour{48, 126, 130},  Colour{136, 112, 140}};

Canvas make_clouds(const NoiseField& patches, const NoiseField& grain) {
  Canvas canvas;
  canvas.y.resize(kSceneryArea);
  canvas.cb.resize(kSceneryArea / 4);
  canvas.cr.resize(kSceneryArea / 4);
  for (uint32_t y = 0; y < kScenerySide; ++y)
    for (uint32_t x = 0; x < kScenerySide; ++x) {
      const int cloud = std::max(0, patches[scenery_at(x, y)] + grain[scenery_at(x, y)] / 24);
      canvas.y[scenery_at(x, y)] = to_byte(168 + cloud * 3 / 4);
      if (x % 2 != 0 || y % 2 != 0) continue;
      const size_t half_index = size_t{y / 2} * (kScenerySide / 2) + x / 2;
      canvas.cb[half_index] = to_byte(150 - cloud / 5);
      canvas.cr[half_index] = to_byte(112 + cloud / 7);
    }
  return canvas;
}

Canvas out_of_focus(Canvas canvas, uint32_t reach) {
  for (int pass = 0; pass < 2; ++pass) blur(canvas, reach);
  return canvas;
}

void run_all(std::initializer_list<std::function<void()>> tasks, unsigned threads) {
  const Result<void> finished =
      for_each_index(tasks.size(), threads, 1, [&](unsigned /*worker*/, uint64_t i) {
        tasks.begin()[i]();
        return success();
      });
  if (!finished.ok()) throw std::bad_alloc();
}

}  // namespace

Scenery::Scenery(uint64_t seed, unsigned threads) {
  const RandomStream random(seed, "scenery");
  threads = compute_threads(threads);
  run_all({[&] { grain = fractal_noise(random.substream(0), kScenerySide / 32, kScenerySide); },
           [&] { patches = fractal_noise(random.substream(1), 2, kScenerySide / 32); }},
          threads);
  patches_half.resize(kSceneryArea / 4);
  for (uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (uint32_t x = 0; x < kScenerySide / 2; ++x)
      patches_half[size_t{y} * (kScenerySide / 2) + x] = patches[scenery_at(2 * x, 2 * y)];

  const LeafNoise noise{grain, patches};
  const std::array<LeafStyle, kSharpCanvases> styles{
      LeafStyle{kFoliage, 4, 256, false, 170, 300}, LeafStyle{kTown, 4, 384, true, 120, 300},
      LeafStyle{kObjects, 6, 384, false, 120, 300}, LeafStyle{kStones, 6, 192, false, 170, 300}};
  canvases.resize(kSharpCanvases + 3);
  const auto paint = [&](size_t i) {
    canvases[i] = dead_leaves(random.substream(2 + i), styles[i], noise);
    soften(canvases[i]);
  };
  run_all({[&] {
             paint(0);
             canvases[kSharpCanvases + 1] = out_of_focus(canvases[0], 10);
           },
           [&] { paint(3); },
           [&] {
             paint(2);
             canvases[kSharpCanvases + 2] = out_of_focus(canvases[2], 6);
           },
           [&] { paint(1); }, [&] { canvases[kSharpCanvases] = make_clouds(patches, grain); }},
          threads);
}

}  // namespace penstock
