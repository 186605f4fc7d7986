#include "miniapps/train/published_bandwidth.hpp"

#include <algorithm>

namespace penstock {

std::uint64_t hepcnn_published_bytes(const HepcnnReads& reads) {
  const std::uint64_t all = reads.training + reads.validation;
  const std::uint64_t once = std::min(all, reads.training_files);
  return once * reads.training_bytes + (all - once) * reads.validation_bytes;
}

std::uint64_t hepcnn_corrected_bytes(const HepcnnReads& reads) {
  return reads.training * reads.training_bytes + reads.validation * reads.validation_bytes;
}

std::uint64_t climate_published_bytes(std::uint64_t reads, std::uint64_t read_bytes) {
  return reads * read_bytes;
}

std::uint64_t climate_corrected_bytes(std::uint64_t reads, std::uint64_t file_bytes) {
  return reads * file_bytes;
}

double published_bandwidth(std::uint64_t bytes, double read_seconds) {
  return read_seconds > 0 ? static_cast<double>(bytes) / read_seconds : 0.0;
}

}  // namespace penstock
