// Matches the records of two sides that did the same work, whatever program, machine or day they are from.
//
// A cell is identified by the command, the corpus (recipe, format and samples), each tier (name and back
// end), and every parameter that says what to do. Paths, output files, seeds, labels, how long or how often
// was measured, and facts that a run only found out do not count. Three more rules:
//  - A parameter that the records of one side do not know (an older program wrote them) does not distinguish
//    cells. It does if its own side has several values of it, or asked for it on the command line.
//  - The options of a tier (limit=, direct=1) distinguish cells only if one side has the same tier with
//    several options.
//  - If the sides are two arms of one suite, a parameter with one value in each arm, but not the same, is
//    what the arms compare. It does not distinguish cells.
// A remark names each parameter that these rules ignore.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

struct Cell {
  std::string name;  // "read imagenet, disk, threads 4, cache cold"; unique
  std::vector<const Record*> base;
  std::vector<const Record*> candidate;
};

struct MatchedCells {
  std::vector<Cell> cells;  // in the order of their first record
  std::vector<std::string> remarks;
};

// The result points to the records, which must live longer than it.
MatchedCells match_cells(std::span<const Record* const> base, std::span<const Record* const> candidate);

// The suite and the arm of an interleaved record; "" if it has none.
std::string suite_of(const Record& record);
std::string arm_of(const Record& record);
// Whether the two sides are different arms that were interleaved. They share a suite, no arm of it is on both
// sides, and their times overlap: the name of a suite alone may also be the name of a suite of another day.
bool are_arms(std::span<const Record* const> base, std::span<const Record* const> candidate);

}  // namespace penstock
