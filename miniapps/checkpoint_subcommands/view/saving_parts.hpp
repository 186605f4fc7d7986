// Describes checkpoints in sentences and in a section of the report page: records of `checkpoint bench`,
// which compares arms, and records of trainings.
//
// The rules:
// - "X times shorter than direct saves" is the block time of direct saves divided by the block time of the
//   compared arm. This ratio is calculated for each pair, from the medians of both runs.
// - If the ratios of some pairs are below 1 and others above, no difference is claimed.
// - With one pair alone, the sentence is a caution.
// - If a save or a drain was faster than its ceiling, no share of a ceiling is given. A caution or the
//   record's verdict then says that the ceiling is too low.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

// See RecordView::bottom_line.
std::vector<std::string> saving_bottom_line(std::span<const Record> records, const Output& output);

void describe_saving(const std::vector<SavingGroup>& groups, const std::vector<SavingRuns>& save_runs,
                     const std::vector<TrainGroup>& trained, const Output& output,
                     std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

// The section as HTML; "" if no record has a checkpoint.
std::string saving_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
