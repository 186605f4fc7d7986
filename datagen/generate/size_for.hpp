// How large a data set MLPerf Storage's rules want: at least 500 steps of all accelerators in an epoch, and
// five times the memory of the hosts, so that no cache holds it (rules of MLPerf Storage v1.0 and v2.0,
// section "Dataset generation"; 500 steps and 5 times are theirs).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

struct SizeFor {
  std::string app;                 // whose batch it is
  std::uint64_t batch = 0;         // samples a step of one accelerator
  std::uint64_t accelerators = 0;  // in all
  std::uint64_t hosts = 1;
  std::uint64_t memory_bytes = 0;  // of one host
};

// "unet3d,accelerators=8,hosts=2", and where that is not right `memory=256GiB` of one host (that of this
// machine, `own_memory`, if absent) and `batch=4`. invalid_argument names what is missing or unknown.
Result<SizeFor> parse_size_for(std::string_view text, std::uint64_t own_memory);

// Why the number is not the rules' own where other samples than the application's are counted; "" for its
// own.
std::string doubt_of_size_for(std::string_view app, std::string_view recipe);

struct SizedFor {
  std::uint64_t samples = 0;
  std::string words{};  // how it came to the number
};
// In whole objects of `per_object` samples.
SizedFor samples_for(const SizeFor& rule, double mean_sample_bytes, std::uint64_t per_object);

}  // namespace penstock
