// Paints a picture from parts of the scenery (scenery.hpp): a foreground and a background, each with its own
// light, contrast and grain.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/recipe/draws.hpp"
#include "datagen/recipe/scenery.hpp"

namespace penstock {

// Red, green and blue of a pixel from luma and colour differences, by JFIF's conversion.
constexpr std::array<uint8_t, 3> jfif_rgb(int luma, int blue, int red) {
  const auto clamped = [](int value) { return uint8_t(std::clamp(value, 0, 255)); };
  blue -= 128;
  red -= 128;
  // The factors of JFIF, times 1024.
  return {clamped(luma + 1436 * red / 1024), clamped(luma - (352 * blue + 731 * red) / 1024),
          clamped(luma + 1815 * blue / 1024)};
}

// Paints pictures. Only one thread at a time may use it. Allocates memory only if a picture is larger than
// all pictures before it. The scenery must outlive the painter.
class PicturePainter {
 public:
  explicit PicturePainter(const Scenery& scenery) : scenery_(scenery) {}

  // Paints the picture that the random numbers of `stream` determine. Pictures of two streams differ, because
  // positions, light and border are random. A picture with a side above kScenerySide repeats itself after
  // kScenerySide pixels, except near the border between foreground and background.
  void paint(RandomStream stream, uint32_t width, uint32_t height, YccImage& out);

 private:
  struct Layer {  // the foreground or the background: which part of one canvas it shows, and how
    size_t canvas;
    uint32_t x, y;                  // position of the first pixel in the canvas; even numbers
    int16_t contrast, light;        // contrast: a factor, times 64; light: a number that is added
    int16_t grain;                  // strength of the fine detail, times 64
    int16_t saturation, blue, red;  // saturation: a factor, times 64; the others are added to Cb and Cr
  };
  // The border between foreground and background. The foreground is where this sum is positive: patches *
  // weight + slopes + level.
  struct Border {
    uint32_t x, y;
    int16_t weight;
    int across, down, level;  // across, down: slopes per pixel, times 16
    int softness;             // how gradually the foreground fades into the background
  };
  Layer draw_layer(Draws& draws, bool front) const;
  Border draw_border(Draws& draws, uint32_t width, uint32_t height) const;
  void paint_luma(YccImage& out);
  void paint_colour(YccImage& out);
  void slope_across(size_t pixels, int step);

  const Scenery& scenery_;
  Layer front_{}, back_{};
  Border border_{};
  uint32_t grain_x_ = 0, grain_y_ = 0;
  // Position in Scenery::patches (smooth noise) of the part that is added to the picture as slow changes of
  // its brightness.
  uint32_t light_x_ = 0, light_y_ = 0;
  int16_t light_strength_ = 0;  // strength of these changes of brightness, times 64
  std::vector<int16_t> slope_;
};

}  // namespace penstock
