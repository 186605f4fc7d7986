// The bandwidths that Chowdhury et al. (NERSC) published for two programs, HEPCNNB and CDB (ClimDeepLearn),
// as their post-processors reckon them, and what the programs' own code says was read in that time. Shown
// side by side: neither is a device's, since read seconds are merged intervals, in which waiting for a
// processor counts.
#pragma once

#include <cstdint>

namespace penstock {

// Of HEPCNNB: the data set `data` of a file, single floats of 3x224x224, 709 samples for training or 94 for
// validation.
inline constexpr std::uint64_t kHepcnnTrainingFileBytes = 426'897'408;
inline constexpr std::uint64_t kHepcnnValidationFileBytes = 56'598'528;

struct HepcnnReads {
  std::uint64_t training_files = 1024;
  std::uint64_t training = 0;  // reads of files for training, over all ranks and epochs
  std::uint64_t validation = 0;
  std::uint64_t training_bytes = kHepcnnTrainingFileBytes;  // of a file's `data`
  std::uint64_t validation_bytes = kHepcnnValidationFileBytes;
};

// As published: each training file counts once, in whatever number of epochs it was read, and every other
// read as one of a file for validation.
std::uint64_t hepcnn_published_bytes(const HepcnnReads& reads);
// As they were: whatever part of an epoch a run ends in.
std::uint64_t hepcnn_corrected_bytes(const HepcnnReads& reads);

// Of CDB: as published, 17,694,752 bytes a read: the four channels that are used, their labels and
// statistics.
inline constexpr std::uint64_t kClimatePublishedReadBytes = 17'694'752;
// HDF5's driver "core" takes the whole file into memory: 16 channels of 768x1152 single floats, their labels,
// and 16x4 statistics. What HDF5 itself keeps in a file, some kilobytes, comes on top.
inline constexpr std::uint64_t kClimateFileBytes = 56'623'104 + 3'538'944 + 256;

std::uint64_t climate_published_bytes(std::uint64_t reads,
                                      std::uint64_t read_bytes = kClimatePublishedReadBytes);
std::uint64_t climate_corrected_bytes(std::uint64_t reads, std::uint64_t file_bytes = kClimateFileBytes);

// In bytes per second: all ranks' bytes over the read seconds of one, the mean. 0 without time.
double published_bandwidth(std::uint64_t bytes, double read_seconds);

}  // namespace penstock
