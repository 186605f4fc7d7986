// Reads DLIO's workload files (YAML): how data are read and how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct DlioWorkload {
  std::string name;         // the value of model.name, or else the name of the file
  std::string data_folder;  // the value of dataset.data_folder
  std::string format = "tfrecord";
  uint64_t files = 8;
  uint64_t samples_per_file = 1;
  uint64_t batch = 1;  // samples that one accelerator takes in a step
  // The value of reader.read_threads. 0: the training loop itself reads, and nothing is read ahead.
  uint64_t threads = 1;
  uint64_t prefetch = 2;
  uint64_t epochs = 1;
  uint64_t steps = 0;  // the value of train.total_training_steps; 0: no limit
  double computation_s = 0;
  double deviation_s = 0;  // standard deviation of computation_s
  double au = 0.9;         // the accelerator utilization that the workload requires
  bool shuffles = false;   // whether files or samples are shuffled
  // Sentences for the user about settings of the file that have no effect in Penstock; some of these settings
  // have no effect in DLIO either.
  std::vector<std::string> notes;
};

// Reads a workload file and then applies the overrides, which have the form of DLIO's command line:
// "++workload.reader.read_threads=8". A value that is not set has DLIO's default.
// Errors: invalid_argument for impossible values and for unknown keys, with the nearest known key. (DLIO
// itself ignores unknown keys silently.)
Result<DlioWorkload> read_dlio_workload(const std::string& file, const std::vector<std::string>& overrides);

// How many of the workload's files DLIO itself would read with this number of accelerators. Since its commit
// ad8ce8b DLIO rounds the number of files down to a multiple of samples per file x batch x accelerators. This
// is right only for files with one sample each, but DLIO does it for all files.
uint64_t files_read_by_dlio(const DlioWorkload& workload, uint64_t accelerators);

}  // namespace penstock
