// How the records of `checkpoint bench` and `checkpoint save` are shown, together with the checkpoints of
// trainings.
#include <fmt/format.h>

#include <set>

#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/saving_parts.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock {
namespace {

void add_superseded_saves(std::span<const Record> records, std::set<const Record*>& out) {
  for (const Record& record : records)
    if (is_saving(record)) out.insert(&record);
  for (const SavingGroup& group : saving_groups(records))
    for (const SavingRuns& arm : group.arms)
      for (const Record* const record : arm.runs) out.erase(record);
}

// Text such as "alexnet-adam through shm (volatile)"; "" if no tier is known.
std::string saved_text(const Record& record) {
  if (!record.tiers.contains("checkpoint")) return "";
  return fmt::format("{} {}", saved_payload(record), saved_how(record, parameter_text(record, "arm")));
}

std::vector<std::string> saving_names(ShownRecords records) {
  std::vector<std::string> names;
  for (const Record* const record : records) {
    names.push_back(saved_text(*record));
    if (names.back().empty()) names.back() = record->command;
  }
  return names;
}

std::vector<std::string> saving_label(const Record& record) {
  return {saved_text(record), threads_label(record)};
}

void describe_checkpoints(std::span<const Record> records, const Output& output, std::vector<Sentence>& out) {
  verdicts::describe_saving(saving_groups(records), single_saves(records), train_groups(records), output,
                            out);
}

std::vector<std::string> saving_tiles(std::span<const Record> records, report::PageState&) {
  std::vector<std::string> tiles;
  for (const SavingGroup& group : saving_groups(records))
    for (const SavingRuns& arm : group.arms)
      if (const auto shorter = block_time_against_direct(group, arm); shorter && shorter->least_ratio > 1)
        tiles.push_back(report::tile_html(
            fmt::format("{:.1f}", shorter->ratio.median), "x shorter",
            fmt::format("blocked by a save of {} {} than by a direct one{}{}", group.name, arm.name,
                        skipped_text(arm),
                        shorter->ceiling_too_low ? " (more than the ceilings measured allow)" : ""),
            2));
  return tiles;
}

bool shows_saving(const Record& record) {
  return is_saving(record) || is_single_save(record);
}

constexpr MetricInfo kSavingHeadline[] = {saving_metrics::kBlockTime, saving_metrics::kDrainRate,
                                          shared_metrics::kWall};

}  // namespace

extern const RecordView view_checkpoint;
const RecordView view_checkpoint{.name = "checkpoint",
                                 .order = 3,
                                 .topic = "checkpoints",
                                 .headline = kSavingHeadline,
                                 .compares_arms = true,
                                 .has_row = shows_saving,
                                 .add_superseded = add_superseded_saves,
                                 .names = saving_names,
                                 .labels = saving_label,
                                 .describe = describe_checkpoints,
                                 .bottom_line = verdicts::saving_bottom_line,
                                 .tiles = saving_tiles,
                                 .section = report::saving_section};

}  // namespace penstock
