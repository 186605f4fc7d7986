// The innermost loop of dead leaves: a piece of one row of one leaf. Sums and products of `float` alone,
// which IEEE 754 rounds in one way: the same bytes on every machine, however many pixels it does at a time.
#pragma once

#include <cstdint>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// What a leaf is made with along a row, as lines in x.
struct LeafRow {
  float u, v;  // of the row's first pixel, from the middle, along the leaf's own axes
  float u_step, v_step;
  float light_u, light_v;  // slope of the light
  float luma;              // of the middle
  float texture;           // strength of the grain
  float radius;
  float raggedness;  // what a step of the patches moves the border by, in squares of pixels
};

// `count` pixels that are neighbours in every field. Looked at in blocks: up to kSceneryBlock - 1 pixels
// behind them are read, and written as they were.
struct LeafRun {
  int count;
  const std::int8_t* grain;
  const std::int8_t* patches;
  std::uint8_t* luma;
  std::uint8_t* colour_index;
};

// `box`: rather than a blob. With AVX2 where the processor has it (paint_run_has_avx2()).
void paint_run(const LeafRow& row, const LeafRun& run, bool box, std::uint8_t index);
bool paint_run_has_avx2();
// The same on any processor.
void paint_run_portable(const LeafRow& row, const LeafRun& run, bool box, std::uint8_t index);

}  // namespace penstock
