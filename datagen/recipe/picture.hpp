// One picture: a foreground and a background cut from the scenery, with light, contrast and grain of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/recipe/draws.hpp"
#include "datagen/recipe/scenery.hpp"

namespace penstock {

// A pixel's red, green and blue from its luma and colour differences, by JFIF's conversion.
constexpr std::array<std::uint8_t, 3> jfif_rgb(int luma, int blue, int red) {
  const auto clamped = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); };
  blue -= 128;
  red -= 128;
  // Factors times 1024.
  return {clamped(luma + 1436 * red / 1024), clamped(luma - (352 * blue + 731 * red) / 1024),
          clamped(luma + 1815 * blue / 1024)};
}

// Paints pictures; one thread, nothing allocated once it has grown. The scenery must outlive it.
class PicturePainter {
 public:
  explicit PicturePainter(const Scenery& scenery) : scenery_(scenery) {}

  // The picture that `stream` stands for: two streams give two pictures (where things lie, their light, and
  // the border between them are all drawn). Sides above kScenerySide repeat the scenery, never the whole.
  void paint(RandomStream stream, std::uint32_t width, std::uint32_t height, YccImage& out);

 private:
  struct Layer {  // how one canvas is shown
    std::size_t canvas;
    std::uint32_t x, y;            // where it is cut, even
    std::int16_t contrast, light;  // times 64; added
    std::int16_t grain;            // strength of the fine detail, times 1/64
    std::int16_t saturation, blue, red;
  };
  struct Border {  // where the foreground ends: patches * weight + slopes, cut soft or hard
    std::uint32_t x, y;
    std::int16_t weight;
    int across, down, level;  // slopes times 1/16 a pixel
    int softness;
  };
  Layer draw_layer(Draws& draws, bool front) const;
  Border draw_border(Draws& draws, std::uint32_t width, std::uint32_t height) const;
  void paint_luma(YccImage& out);
  void paint_colour(YccImage& out);
  void slope_across(std::size_t pixels, int step);

  const Scenery& scenery_;
  Layer front_{}, back_{};
  Border border_{};
  std::uint32_t grain_x_ = 0, grain_y_ = 0;
  std::uint32_t light_x_ = 0, light_y_ = 0;  // slow change of light over all, from `patches`
  std::int16_t light_ = 0;                   // its strength, times 1/64
  std::vector<std::int16_t> slope_;
};

}  // namespace penstock
