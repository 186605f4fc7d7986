// Computes how many samples the rules of MLPerf Storage require. An epoch must have at least 500 steps, and
// in each step every accelerator uses one batch. The data must be five times as large as the memory of all
// hosts together, so that no cache can contain it. Source: rules of MLPerf Storage v1.0 and v2.0, section
// "Dataset generation".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

struct SizeFor {
  std::string app;            // the application, such as "unet3d", whose batch size is used
  uint64_t batch = 0;         // samples per step of one accelerator
  uint64_t accelerators = 0;  // number in all hosts together
  uint64_t hosts = 1;
  uint64_t memory_bytes = 0;  // memory of one host
};

// Parses a text such as "unet3d,accelerators=8,hosts=2". `memory=256GiB` gives the memory of a host; the
// default is `own_memory_bytes`, the memory of this machine. `batch=4` replaces the application's batch.
// `invalid_argument` names the missing or unknown part.
Result<SizeFor> parse_size_for(std::string_view text, uint64_t own_memory_bytes);

// Returns a warning if the recipe is not that of the application, because the data set is then not one that
// the rules describe. Otherwise returns "".
std::string size_for_warning(std::string_view app, std::string_view recipe);

struct SampleCount {
  uint64_t samples = 0;
  std::string explanation{};  // how the number was computed
};
// The number of samples that the rules require, rounded up to whole objects of `per_object` samples.
SampleCount samples_for(const SizeFor& rule, double mean_sample_bytes, uint64_t per_object);

}  // namespace penstock
