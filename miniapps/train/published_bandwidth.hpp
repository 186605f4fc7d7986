// Calculates the bandwidths that Chowdhury et al. (NERSC) published for two programs: HEPCNNB and CDB
// (ClimDeepLearn). "Published" figures follow the study's own scripts. "Corrected" figures count the bytes
// that the programs really read. Penstock shows both.
// Neither is the bandwidth of a device: the read time is the time in which at least one read was running, and
// includes waits for a processor.
#pragma once

#include <cstdint>

namespace penstock {

// Bytes that HEPCNNB reads from one file for training or validation: the data set `data`, single floats of
// 3x224x224, with 709 samples for training or 94 for validation.
inline constexpr uint64_t kHepcnnTrainingFileBytes = 426'897'408;
inline constexpr uint64_t kHepcnnValidationFileBytes = 56'598'528;

struct HepcnnReads {
  uint64_t training_files = 1024;
  uint64_t training_reads = 0;  // how many files were read for training, over all ranks and epochs
  uint64_t validation_reads = 0;
  uint64_t training_bytes = kHepcnnTrainingFileBytes;  // bytes of `data` in one file
  uint64_t validation_bytes = kHepcnnValidationFileBytes;
};

// The published bytes: each training file counts once, however many epochs read it. All other reads, even of
// training files, count as reads of a validation file.
uint64_t hepcnn_published_bytes(const HepcnnReads& reads);
// The corrected bytes: all that was really read, also if the run ended within an epoch.
uint64_t hepcnn_corrected_bytes(const HepcnnReads& reads);

// How many bytes the study counted for each file that CDB reads: those of the four channels in use, their
// labels and their statistics.
inline constexpr uint64_t kClimatePublishedReadBytes = 17'694'752;
// How many bytes CDB really reads of each file: HDF5's driver "core" loads it whole. A file has 16 channels
// of 768x1152 single floats, their labels, and 16x4 statistics. HDF5's own structures in the file, some
// kilobytes, are not counted.
inline constexpr uint64_t kClimateFileBytes = 56'623'104 + 3'538'944 + 256;

uint64_t climate_published_bytes(uint64_t reads, uint64_t read_bytes = kClimatePublishedReadBytes);
uint64_t climate_corrected_bytes(uint64_t reads, uint64_t file_bytes = kClimateFileBytes);

// Returns the bandwidth in bytes per second: `bytes`, the bytes of all ranks, divided by `read_seconds`, the
// mean read time of a rank. 0 if `read_seconds` is 0.
double published_bandwidth(uint64_t bytes, double read_seconds);

}  // namespace penstock
