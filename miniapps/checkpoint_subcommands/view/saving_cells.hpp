// Groups records of `penstock checkpoint bench` into the arms of an experiment, groups those of single saves,
// and describes the checkpoint tiers of any record. Used by the sentences (verdicts.hpp) and the report page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/metric.hpp"
#include "results/record/record.hpp"
#include "results/record/statistics.hpp"

namespace penstock {

// The usable records of runs that saved in the same way, in the order of their pairs.
struct SavingRuns {
  std::string arm;  // "direct", "burst-buffer", "snapshot"; "" for a training and a single save
  std::vector<const Record*> runs;  // never empty
  std::string name{};               // what a table row and a sentence call these runs
  const Record& first() const { return *runs.front(); }

  // median_of(): the median of all samples of a metric; absent if there are no samples. sum(): their sum.
  std::optional<double> median_of(std::string_view metric) const;
  std::optional<double> median_of(const MetricInfo& metric) const { return median_of(metric.name); }
  double sum(const MetricInfo& metric) const;
};

// Records of `checkpoint bench` that differ only in arm and pair. If the command was called several times
// with this work, the group has only the records of the latest call.
struct SavingGroup {
  std::string name;   // "alexnet-adam, steps 40": the payload, and what differs from the other groups
  std::string title;  // `name` and the tiers: "alexnet-adam, steps 40, to root behind shm"
  std::vector<SavingRuns> arms;  // direct first, then by name
  const SavingRuns* find(std::string_view arm) const;
};
std::vector<SavingGroup> saving_groups(std::span<const Record> records);

// Whether the record is one of `checkpoint bench` that can be in a group.
bool is_saving(const Record& record);

// Groups records of `checkpoint save` by payload and tiers, with names such as "alexnet-adam through shm".
std::vector<SavingRuns> single_saves(std::span<const Record> records);
bool is_single_save(const Record& record);

// The fast tier's name, with " (volatile)" if it is in memory; "" without a fast tier.
std::string fast_name(const Record& record);
// What was saved: the name of the payload, such as "alexnet-adam"; "files of FOLDER" for --from FOLDER;
// "checkpoints" if the record has neither.
std::string saved_payload(const Record& record);
// The way it was saved: "straight to root", "through shm (volatile)", "by a copy in memory to root".
std::string saved_how(const Record& record, std::string_view arm);

// All samples of a metric, in the order of the runs.
std::vector<double> samples_of(std::span<const Record* const> runs, std::string_view metric);
inline std::vector<double> samples_of(std::span<const Record* const> runs, const MetricInfo& metric) {
  return samples_of(runs, metric.name);
}

// Whether no save and no drain of the runs was faster than the ceiling of its tier.
bool ceilings_hold(std::span<const Record* const> runs);
// The seconds that a save needs at the ceiling of the tier for which the training waits: the fast tier or,
// without one, the slow tier. Absent if the records lack the ceiling or the bytes, or if ceilings_hold() is
// false. Also absent for snapshots, where the training waits only for a copy in memory.
std::optional<double> allowed_block_s(const SavingRuns& arm);

// Text such as " (3 of 5 saves were skipped, and held nothing)"; "" if none was skipped.
std::string skipped_text(const SavingRuns& arm);

// Compares an arm with direct saves: the time for which a direct save blocks the training, divided by the
// time for which a save of this arm blocks it. 2: the arm blocks half as long. A pair gives the ratio of the
// median block times of its two runs.
struct BlockTimeRatio {
  PairedRatio ratio;
  double least_ratio = 0;         // the smallest ratio of any pair
  double most_ratio = 0;          // the largest ratio of any pair
  std::optional<double> allowed;  // only through a fast tier: its ceiling divided by the slow tier's
  bool ceiling_too_low = false;   // the measured ratio is larger than the ceilings allow
  bool is_significant() const { return least_ratio > 1 || most_ratio < 1; }
};
std::optional<BlockTimeRatio> block_time_against_direct(const SavingGroup& group, const SavingRuns& arm);

}  // namespace penstock
