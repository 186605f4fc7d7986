// The innermost loop that paints dead leaves (dead_leaves.hpp): it paints a part of one row of one leaf. It
// uses only sums and products of `float`, because IEEE 754 defines exactly how these are rounded. So the
// pixels are the same on every machine, however many pixels it computes at once.
#pragma once

#include <cstdint>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// The parameters of a leaf in one row of pixels. Position and light change linearly from pixel to pixel.
struct LeafRow {
  float u, v;  // position of the run's first pixel relative to the leaf's centre, along the leaf's own axes
  float u_step, v_step;
  float light_u, light_v;  // change of the light per unit of u and of v
  float luma;              // luma at the leaf's centre
  float texture;           // strength of the grain
  float radius;
  float raggedness;  // how much a value of 1 in `patches` adds to the squared radius
};

// The pixels to paint: `count` pixels of one row, which are consecutive in each of these arrays. They are
// painted in blocks of kSceneryBlock pixels. So up to kSceneryBlock - 1 pixels after them are also read, and
// written back unchanged.
struct LeafRun {
  int count;
  const int8_t* grain;
  const int8_t* patches;
  uint8_t* luma;
  uint8_t* colour_index;
};

// Paints those pixels of the run that are inside the leaf. The leaf is a blob, or a rectangle if `is_box`.
// Uses AVX2 if the processor has it (paint_run_has_avx2()).
void paint_run(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index);
bool paint_run_has_avx2();
// Paints the same pixels as paint_run(), without AVX2.
void paint_run_portable(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index);

}  // namespace penstock
