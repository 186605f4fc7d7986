#include "miniapps/train/published_bandwidth.hpp"

#include <algorithm>

namespace penstock {

uint64_t hepcnn_published_bytes(const HepcnnReads& reads) {
  const uint64_t all_reads = reads.training_reads + reads.validation_reads;
  const uint64_t first_reads = std::min(all_reads, reads.training_files);
  return first_reads * reads.training_bytes + (all_reads - first_reads) * reads.validation_bytes;
}

uint64_t hepcnn_corrected_bytes(const HepcnnReads& reads) {
  return reads.training_reads * reads.training_bytes + reads.validation_reads * reads.validation_bytes;
}

uint64_t climate_published_bytes(uint64_t reads, uint64_t read_bytes) {
  return reads * read_bytes;
}

uint64_t climate_corrected_bytes(uint64_t reads, uint64_t file_bytes) {
  return reads * file_bytes;
}

double published_bandwidth(uint64_t bytes, double read_seconds) {
  return read_seconds > 0 ? double(bytes) / read_seconds : 0.0;
}

}  // namespace penstock
