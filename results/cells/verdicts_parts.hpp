// The parts that sentences() is made of; private to this folder.
#pragma once

#include <span>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/cells/peer_cells.hpp"
#include "results/cells/rank_cells.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/cells/verdicts.hpp"

namespace penstock::verdicts {

void describe_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out);
void describe_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out);
void describe_rank_scaling(const std::vector<RankGroup>& groups, std::vector<Sentence>& out);
// A program that worked otherwise is no finding, but what it moved next to ours is worth a word.
void describe_peers(const std::vector<PeerCurve>& peers, const std::vector<ReadGroup>& groups,
                    std::vector<Sentence>& out);
void describe_grids(const std::vector<TrainGrid>& grids, std::vector<Sentence>& out);
// Of checkpoints: the bench's by arm, and those of trainings that wrote some.
void describe_saving(const std::vector<SavingGroup>& groups, const std::vector<TrainGroup>& trained,
                     const Output& output, std::vector<Sentence>& out);

// "a", "a and b", "a, b and c"; with more than `most`, "a, b and 5 more".
std::string enumerate(const std::vector<std::string>& words, std::size_t most = 4);
std::string threads_text(std::uint64_t threads);  // "1 thread", "8 threads"

// Gives what was said since `before` the place that it rests on, where it has none yet.
void rest_on(const std::string& anchor, std::size_t before, std::vector<Sentence>& out);

// `say` for each group of a section; what it says rests on that group's place.
template <typename Group, typename Say>
void describe_each(std::string_view section, const std::vector<Group>& groups, std::vector<Sentence>& out,
                   Say say) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t before = out.size();
    say(groups[i]);
    rest_on(group_anchor(section, i), before, out);
  }
}

}  // namespace penstock::verdicts
