// What records say of checkpoints: those of `checkpoint bench`, arm against arm, and those of trainings.
//
// The rules:
//  - Saves hold the training X times shorter than direct ones: direct over the other arm, pair by pair, by
//  the
//    medians of either run. Pairs on both sides of 1 cannot be told apart; of one pair it is a caution.
//    Ceilings that something surpassed are not spoken of.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

void describe_saving(const std::vector<SavingGroup>& groups, const std::vector<SavingRuns>& singles,
                     const std::vector<TrainGroup>& trained, const Output& output,
                     std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

// Finished HTML, "" when no record has a checkpoint.
std::string saving_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
