// Reads DLIO's workload files (YAML): how data are read and how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct DlioWorkload {
  std::string name;         // model.name, or the name of the file
  std::string data_folder;  // dataset.data_folder
  std::string format = "tfrecord";
  uint64_t files = 8;
  uint64_t samples_per_file = 1;
  uint64_t batch = 1;  // samples of a step for one accelerator
  // reader.read_threads; 0: the training loop reads by itself, and nothing is read ahead.
  uint64_t threads = 1;
  uint64_t prefetch = 2;
  uint64_t epochs = 1;
  uint64_t steps = 0;  // train.total_training_steps; 0: no limit
  double computation_s = 0;
  double deviation_s = 0;  // standard deviation of computation_s
  double au = 0.9;         // the accelerator utilization that the workload requires
  bool shuffles = false;   // shuffles files or samples
  // Sentences for the user about settings of the file that have no effect in Penstock, or not even in DLIO.
  std::vector<std::string> notes;
};

// `overrides` have the form of DLIO's command line: "++workload.reader.read_threads=8". Defaults are DLIO's.
// invalid_argument for impossible values, and, with the nearest known key, for keys that DLIO does not have.
// DLIO itself ignores unknown keys silently.
Result<DlioWorkload> read_dlio_workload(const std::string& file, const std::vector<std::string>& overrides);

// How many of the files DLIO itself would read with `accelerators`. Since its commit ad8ce8b it rounds the
// number of files down to a multiple of the samples of one step. It counts the step of all accelerators, and
// treats a file as one sample.
uint64_t files_read_by_dlio(const DlioWorkload& workload, uint64_t accelerators);

}  // namespace penstock
