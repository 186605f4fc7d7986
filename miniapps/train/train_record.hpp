// What a training came to, as metrics and the verdict of its record (docs/mini_apps.md, docs/records.md).
#pragma once

#include <optional>
#include <vector>

#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/train_setup.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// --checkpoint-every and what goes with it, as understood; and where a run goes on.
void describe_saving(const TrainSetup& setup, Trial& trial);

// Adds to `trial`, once for each run that it has.
void record_outcome(const TrainOutcome& outcome, const TrainSetup& setup, Trial& trial);

// input_alone_s of each part, and input_overlap, for a training that came to `outcome`. The mean of the
// ranks, each of which ran as long as it took itself. Collective; a part that failed is the trial's failure.
Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial);

// What devices and servers delivered over what all epochs consumed. Absent where it is not counted, or where
// the count did not change although the page cache did not hold the data (some file systems never count).
std::optional<double> device_bytes_fraction(const std::vector<EpochBytes>& epochs, const CacheState& cache);
// The same by epoch.
void record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial);

}  // namespace penstock
