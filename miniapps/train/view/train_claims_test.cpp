// Holds every number and every claim in the sentences about random records of `train` against the figures.
#include <map>
#include <string>
#include <vector>

#include "results/cells/claims_testing.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

// One record, as the test knows it.
struct Cell {
  double steps = 100;
  double wait_s = 1;  // of all steps
  double wall_s = 10;
  double utilization = -1;  // below 0: not measured
  std::map<std::string, double> lost_s;
  std::map<std::string, double> busy_s;  // of each stage; a stage is starved for the rest of wall_s
  double overlap = -2;                   // below -1: not measured
  double validation_s = 0;
  std::vector<double> saves_s;
  double dropped = 0;
  double samples_per_s = 500;
  bool client_bound = false;
};
using Grid = std::map<int, std::map<int, Cell>>;  // by threads and by prefetch

Cell random_cell(Draws& draws) {
  Cell cell;
  cell.steps = double(10 + draws.below(200));
  cell.wall_s = draws.between(1, 50);
  cell.wait_s = cell.wall_s * draws.between(0, 0.9);
  if (draws.chance(0.8))
    cell.utilization = draws.chance(0.3) ? draws.between(0.95, 1) : draws.between(0.05, 1);
  if (draws.chance(0.7))
    for (const char* const cause : {"read", "decode", "collate", "queue", "barrier", "straggler"})
      if (draws.chance(0.6)) cell.lost_s[cause] = cell.wall_s * draws.between(0, 0.2);
  if (draws.chance(0.8))
    for (const char* const stage : {"read", "decode", "batch", "accelerator"})
      if (draws.chance(0.9)) cell.busy_s[stage] = cell.wall_s * (draws.chance(0.3) ? 1 : draws.between(0, 1));
  if (draws.chance(0.3)) cell.overlap = draws.between(-0.2, 1);
  if (draws.chance(0.3)) cell.validation_s = cell.wall_s * draws.between(0, 0.5);
  if (draws.chance(0.3)) cell.saves_s = draws.around(cell.wall_s / 20, 0.5, 1 + draws.below(5));
  if (draws.chance(0.5)) cell.dropped = cell.samples_per_s * cell.wall_s * draws.between(0, 0.4);
  cell.samples_per_s = draws.between(10, 5000);
  cell.client_bound = draws.chance(0.2);
  return cell;
}

Record record_of(int threads, int prefetch, const Cell& cell) {
  Record record = train_cell(prefetch, cell.wait_s, int(cell.steps));
  record.parameters["threads"] = threads;
  if (cell.client_bound) record.verdict = Verdict::client_bound;
  const auto set = [&](const std::string& name, std::vector<double> samples) {
    record.metrics[name] = {"s", Better::neither, "run", std::move(samples)};
  };
  set("wall_s", {cell.wall_s});
  set("samples_per_s", {cell.samples_per_s});
  set("dropped_tail_samples", {cell.dropped});
  if (cell.utilization >= 0) set("accelerator_utilization", {cell.utilization});
  for (const auto& [cause, lost_s] : cell.lost_s) set("lost_s." + cause, {lost_s});
  for (const auto& [stage, busy_s] : cell.busy_s) {
    const double stage_threads = stage == "accelerator" ? 1 : threads;
    set("stage_busy_s." + stage, {busy_s * stage_threads});
    set("stage_starved_s." + stage, {(cell.wall_s - busy_s) * stage_threads});
  }
  if (cell.overlap > -1) set("input_overlap", {cell.overlap});
  if (cell.validation_s > 0) {
    set("validation_s", {cell.validation_s});
    set("validation_passes", {3});
    set("validation_samples", {96});
  }
  if (!cell.saves_s.empty()) set("checkpoint_s", cell.saves_s);
  return record;
}

int threads_in(const std::string& text) {
  const auto parts = parts_of(text, "threads #");
  return parts.empty() ? 0 : int(number_in(parts[0]));
}

// The row of the grid that the sentence is about.
const std::map<int, Cell>& row_of(const std::string& text, const Grid& grid) {
  return grid.size() == 1 ? grid.begin()->second : grid.at(threads_in(text));
}

const Cell& cell_of(const std::string& text, const Grid& grid) {
  return row_of(text, grid).at(int(number_in(parts_of(text, "[Ww]ith prefetch #").at(0))));
}

void check_utilization(const std::string& text, const Grid& grid) {
  for (const auto& [prefetch, cell] : row_of(text, grid)) {
    const auto told = parts_of(text, "#% with prefetch " + std::to_string(prefetch) + "(?:,|;| )");
    ASSERT_EQ(told.empty(), cell.utilization < 0) << text;
    if (!told.empty()) {
      EXPECT_TRUE(is_percent(told[0], cell.utilization)) << text;
    }
  }
}

void check_lost(const std::string& text, const Grid& grid) {
  const Cell& cell = cell_of(text, grid);
  double sum_s = 0;
  for (const auto& [cause, lost_s] : cell.lost_s) {
    sum_s += lost_s;
    const auto told = parts_of(text, "#% to " + cause);
    const bool shortened = text.find(" more.") != std::string::npos;
    ASSERT_TRUE(told.empty() ? shortened || lost_s < 0.01 * cell.wall_s : lost_s >= 0.01 * cell.wall_s)
        << text << cause;
    if (!told.empty()) {
      EXPECT_TRUE(is_percent(told[0], lost_s / cell.wall_s)) << text;
    }
  }
  EXPECT_TRUE(is_percent(parts_of(text, "lost #% of the wall").at(0), sum_s / cell.wall_s)) << text;
}

void check_bottleneck(const std::string& text, const Grid& grid) {
  const Cell& cell = cell_of(text, grid);
  const auto name = parts_of(text, ", (?:the )?(\\w+) is the bottleneck");
  ASSERT_EQ(name.size(), 1U) << text;
  const double busy_s = cell.busy_s.at(name[0]);
  EXPECT_GT(busy_s, cell.wall_s / 2) << text;
  for (const auto& [stage, other_s] : cell.busy_s) EXPECT_LE(other_s, busy_s) << text << stage;
  if (name[0] == "accelerator") {
    EXPECT_GE(cell.utilization, 0.975) << text;
    return;
  }
  EXPECT_TRUE(is_percent(parts_of(text, "busy #% of").at(0), busy_s / cell.wall_s)) << text;
  if (cell.busy_s.contains("accelerator") && cell.busy_s.at("accelerator") > 0) {
    EXPECT_GE(cell.utilization, 0) << "unknown: " << text;
  }
  EXPECT_LT(cell.utilization, 0.98) << text;
  for (const auto& [cause, lost_s] : cell.lost_s) {
    const std::string own_cause = name[0] == "batch" ? "collate" : name[0];
    EXPECT_LE(lost_s, cell.lost_s.contains(own_cause) ? cell.lost_s.at(own_cause) : 0) << text << cause;
  }
}

void check_prefetch(const std::string& text, const Grid& grid) {
  const auto& row = row_of(text, grid);
  const auto hidden = parts_of(text, "Prefetching hid #% of the input's own time");
  if (!hidden.empty()) {
    const Cell& cell = row.at(int(number_in(parts_of(text, "prefetch #; its own").at(0))));
    EXPECT_TRUE(is_percent(hidden[0], cell.overlap)) << text;
    EXPECT_FALSE(row.contains(0) && row.at(0).wait_s > 0) << "prefetch 0 was measured: " << text;
    EXPECT_EQ(text.find("client_bound") != std::string::npos, cell.client_bound) << text;
    return;
  }
  const auto ahead = parts_of(text, "# batch(?:es)? ahead");
  ASSERT_EQ(ahead.size(), 1U) << text;
  const Cell& with = row.at(int(number_in(ahead[0])));
  const Cell& without = row.at(0);
  const double gone = 1 - with.wait_s / with.steps / (without.wait_s / without.steps);
  const auto told = parts_of(text, "removed #% of the waiting");
  if (told.empty()) {
    EXPECT_LT(gone, 0) << text;
  } else {
    EXPECT_TRUE(is_percent(told[0], gone)) << text;
  }
  EXPECT_EQ(text.find("client_bound") != std::string::npos, with.client_bound || without.client_bound)
      << text;
}

void check_tail(const std::string& text, const Grid& grid) {
  const Cell& cell = cell_of(text, grid);
  const double share = cell.dropped / (cell.dropped + cell.samples_per_s * cell.wall_s);
  EXPECT_GE(share, 0.1) << text;
  EXPECT_TRUE(is_percent(parts_of(text, "#% of the samples").at(0), share)) << text;
}

void check_grid(const std::string& text, const Grid& grid) {
  const bool is_utilization = text.find("AU ") != std::string::npos;
  double best = 0;
  std::map<std::pair<int, int>, double> values;
  for (const auto& [threads, row] : grid)
    for (const auto& [prefetch, cell] : row) {
      if (is_utilization && cell.utilization < 0) continue;
      const double value = is_utilization ? cell.utilization : cell.samples_per_s;
      values[{threads, prefetch}] = value;
      best = std::max(best, value);
    }
  const auto first = parts_of(text, "^# threads? with prefetch # (?:reach|deliver)(?:es|s)? (?:AU )?#");
  ASSERT_EQ(first.size(), 3U) << text;
  EXPECT_DOUBLE_EQ(values.at({int(number_in(first[0])), int(number_in(first[1]))}), best) << text;
  const auto enough = parts_of(text, "; # threads? with prefetch # comes? within");
  const auto fewest =
      std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.second >= 0.95 * best; });
  const auto& named = enough.empty() ? first : enough;
  EXPECT_EQ(fewest->first, std::pair(int(number_in(named[0])), int(number_in(named[1])))) << text;
}

TEST(TrainClaims, EverySentenceAgreesWithTheFigures) {
  const std::map<std::string, void (*)(const std::string&, const Grid&)> checks{
      {"utilization", check_utilization},
      {"lost", check_lost},
      {"bottleneck", check_bottleneck},
      {"prefetch", check_prefetch},
      {"tail", check_tail},
      {"grid", check_grid},
      {"validation",
       [](const std::string& text, const Grid& grid) {
         const Cell& cell = cell_of(text, grid);
         EXPECT_TRUE(
             is_percent(parts_of(text, "\\(#% of the wall\\)").at(0), cell.validation_s / cell.wall_s))
             << text;
       }},
      {"checkpoints",
       [](const std::string& text, const Grid& grid) {
         const Cell& cell = cell_of(text, grid);
         double all_s = 0;
         for (const double save_s : cell.saves_s) all_s += save_s;
         EXPECT_EQ(number_in(parts_of(text, "for # checkpoint").at(0)), double(cell.saves_s.size())) << text;
         EXPECT_TRUE(is_percent(parts_of(text, "\\(#% of the wall\\)").at(0), all_s / cell.wall_s)) << text;
       }},
      {"verdict.client_bound", [](const std::string&, const Grid&) {}},
  };
  std::map<std::string, int> checked;
  for (uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws(seed);
    Grid grid;
    for (const int threads : {1, 2, 8})
      if (draws.chance(0.6))
        for (const int prefetch : {0, 1, 4})
          if (draws.chance(0.8)) grid[threads][prefetch] = random_cell(draws);
    std::vector<Record> records;
    for (const auto& [threads, row] : grid)
      for (const auto& [prefetch, cell] : row) records.push_back(record_of(threads, prefetch, cell));
    for (const Sentence& sentence : sentences(records, {})) {
      const auto check = checks.find(sentence.kind);
      ASSERT_NE(check, checks.end()) << "no check of: " << sentence.text;
      check->second(sentence.text, grid);
      ++checked[sentence.kind];
    }
  }
  for (const auto& [kind, check] : checks) EXPECT_GT(checked[kind], 10) << kind;
}

void set(Record& record, const std::string& name, double value) {
  record.metrics[name] = {"1", Better::neither, "run", {value}};
}

// A figure near `middle`. Half of them are so near that both round to the same percent.
double near(Draws& draws, double middle, double low, double high) {
  return std::clamp(middle + draws.between(low, high) / (draws.chance(0.5) ? 200 : 4), 0.0, 1.0);
}

TEST(TrainClaims, RoundedFiguresDoNotContradictTheirSentence) {
  std::map<std::string, int> checked;
  for (uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws(seed);
    const Cell cell = random_cell(draws);
    const double au = draws.chance(0.5) ? 0.9 : draws.between(0.5, 0.99);
    const double au_dlio = near(draws, au, -1, 1);
    const double with_one_more = std::min(near(draws, au, -1, 0), std::nextafter(au, 0));
    const double fed = double(draws.below(3));
    const double utilization = fed > 0 ? near(draws, 1, au - 1, 0) : with_one_more;
    Record record = record_of(4, 4, cell);
    record.parameters["app"] = "dlio";
    record.parameters["au"] = au;
    record.parameters["step_s"] = 0.05;
    record.parameters["one_more_missed_by"] = "input";
    set(record, "au_dlio", au_dlio);
    set(record, "accelerator_utilization", utilization);
    set(record, "accelerators_fed", fed);
    set(record, "utilization_with_one_more", with_one_more);
    std::map<std::string, std::string> texts;
    for (const Sentence& sentence : sentences(std::vector{record}, {})) {
      EXPECT_TRUE(texts.emplace(sentence.kind, sentence.text).second) << sentence.text;
      ++checked[sentence.kind];
    }
    const auto dlio = parts_of(texts.at("dlio"), "AU #% of these steps, (less|no less) than the #% that");
    ASSERT_EQ(dlio.size(), 3U) << texts.at("dlio");
    EXPECT_TRUE(is_percent(dlio[0], au_dlio) && is_percent(dlio[2], au)) << texts.at("dlio");
    EXPECT_EQ(dlio[1] == "less", au_dlio < au) << texts.at("dlio");
    EXPECT_EQ(dlio[1] == "less", number_in(dlio[0]) < number_in(dlio[2])) << texts.at("dlio");

    const auto missed = parts_of(texts.at("fed"), fed > 0 ? "with one more it was #%" : "AU was #% where");
    const auto asked = parts_of(texts.at("fed"), fed > 0 ? "at least #% in" : "where #% was asked");
    ASSERT_TRUE(missed.size() == 1 && asked.size() == 1) << texts.at("fed");
    EXPECT_TRUE(is_percent(missed[0], with_one_more) && is_percent(asked[0], au)) << texts.at("fed");
    EXPECT_LT(number_in(missed[0]), number_in(asked[0])) << texts.at("fed");

    const auto busy = parts_of(texts.at("utilization"), "was #% with prefetch");
    ASSERT_EQ(busy.size(), 1U) << texts.at("utilization");
    EXPECT_EQ(number_in(busy[0]) >= 100, utilization >= 0.99995) << texts.at("utilization");
    if (number_in(busy[0]) >= 98 && texts.contains("bottleneck")) {
      EXPECT_TRUE(texts.at("bottleneck").find("the accelerator is") != std::string::npos)
          << texts.at("utilization") << texts.at("bottleneck");
    }
  }
  for (const char* const kind : {"dlio", "fed", "utilization", "bottleneck"})
    EXPECT_GT(checked[kind], 10) << kind;
}

}  // namespace
}  // namespace penstock
