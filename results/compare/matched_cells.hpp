// Matches the records of base and candidate that did the same work, whatever program, machine or day they are
// from.
//
// A cell is identified by the command, the corpus (recipe, format and samples), each tier (name and back end)
// and the work parameters (results/record/work.hpp). These do not count: paths, output files, seeds, labels,
// how long or how often was measured, and facts that a run only found out. Three more rules:
// - A parameter that one side does not have at all (an older program wrote its records) does not distinguish
//   cells. But the parameter does distinguish cells if the other side has several values of it, or got it on
//   the command line.
// - The options of a tier (limit=, direct=1) distinguish cells only if one side has the same tier with
//   several options.
// - The sides may be two arms of one suite (an interleaved sweep). Then a parameter with one value in the
//   base and another in the candidate does not distinguish cells: it is what the user compares.
// A remark names each parameter in which the sides differ and that these three rules ignore.
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
  std::vector<Cell> cells;  // in the order in which the first record of each appears
  std::vector<std::string> remarks;
};

// Puts the records of base and candidate into cells. The result points to the records, which must live longer
// than it.
MatchedCells match_cells(std::span<const Record* const> base, std::span<const Record* const> candidate);

// The suite of a record from an interleaved comparison; "" for any other record. arm_of() returns its arm.
std::string suite_of(const Record& record);
std::string arm_of(const Record& record);
// Whether base and candidate are different arms that were interleaved. They must share a suite, and have no
// arm of it in common. The times of the suite's records must overlap, because a suite of another day may have
// the same name.
bool are_arms(std::span<const Record* const> base, std::span<const Record* const> candidate);

}  // namespace penstock
