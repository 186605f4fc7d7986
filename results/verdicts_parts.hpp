// The parts that sentences() is made of; private to this folder.
#pragma once

#include <span>
#include <vector>

#include "results/cells.hpp"
#include "results/saving_cells.hpp"
#include "results/verdicts.hpp"

namespace penstock::verdicts {

void say_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out);
void say_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out);
// Of checkpoints: the bench's by arm, and those of trainings that wrote some.
void say_saving(const std::vector<SavingGroup>& groups, const std::vector<TrainGroup>& trained,
                const Output& output, std::vector<Sentence>& out);

// "a", "a and b", "a, b and c"; with more than `most`, "a, b and 5 more".
std::string enumerate(const std::vector<std::string>& words, std::size_t most = 4);
std::string threads_text(std::uint64_t threads);  // "1 thread", "8 threads"

}  // namespace penstock::verdicts
