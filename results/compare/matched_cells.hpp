// Which records of two sides are of the same work, whoever ran it, where and when.
//
// A cell is: the command; the corpus by recipe, format and samples; each tier by name and back end;
// every parameter that says what to do. Paths, output files, seeds, labels, how long or how often was
// measured, and what a run only found out are none of it. Three rules more:
//  - A parameter that one side's records do not know (an older program wrote them) tells nothing apart,
//    unless its own side has several values of it or its command line asked for it.
//  - The options of a tier (limit=, direct=1) tell cells apart only where one side has the same tier
//    with several.
//  - Of two arms of one suite, what has one value in either arm, but not the same, is what the arms are
//    for.
// What these rules pass over is said in a remark.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

struct Cell {
  std::string words;  // "read imagenet, disk, threads 4, cache cold"; of two cells never the same
  std::vector<const Record*> base;
  std::vector<const Record*> candidate;
};

struct MatchedCells {
  std::vector<Cell> cells;  // in the order of their first record
  std::vector<std::string> remarks;
};

// The records must outlive what is returned.
MatchedCells match_cells(std::span<const Record* const> base, std::span<const Record* const> candidate);

// suite and arm of an interleaved record, "" where there are none.
std::string suite_of(const Record& record);
std::string arm_of(const Record& record);
// Whether the two sides are different arms that ran in turn: they share a suite, none of its arms is on both
// sides, and the times of the two overlap, for a suite's name alone may be that of another day.
bool are_arms(std::span<const Record* const> base, std::span<const Record* const> candidate);

}  // namespace penstock
