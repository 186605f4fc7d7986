#include "datagen/recipe/picture.hpp"

#include <algorithm>

namespace penstock {
namespace {

constexpr uint32_t kMask = kScenerySide - 1;

// Converts to 16 bits. No product or sum below exceeds 16 bits. All values are kept in 16 bits, so that the
// compiler processes eight pixels at once.
int16_t narrow(int value) {
  return int16_t(value);
}

// How much of a pixel is foreground, from 0 to 128. `field` is 0 on the border, positive in the foreground
// and negative in the background. The farther a pixel is from the border, the larger is the absolute value of
// `field`. A larger `softness` makes the border softer.
int16_t front_share(int16_t field, int softness) {
  return std::clamp(narrow((field >> softness) + 64), narrow(0), narrow(128));
}

int16_t tone(uint8_t value, int16_t contrast, int16_t light) {
  return std::clamp(narrow(((value * contrast) >> 6) + light), narrow(0), narrow(255));
}

uint8_t to_byte(int16_t value) {
  return uint8_t(std::clamp(value, narrow(0), narrow(255)));
}

}  // namespace

PicturePainter::Layer PicturePainter::draw_layer(Draws& draws, bool front) const {
  Layer layer{};
  const int last_canvas = int(front ? Scenery::kSharpCanvases : scenery_.canvases.size()) - 1;
  layer.canvas = size_t(draws.between(0, last_canvas));
  layer.x = uint32_t(draws.between(0, kMask / 2)) * 2;
  layer.y = uint32_t(draws.between(0, kMask / 2)) * 2;
  const int contrast = draws.between(40, 74);
  // Values are multiplied by `contrast` / 64. `light` then moves them so that a middle grey (120) stays the
  // same, and adds a random amount that makes all values lighter or darker.
  layer.contrast = narrow(contrast);
  layer.light = narrow(120 - 120 * contrast / 64 + draws.between(-44, 32));
  layer.grain = narrow(front ? draws.between(6, 26) : draws.between(0, 12));
  layer.saturation = narrow(draws.between(36, 80));
  layer.blue = narrow(draws.between(-5, 5));
  layer.red = narrow(draws.between(-5, 5));
  return layer;
}

PicturePainter::Border PicturePainter::draw_border(Draws& draws, uint32_t width, uint32_t height) const {
  Border border{};
  border.x = uint32_t(draws.between(0, kMask / 2)) * 2;
  border.y = uint32_t(draws.between(0, kMask / 2)) * 2;
  const int percentile = draws.between(0, 99);
  const int w = int(std::min(width, 4096U));
  const int h = int(std::min(height, 4096U));
  if (percentile < 35) {  // a horizon: ground in front of sky or distance
    border.weight = narrow(draws.between(4, 24));
    border.down = draws.between(500, 900) * 375 / h;
    border.across = draws.between(-60, 60) * 500 / w;
    const int horizon = draws.between(h / 6, h * 2 / 3);
    border.level = -(border.down * horizon + border.across * w / 2) / 16;
    border.softness = draws.between(1, 4);
  } else if (percentile < 85) {  // objects in front of a background
    border.weight = narrow(draws.between(30, 60));
    border.across = draws.between(-90, 90) * 500 / w;
    border.down = draws.between(-20, 120) * 375 / h;
    border.level = -(border.down * h + border.across * w) / 32 + draws.between(-1200, 1800);
    border.softness = draws.between(1, 5);
  } else {  // only foreground: a texture or a close-up
    border.weight = 0;
    border.level = 12000;
    border.softness = 1;
  }
  return border;
}

void PicturePainter::slope_across(size_t pixels, int step) {
  if (slope_.size() < pixels) slope_.resize(pixels);
  for (size_t x = 0; x < pixels; ++x)
    slope_[x] = narrow(int(std::clamp<int64_t>(int64_t(x) * step / 16, -8000, 8000)));
}

void PicturePainter::paint(RandomStream stream, uint32_t width, uint32_t height, YccImage& out) {
  Draws draws(stream);
  out.reshape(width, height);
  front_ = draw_layer(draws, true);
  back_ = draw_layer(draws, false);
  border_ = draw_border(draws, width, height);
  grain_x_ = uint32_t(draws.between(0, kMask));
  grain_y_ = uint32_t(draws.between(0, kMask));
  light_x_ = uint32_t(draws.between(0, kMask));
  light_y_ = uint32_t(draws.between(0, kMask));
  light_strength_ = narrow(draws.between(24, 72));
  paint_luma(out);
  paint_colour(out);
}

void PicturePainter::paint_luma(YccImage& out) {
  const size_t width = out.stride();
  slope_across(width, border_.across);
  const uint8_t* front_plane = scenery_.canvases[front_.canvas].y.data();
  const uint8_t* back_plane = scenery_.canvases[back_.canvas].y.data();
  const Layer front = front_;
  const Layer back = back_;
  const int softness = border_.softness;
  const int16_t weight = border_.weight;
  const int16_t light = light_strength_;
  for (uint32_t y = 0; y < out.padded_height(); ++y) {
    const int16_t level =
        narrow(int(std::clamp<int64_t>(border_.level + int64_t{border_.down} * y / 16, -12000, 12000)));
    uint8_t* out_row = out.planes[0].data() + y * width;
    const auto row = [&](uint32_t top) { return size_t{(top + y) & kMask} << kSceneryBits; };
    for (size_t x = 0; x < width;) {
      // Computes run_pixels: how many pixels can be painted before the position in one of the sources wraps
      // around.
      const auto column = [&](uint32_t left) { return (left + uint32_t(x)) & kMask; };
      const uint32_t furthest_column =
          std::max({column(front.x), column(back.x), column(border_.x), column(grain_x_), column(light_x_)});
      const size_t run_pixels = std::min<size_t>(width - x, kScenerySide - furthest_column);
      const uint8_t* f = front_plane + row(front.y) + column(front.x);
      const uint8_t* b = back_plane + row(back.y) + column(back.x);
      const int8_t* p = scenery_.patches.data() + row(border_.y) + column(border_.x);
      const int8_t* g = scenery_.grain.data() + row(grain_y_) + column(grain_x_);
      const int8_t* l = scenery_.patches.data() + row(light_y_) + column(light_x_);
      const int16_t* s = slope_.data() + x;
      uint8_t* o = out_row + x;
      for (size_t i = 0; i < run_pixels; ++i) {
        const int16_t share = front_share(narrow(p[i] * weight + s[i] + level), softness);
        const int16_t front_luma = tone(f[i], front.contrast, front.light);
        const int16_t back_luma = tone(b[i], back.contrast, back.light);
        const int16_t shade = narrow(narrow(l[i] * light) >> 6);
        const int16_t mixed_luma =
            narrow(back_luma + (narrow((front_luma - back_luma) * share) >> 7) + shade);
        const int16_t strength = narrow(back.grain + (narrow((front.grain - back.grain) * share) >> 7));
        o[i] = to_byte(narrow(mixed_luma + (narrow(g[i] * strength) >> 6)));
      }
      x += run_pixels;
    }
  }
}

void PicturePainter::paint_colour(YccImage& out) {
  constexpr uint32_t kHalfSide = kScenerySide / 2;
  constexpr uint32_t kHalfMask = kHalfSide - 1;
  const size_t width = out.stride() / 2;
  slope_across(width, border_.across * 2);
  const Layer front = front_;
  const Layer back = back_;
  const int softness = border_.softness;
  const int16_t weight = border_.weight;
  for (uint32_t y = 0; y < out.padded_height() / 2; ++y) {
    const int16_t level =
        narrow(int(std::clamp<int64_t>(border_.level + int64_t{border_.down} * y / 8, -12000, 12000)));
    const auto row = [&](uint32_t top) { return size_t{(top / 2 + y) & kHalfMask} * kHalfSide; };
    for (size_t x = 0; x < width;) {
      const auto column = [&](uint32_t left) { return (left / 2 + uint32_t(x)) & kHalfMask; };
      const uint32_t furthest_column = std::max({column(front.x), column(back.x), column(border_.x)});
      const size_t run_pixels = std::min<size_t>(width - x, kHalfSide - furthest_column);
      const int8_t* p = scenery_.patches_half.data() + row(border_.y) + column(border_.x);
      const int16_t* s = slope_.data() + x;
      for (size_t plane = 1; plane < 3; ++plane) {
        const Canvas& near_canvas = scenery_.canvases[front.canvas];
        const Canvas& far_canvas = scenery_.canvases[back.canvas];
        const uint8_t* f =
            (plane == 1 ? near_canvas.cb : near_canvas.cr).data() + row(front.y) + column(front.x);
        const uint8_t* b = (plane == 1 ? far_canvas.cb : far_canvas.cr).data() + row(back.y) + column(back.x);
        const int16_t near_tint = narrow(128 + (plane == 1 ? front.blue : front.red));
        const int16_t far_tint = narrow(128 + (plane == 1 ? back.blue : back.red));
        uint8_t* o = out.planes[plane].data() + y * width + x;
        for (size_t i = 0; i < run_pixels; ++i) {
          const int16_t share = front_share(narrow(p[i] * weight + s[i] + level), softness);
          const int16_t front_colour = narrow(near_tint + (narrow((f[i] - 128) * front.saturation) >> 6));
          const int16_t back_colour = narrow(far_tint + (narrow((b[i] - 128) * back.saturation) >> 6));
          o[i] = to_byte(narrow(back_colour + (narrow((front_colour - back_colour) * share) >> 7)));
        }
      }
      x += run_pixels;
    }
  }
}

}  // namespace penstock
