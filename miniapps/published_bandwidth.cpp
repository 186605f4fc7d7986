#include "miniapps/published_bandwidth.hpp"

#include <algorithm>

namespace penstock {
namespace {

std::uint64_t hepcnn_bytes(const HepcnnReads& reads, std::uint64_t of_training) {
  const std::uint64_t training = std::min(reads.reads, of_training);
  return training * reads.training_bytes + (reads.reads - training) * reads.validation_bytes;
}

}  // namespace

std::uint64_t hepcnn_published_bytes(const HepcnnReads& reads) {
  return hepcnn_bytes(reads, reads.training_files);
}

std::uint64_t hepcnn_corrected_bytes(const HepcnnReads& reads) {
  const std::uint64_t every_epoch = reads.epochs * reads.training_files;
  return hepcnn_bytes(reads, reads.reads >= every_epoch ? every_epoch : reads.training_files);
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
