#include "results/compare/matched_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "io_backends/core/text.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#include "results/cells/cells.hpp"
#include "results/import/foreign.hpp"
#include "results/record/json_members.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

// The facts with which the name of a cell begins, the most important first. The second text of each entry
// comes before the fact's value in that name: "to ", "threads ".
constexpr NamedText kFirstFacts[] = {
    {"app", ""},
    {"recipe", ""},
    {"payload", ""},
    {"benchmark", ""},
    {"job", ""},
    {"corpus", ""},
    {"tier data", ""},
    {"tier checkpoint", "to "},
    {"tier burst_buffer", "through "},
    {"threads", "threads "},
    {"cache", "cache "},
};

// Maps a fact to its value, both as text: "threads" to "4", "tier data" to "disk (posix)".
using Facts = std::map<std::string, std::string>;

constexpr std::string_view kOptionsFactPrefix = "options of ";
// The fact where another program worked. Its records have no name of a tier, only a path.
constexpr std::string_view kPathFactPrefix = "path of ";

// Whether the fact may differ between base and candidate: it tells cells apart only if it varies in one of
// them.
bool may_differ(const std::string& fact) {
  return fact.starts_with(kOptionsFactPrefix) || fact.starts_with(kPathFactPrefix);
}

Facts facts_of(const Record& record) {
  Facts facts;
  if (record.corpus.is_object() && !record.corpus.empty()) {
    std::string corpus = corpus_text(record, "recipe");
    for (const std::string_view name : {"format", "samples"})
      if (const std::string text = corpus_text(record, name); !text.empty())
        corpus += (corpus.empty() ? "" : " ") + text + (name == "samples" ? " samples" : "");
    facts["corpus"] = corpus;
  }
  for (const auto& [role, tier] : record.tiers.items()) {
    if (!tier.is_object() || tier.empty()) continue;
    const std::string name = member_any_text(tier, "name");
    if (find_importer(record.command) != nullptr) {
      facts[std::string(kPathFactPrefix) + role] = name;
      continue;
    }
    const std::string backend = member_any_text(tier, "backend");
    const auto spec = parse_tier(member_text(tier, "spec"), kNoNamedTiers);
    facts["tier " + role] = name + (backend.empty() ? "" : " (" + backend + ")");
    facts[std::string(kOptionsFactPrefix) + name] = spec ? options_text(spec->options, ",") : "";
  }
  for (const std::string& name : work_parameters(record)) {
    std::string text = work_text(record, name);
    if (name == "workload") text = std::filesystem::path(text).filename().string();
    facts[name] = std::move(text);
  }
  return facts;
}

// The records of one command in the base or in the candidate.
struct Side {
  std::vector<const Record*> records;
  std::vector<Facts> facts;  // the facts of each record
  std::map<std::string, std::set<std::string>> values;

  void add(const Record& record) {
    records.push_back(&record);
    facts.push_back(facts_of(record));
    for (const auto& [name, value] : facts.back()) values[name].insert(value);
  }
  // Gives the value "" (off) for the flag `name` to each record that lacks it: earlier versions recorded a
  // flag only when it was given.
  void add_absent_flag(const std::string& name) {
    for (size_t i = 0; i < records.size(); ++i)
      if (!facts[i].contains(name) && !name.starts_with("tier ") && !may_differ(name) && name != "corpus" &&
          !is_unknown(*records[i], name)) {
        facts[i][name] = "";
        values[name].insert("");
      }
  }
  bool has(const std::string& name) const { return values.contains(name); }
  bool every_record_has(const std::string& name) const {
    return std::all_of(facts.begin(), facts.end(), [&](const Facts& one) { return one.contains(name); });
  }
  size_t value_count(const std::string& name) const { return has(name) ? values.at(name).size() : 0; }
  const std::string& single_value(const std::string& name) const { return *values.at(name).begin(); }
};

// Whether the command line of any record of the side has the option of the parameter `name`.
bool is_on_command_line(const Side& side, const std::string& name) {
  std::string option = "--" + name;
  std::replace(option.begin(), option.end(), '_', '-');
  const std::string without_unit = option.ends_with("-s") ? option.substr(0, option.size() - 2) : option;
  const auto matches = [&](const std::string& word) {
    const std::string key = word.substr(0, word.find('='));
    return key == option || key == without_unit;
  };
  return std::any_of(side.records.begin(), side.records.end(), [&](const Record* record) {
    return std::any_of(record->argv.begin(), record->argv.end(), matches);
  });
}

std::string value_or_none(const std::string& value) {
  return value.empty() ? "none" : value;
}

// The names of the facts that distinguish the cells of one command. If base and candidate differ in a fact
// that is ignored, the reason is added to `remarks`.
std::set<std::string> distinguishing_facts(const Side& base, const Side& candidate, bool sides_are_arms,
                                           std::vector<std::string>& remarks) {
  std::set<std::string> names;
  for (const Side* const side : {&base, &candidate})
    for (const auto& [name, values] : side->values) names.insert(name);
  if (base.records.empty() || candidate.records.empty()) {
    const Side& side = base.records.empty() ? candidate : base;
    std::erase_if(names, [&](const std::string& name) {
      if (side.value_count(name) > 1) return false;
      if (may_differ(name)) return true;
      // Ignore a parameter that some records lack and that is on no command line. Older programs did not have
      // its option. Newer programs recorded its default, with which they did the same as the older ones.
      return !side.every_record_has(name) && !is_on_command_line(side, name);
    });
    return names;
  }
  // Side ("base" or "candidate") -> the parameters that only its records have, and whose value is "".
  std::map<std::string, std::vector<std::string>> without_value;
  std::erase_if(names, [&](const std::string& name) {
    const bool varies = base.value_count(name) > 1 || candidate.value_count(name) > 1;
    const bool one_each = base.value_count(name) == 1 && candidate.value_count(name) == 1;
    const bool values_differ = one_each && base.single_value(name) != candidate.single_value(name);
    if (may_differ(name)) {
      if (!varies && values_differ)
        remarks.push_back(fmt::format("the {}: {} in the base, {} in the candidate", name,
                                      value_or_none(base.single_value(name)),
                                      value_or_none(candidate.single_value(name))));
      return !varies;
    }
    if (sides_are_arms && values_differ) {
      remarks.push_back(fmt::format("the arms differ in {}: {} in the base, {} in the candidate", name,
                                    value_or_none(base.single_value(name)),
                                    value_or_none(candidate.single_value(name))));
      return true;
    }
    if (values_differ)
      remarks.push_back(fmt::format("{}: {} in the base, {} in the candidate, so no cell is in both", name,
                                    value_or_none(base.single_value(name)),
                                    value_or_none(candidate.single_value(name))));
    if (base.has(name) && candidate.has(name)) return false;
    const Side& side = base.has(name) ? base : candidate;
    if (varies || is_on_command_line(side, name)) return false;
    if (side.single_value(name).empty()) {
      without_value[&side == &base ? "base" : "candidate"].push_back(name);
      return true;
    }
    remarks.push_back(fmt::format("only the {} has the parameter {} ({}): it does not distinguish cells",
                                  &side == &base ? "base" : "candidate", name,
                                  value_or_none(side.single_value(name))));
    return true;
  });
  for (const auto& [side, without] : without_value)
    remarks.push_back(
        fmt::format("only the {} has these parameters, without a value ({}): "
                    "in the {} they are unknown",
                    side, fmt::join(without, ", "), side == "base" ? "candidate" : "base"));
  return names;
}

// Names for the cells of one command. `facts` has, for each cell, the facts of its first record.
std::vector<std::string> cell_names(const std::string& command, const std::vector<Facts>& facts,
                                    const std::set<std::string>& fact_names) {
  std::vector<std::string> names;
  for (const Facts& of_cell : facts) {
    std::string cell_name = command;
    const auto value_of = [&](std::string_view name) {
      const auto at = of_cell.find(std::string(name));
      return at == of_cell.end() ? std::string() : at->second;
    };
    const auto add = [&](std::string_view words_before, const std::string& value) {
      if (value.empty()) return;
      cell_name.append(cell_name == command ? " " : ", ").append(words_before).append(value);
    };
    for (const auto& [name, words_before] : kFirstFacts) add(words_before, value_of(name));
    for (const std::string& name : fact_names) {
      const auto matches = [&](const auto& first) { return first.name == name; };
      if (std::any_of(std::begin(kFirstFacts), std::end(kFirstFacts), matches)) continue;
      std::set<std::string> values;
      for (const Facts& other : facts) {
        const auto at = other.find(name);
        values.insert(at == other.end() ? std::string() : at->second);
      }
      if (values.size() > 1) add(name + " ", value_of(name));
    }
    names.push_back(std::move(cell_name));
  }
  return names;
}

std::string key_of(const Facts& facts, const std::set<std::string>& fact_names) {
  std::string key;
  for (const std::string& name : fact_names) {
    const auto at = facts.find(name);
    if (at == facts.end() || at->second.empty()) continue;
    key += name + '\x1f' + at->second + '\x1e';
  }
  return key;
}

// The records of base and candidate that are matched with each other. If the two are arms, these are the
// records of one suite, because arms of other suites may differ in other options. Else they are all records
// of one command.
struct Sides {
  Side base;
  Side candidate;
};

void add_absent_flags(Sides& sides) {
  std::set<std::string> names;
  for (const Side* const side : {&sides.base, &sides.candidate})
    for (const auto& [name, values] : side->values) names.insert(name);
  for (Side* const side : {&sides.base, &sides.candidate})
    for (const std::string& name : names) side->add_absent_flag(name);
}

void match_command(const std::string& command, std::map<std::string, Sides>& groups, bool sides_are_arms,
                   MatchedCells& matched) {
  std::set<std::string> all_fact_names;
  std::map<std::string, size_t> cell_index;
  std::vector<Cell> cells;
  std::vector<Facts> first_facts;
  for (auto& [suite, sides] : groups) {
    add_absent_flags(sides);
    const std::set<std::string> fact_names =
        distinguishing_facts(sides.base, sides.candidate, sides_are_arms, matched.remarks);
    all_fact_names.insert(fact_names.begin(), fact_names.end());
    const auto add = [&](const Side& side, std::vector<const Record*> Cell::*cell_side) {
      for (size_t i = 0; i < side.records.size(); ++i) {
        const auto [at, inserted] = cell_index.try_emplace(key_of(side.facts[i], fact_names), cells.size());
        if (inserted) {
          cells.emplace_back();
          first_facts.push_back(side.facts[i]);
        }
        (cells[at->second].*cell_side).push_back(side.records[i]);
      }
    };
    add(sides.base, &Cell::base);
    add(sides.candidate, &Cell::candidate);
  }
  const std::vector<std::string> names = cell_names(command, first_facts, all_fact_names);
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].name = names[i];
    matched.cells.push_back(std::move(cells[i]));
  }
}

// What base or candidate has of one suite: its arms, and the times of its first and its last record.
struct SuiteOfSide {
  std::set<std::string> arms;
  std::string first;
  std::string last;
};

std::map<std::string, SuiteOfSide> suites_of(std::span<const Record* const> records) {
  std::map<std::string, SuiteOfSide> suites;
  for (const Record* const record : records) {
    const std::string suite = suite_of(*record);
    const std::string arm = arm_of(*record);
    if (suite.empty() || arm.empty()) continue;
    const auto [at, inserted] = suites.try_emplace(suite, SuiteOfSide{{}, record->started, record->started});
    at->second.arms.insert(arm);
    at->second.first = std::min(at->second.first, record->started);
    at->second.last = std::max(at->second.last, record->started);
  }
  return suites;
}

}  // namespace

std::string suite_of(const Record& record) {
  return member_any_text(record.pair, "suite");
}
std::string arm_of(const Record& record) {
  return member_any_text(record.pair, "arm");
}

bool are_arms(std::span<const Record* const> base, std::span<const Record* const> candidate) {
  const std::map<std::string, SuiteOfSide> base_suites = suites_of(base);
  const std::map<std::string, SuiteOfSide> candidate_suites = suites_of(candidate);
  bool share_suite = false;
  for (const auto& [suite, one] : base_suites) {
    const auto other_suite = candidate_suites.find(suite);
    if (other_suite == candidate_suites.end()) continue;
    if (std::any_of(one.arms.begin(), one.arms.end(),
                    [&](const std::string& arm) { return other_suite->second.arms.contains(arm); }))
      return false;
    if (one.first <= other_suite->second.last && other_suite->second.first <= one.last) share_suite = true;
  }
  return share_suite;
}

MatchedCells match_cells(std::span<const Record* const> base, std::span<const Record* const> candidate) {
  const bool sides_are_arms = are_arms(base, candidate);
  std::vector<std::string> commands;
  // Command -> suite ("" if the sides are not arms) -> records.
  std::map<std::string, std::map<std::string, Sides>> groups;
  const auto add = [&](std::span<const Record* const> records, Side Sides::*side) {
    for (const Record* const record : records) {
      const auto [at, inserted] = groups.try_emplace(record->command);
      if (inserted) commands.push_back(record->command);
      (at->second[sides_are_arms ? suite_of(*record) : std::string()].*side).add(*record);
    }
  };
  add(base, &Sides::base);
  add(candidate, &Sides::candidate);
  MatchedCells matched;
  for (const std::string& command : commands)
    match_command(command, groups[command], sides_are_arms, matched);
  std::vector<std::string> distinct_remarks;
  for (std::string& remark : matched.remarks)
    if (std::find(distinct_remarks.begin(), distinct_remarks.end(), remark) == distinct_remarks.end())
      distinct_remarks.push_back(std::move(remark));
  matched.remarks = std::move(distinct_remarks);
  return matched;
}

}  // namespace penstock
