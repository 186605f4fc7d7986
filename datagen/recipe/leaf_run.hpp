// The innermost loop of dead leaves: paints a part of one row of one leaf. It uses only sums and products of
// `float`, which IEEE 754 rounds in exactly one way. So the pixels are the same on every machine, and do not
// depend on how many are computed at once.
#pragma once

#include <cstdint>

#include "datagen/recipe/canvas.hpp"

namespace penstock {

// The parameters of a leaf in one row. Positions and light are linear in x.
struct LeafRow {
  float u, v;  // position of the row's first pixel relative to the leaf's centre, along the leaf's own axes
  float u_step, v_step;
  float light_u, light_v;  // slope of the light
  float luma;              // at the centre
  float texture;           // strength of the grain
  float radius;
  float raggedness;  // how far a value of 1 in `patches` moves the border, in square pixels
};

// A run of `count` pixels that are consecutive in every array. They are processed in blocks. So up to
// kSceneryBlock - 1 pixels after the run are read and written back unchanged.
struct LeafRun {
  int count;
  const int8_t* grain;
  const int8_t* patches;
  uint8_t* luma;
  uint8_t* colour_index;
};

// Paints a run of a blob, or of a rectangle if `is_box`. Uses AVX2 if the processor has it
// (paint_run_has_avx2()).
void paint_run(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index);
bool paint_run_has_avx2();
// Gives the same pixels, on any processor.
void paint_run_portable(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index);

}  // namespace penstock
