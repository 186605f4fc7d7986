// Workloads as DLIO writes them, in YAML: what of them says how data are read and how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct DlioWorkload {
  std::string name;         // model.name, or that of the file
  std::string data_folder;  // dataset.data_folder
  std::string format = "tfrecord";
  std::uint64_t files = 8;
  std::uint64_t samples_per_file = 1;
  std::uint64_t batch = 1;    // samples a step, of one accelerator
  std::uint64_t threads = 1;  // reader.read_threads; 0: the training reads by itself, and nothing ahead
  std::uint64_t prefetch = 2;
  std::uint64_t epochs = 1;
  std::uint64_t steps = 0;  // train.total_training_steps; 0: none
  double computation_s = 0;
  double deviation_s = 0;  // standard deviation of computing
  double au = 0.9;         // what utilization it asks for
  bool shuffles = false;   // files or samples
  // What of the file has no effect: here, or in DLIO itself. Sentences.
  std::vector<std::string> notes;
};

// `overrides`: as on DLIO's own line, "++workload.reader.read_threads=8". Defaults are DLIO's.
// invalid_argument, with the nearest known one, for a key that DLIO does not have (it passes over those in
// silence) and for values that make no sense.
Result<DlioWorkload> read_dlio_workload(const std::string& file, const std::vector<std::string>& overrides);

// How many of the files DLIO itself would read with that many accelerators: since its commit ad8ce8b it cuts
// their number to a multiple of what all read in a step, in samples, as if each file were one.
std::uint64_t files_left_by_dlio(const DlioWorkload& workload, std::uint64_t accelerators);

}  // namespace penstock
