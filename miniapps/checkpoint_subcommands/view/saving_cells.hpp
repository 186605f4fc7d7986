// Records of `penstock checkpoint bench` as arms of an experiment, those of single saves, and what any record
// says of its checkpoint tiers. Shared by the sentences (verdicts.hpp) and the report page.
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

// Usable runs that saved in one way: by pair, of an arm.
struct SavingRuns {
  std::string arm;  // "direct", "burst-buffer", "snapshot"; "" of a training and a single save
  std::vector<const Record*> runs;  // never empty
  std::string name{};               // what a row and a sentence call them
  const Record& first() const { return *runs.front(); }

  // The median of all samples of a metric, absent without any; and their sum.
  std::optional<double> middle(std::string_view metric) const;
  std::optional<double> middle(const MetricInfo& metric) const { return middle(metric.name); }
  double sum(const MetricInfo& metric) const;
};

// Bench records that differ in arm and pair only, of the latest invocation that did this work.
struct SavingGroup {
  std::string name;   // "alexnet-adam, steps 40": the payload, and what tells this group from the others
  std::string title;  // "alexnet-adam, steps 40, to root behind shm"
  std::vector<SavingRuns> arms;  // direct first, then by name
  const SavingRuns* find(std::string_view arm) const;
};
std::vector<SavingGroup> saving_groups(std::span<const Record> records);

// A record of `checkpoint bench` that may be in a group.
bool is_saving(const Record& record);

// Records of `checkpoint save` by what was saved and where, named "alexnet-adam through shm".
std::vector<SavingRuns> single_saves(std::span<const Record> records);
bool is_single_save(const Record& record);

// The fast tier's name, with " (volatile)" after it where it is memory; "" without one.
std::string fast_name(const Record& record);
// "alexnet-adam", "files of state": what was saved.
std::string saved_payload(const Record& record);
// "straight to root", "through shm (volatile)", "by a copy in memory to root".
std::string saved_how(const Record& record, std::string_view arm);

// All samples of a metric over the runs, in order.
std::vector<double> samples_of(std::span<const Record* const> runs, std::string_view metric);
inline std::vector<double> samples_of(std::span<const Record* const> runs, const MetricInfo& metric) {
  return samples_of(runs, metric.name);
}

// Nothing in the runs was faster than the ceilings that it is held against.
bool ceilings_hold(std::span<const Record* const> runs);
// Seconds that a save of these bytes takes at the best rate of the tier that holds the training: the fast one
// where there is one. Absent without ceilings that hold, and where a copy in memory is what holds it.
std::optional<double> allowed_block_s(const SavingRuns& arm);

// " (3 of 5 saves were skipped, and held nothing)" of these runs; "" where none were.
std::string skipped_text(const SavingRuns& arm);

// Block time of direct saves over that of `arm`, pair by pair, by the medians of either run.
struct ShorterBy {
  PairedRatio ratio;
  double least = 0;
  double most = 0;
  std::optional<double> allowed;  // fast ceiling over slow ceiling; of saves through a fast tier
  bool ceiling_too_low = false;   // saves through it gained more than that by more than a tolerance
  bool is_significant() const { return least > 1 || most < 1; }
};
std::optional<ShorterBy> shorter_than_direct(const SavingGroup& group, const SavingRuns& arm);

}  // namespace penstock
