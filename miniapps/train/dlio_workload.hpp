// Reads DLIO's workload files (YAML): how data are read and how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// How long a step computes, as `train.computation_time` gives it. Each step draws its time from the
// distribution.
struct ComputationTime {
  double mean_s = 0;
  double deviation_s = 0;  // standard deviation
  // "normal", "gamma" (also for DLIO's `exponential`), "poisson" (in whole seconds) or "uniform". A uniform
  // distribution ends sqrt(3) * deviation_s below and above the mean.
  std::string_view distribution = "normal";
};

struct DlioWorkload {
  std::string name;                       // the value of model.name, or else the name of the file
  std::string storage_type = "local_fs";  // the values of storage.storage_type and storage_root
  std::string storage_root;
  std::string endpoint;     // URL of the object store: storage.storage_options.endpoint_url
  std::string data_folder;  // the value of dataset.data_folder
  std::string format = "tfrecord";
  uint64_t files = 8;
  uint64_t samples_per_file = 1;
  double sample_bytes = 0;  // the value of dataset.record_length_bytes; 0: not given
  uint64_t batch = 1;       // samples that one accelerator takes in a step
  // The value of reader.read_threads. 0: the training loop itself reads, and nothing is read ahead.
  uint64_t threads = 1;
  uint64_t prefetch = 2;
  uint64_t epochs = 1;
  uint64_t steps = 0;  // the value of train.total_training_steps; 0: no limit
  ComputationTime computation;
  double au = 0.9;  // the accelerator utilization that the workload requires
  // Steps at the start and at the end of each epoch that are left out of the AU: exclude_start_steps and
  // exclude_end_steps of output.metric.
  uint64_t excluded_first_steps = 1;
  uint64_t excluded_last_steps = 0;
  bool shuffles_files = false;
  bool shuffles_samples = false;
  bool trains = true;               // the value of workflow.train
  bool writes_checkpoints = false;  // the value of workflow.checkpoint
  std::string checkpoint_folder = "checkpoints";
  // Sentences for the user about settings of the file that have no effect in Penstock; some of these settings
  // have no effect in DLIO either.
  std::vector<std::string> notes;
};

// Reads a workload file. The overrides are merged into it first, in the forms of DLIO's command line:
// "++workload.reader.read_threads=8", "++workload.train={epochs: 2}", "~workload.metric". A value that is not
// set, or set to null, has DLIO's default. The order of the keys in the file does not matter.
// Errors: invalid_argument for impossible values, and for unknown keys that are nearly the name of a known
// one. Other unknown keys become a note: DLIO ignores them, too.
Result<DlioWorkload> read_dlio_workload(const std::string& file, const std::vector<std::string>& overrides);

// How many of the workload's files DLIO itself would read with this number of accelerators. Since its commit
// ad8ce8b DLIO rounds the number of files down to a multiple of samples per file x batch x accelerators. This
// is right only for files with one sample each, but DLIO does it for all files.
uint64_t files_read_by_dlio(const DlioWorkload& workload, uint64_t accelerators);

}  // namespace penstock
