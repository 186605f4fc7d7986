#include "results/sweep/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "io_backends/testing/testing.hpp"
#include "results/sweep/outcome.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "threads", .type = OptionType::list, .fallback = "1", .alias = "numjobs"},
    {.name = "duration", .type = OptionType::duration, .alias = "runtime", .alias_unit = "s"},
    {.name = "tier", .repeated = true},
    {.name = "only-tiers", .type = OptionType::flag},
    {.name = "cache"},
    {.name = "min-time", .type = OptionType::duration, .fallback = "2s"},
    {.name = "repeat", .type = OptionType::integer, .fallback = "3"},
};
const CommandInfo kCommand{.name = "read",
                           .summary = "",
                           .options = kOptions,
                           .run = nullptr,
                           .synopsis = "penstock read",
                           .examples = {},
                           .arguments = "CORPUS",
                           .measures = true};

SweepSpec spec_of(const std::string& more) {
  auto spec = parse_sweep("name: s\ncommand: read\nnouns: [data]\n" + more, "x.yaml");
  EXPECT_OK(spec);
  return *std::move(spec);
}

std::vector<SweepCell> cells_of(const SweepSpec& spec) {
  auto cells = sweep_cells(spec);
  EXPECT_OK(cells);
  return cells.ok() ? *std::move(cells) : std::vector<SweepCell>{};
}

TEST(SweepPlan, IsTheProductOfItsAxes) {
  const SweepSpec spec =
      spec_of("grid: {threads: [1, 2, 4], tier: [fast=posix:/p, disk=posix:/d]}\nranks: [1, 2]\n");
  const auto cells = cells_of(spec);
  ASSERT_EQ(cells.size(), 12U);
  EXPECT_EQ(cells[0].key, "threads=1 tier=fast=posix:/p ranks=1");
  EXPECT_EQ(cells[0].title, "threads 1, fast, ranks 1");
  EXPECT_EQ(cells[11].ranks, 2U);
  std::set<std::string> keys;
  for (const SweepCell& cell : cells) keys.insert(cell.key);
  EXPECT_EQ(keys.size(), 12U);
  EXPECT_EQ(cells_of(spec_of("")).size(), 1U) << "no grid is one cell";
}

// A sweep that is spelled as fio's users type it has the same cells and records as one with the options' own
// names.
TEST(SweepPlan, AliasesBecomeTheOptionsOwnNames) {
  SweepSpec spec = spec_of(
      "fixed: {runtime: 30}\ngrid: {numjobs: [1, 2]}\n"
      "arms: {a: {fixed: {runtime: 1m}}, b: {nouns: [more]}}\n");
  ASSERT_OK(use_own_names(spec, kCommand));
  const auto cells = cells_of(spec);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[1].key, "threads=2");
  EXPECT_EQ(run_arguments(spec, cells[1], 0, kCommand),
            (std::vector<std::string>{"read", "data", "--duration", "1m", "--threads", "2"}));
  EXPECT_EQ(run_arguments(spec, cells[1], 1, kCommand),
            (std::vector<std::string>{"read", "data", "more", "--duration", "30s", "--threads", "2"}));
  EXPECT_EQ(sweep_identity(spec)["arms"]["b"]["nouns"][0], "more");
  EXPECT_FALSE(sweep_identity(spec)["arms"]["a"].contains("nouns"))
      << "journals of earlier versions have none, and stay valid";
  SweepSpec twice = spec_of("fixed: {runtime: 30, duration: 30s}\n");
  EXPECT_ERRC(Errc::invalid_argument, use_own_names(twice, kCommand), "--runtime and --duration");
  SweepSpec axes = spec_of("grid: {threads: [1], numjobs: [2]}\n");
  EXPECT_ERRC(Errc::invalid_argument, use_own_names(axes, kCommand), "threads");
}

TEST(SweepPlan, LeavesOutInvalidJobs) {
  std::set<std::pair<uint64_t, uint64_t>> jobs;
  for (const SweepCell& cell : cells_of(spec_of("ranks: [1, 2, 8]\nnodes: [1, 2]\ntasks-per-node: 2\n")))
    jobs.insert({cell.ranks, cell.nodes});
  EXPECT_EQ(jobs, (std::set<std::pair<uint64_t, uint64_t>>{{1, 1}, {2, 1}, {2, 2}}));
  EXPECT_ERRC(Errc::invalid_argument, sweep_cells(spec_of("ranks: 1\nnodes: 2\n")));
  EXPECT_EQ(cells_of(spec_of("nodes: [1, 4]\ntasks-per-node: 8\n"))[1].ranks, 32U);
}

TEST(SweepPlan, ArgumentsMayVaryAndAKeyCannotBeInFixedAndGrid) {
  const auto cells = cells_of(spec_of("grid: {nouns: [[a], [b]]}\n"));
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[1].arguments, std::vector<std::string>{"b"});
  EXPECT_ERRC(Errc::invalid_argument, sweep_cells(spec_of("fixed: {threads: 1}\ngrid: {threads: [1, 2]}\n")));
}

TEST(SweepPlan, EveryRoundIsAPermutationOfItsOwn) {
  const auto cells = cells_of(spec_of("grid: {threads: 1..40}\n"));
  std::set<std::vector<size_t>> orders;
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<size_t> order = round_order(cells, 7, round);
    EXPECT_EQ(order, round_order(cells, 7, round));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
  }
  EXPECT_EQ(orders.size(), 20U);
  EXPECT_NE(round_order(cells, 7, 0), round_order(cells, 8, 0));
}

TEST(SweepPlan, EachCellIsAtEachPositionAboutEquallyOften) {
  const auto cells = cells_of(spec_of("grid: {threads: 1..4}\n"));
  std::map<size_t, int> first;
  for (uint64_t round = 0; round < 4000; ++round) ++first[round_order(cells, 7, round)[0]];
  for (const auto& [cell, times] : first) EXPECT_NEAR(times, 1000, 150) << cell;
}

TEST(SweepPlan, AddedCellsLeaveTheOrderOfTheOthers) {
  const auto few = cells_of(spec_of("grid: {threads: [1, 2, 4]}\n"));
  const auto many = cells_of(spec_of("grid: {threads: [8, 4, 16, 2, 1]}\n"));
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<std::string> before;
    std::vector<std::string> now;
    for (const size_t cell : round_order(few, 7, round)) before.push_back(few[cell].key);
    for (const size_t cell : round_order(many, 7, round))
      if (std::find(before.begin(), before.end(), many[cell].key) != before.end())
        now.push_back(many[cell].key);
    EXPECT_EQ(before, now);
  }
}

TEST(SweepPlan, ArmsAreBalancedInEveryTwoRounds) {
  const SweepSpec spec = spec_of("grid: {threads: 1..8}\narms: {a: {}, b: {}}\n");
  int first = 0;
  const auto cells = cells_of(spec);
  for (const SweepCell& cell : cells)
    for (uint64_t round = 0; round < 200; round += 2) {
      const auto one = arm_order(spec, cell, 7, round);
      auto other = arm_order(spec, cell, 7, round + 1);
      std::reverse(other.begin(), other.end());
      ASSERT_EQ(one, other) << "ABBA or BAAB";
      first += one[0] == 0 ? 1 : 0;
    }
  EXPECT_NEAR(first, 400, 80) << "a coin decides which of the two";
  EXPECT_EQ(arm_order(spec_of(""), cells[0], 7, 3), std::vector<size_t>{0});
}

TEST(SweepPlan, OptionsAreWrittenByTheCommandsTable) {
  const SweepSpec spec = spec_of(
      "fixed: {cache: cold, only-tiers: true}\n"
      "grid: {threads: [[1, 2]], tier: [[a, b]]}\n"
      "arms: {base: {}, new: {fixed: {cache: warm, only-tiers: false, other: [x, y]}}}\n");
  const auto cells = cells_of(spec);
  using Words = std::vector<std::string>;
  EXPECT_EQ(run_arguments(spec, cells[0], 0, kCommand),
            (Words{"read", "data", "--cache", "cold", "--only-tiers", "--threads", "1,2", "--tier", "a",
                   "--tier", "b"}));
  EXPECT_EQ(run_arguments(spec, cells[0], 1, kCommand),
            (Words{"read", "data", "--cache", "warm", "--other", "x", "--other", "y", "--threads", "1,2",
                   "--tier", "a", "--tier", "b"}));
  EXPECT_TRUE(sets_option(spec, 1, "other"));
  EXPECT_FALSE(sets_option(spec, 0, "other"));
}

TEST(SweepPlan, EachRunHasAWordOfItsOwn) {
  EXPECT_EQ(replace_run("/a-{run}/{run}", "x{run}"), "/a-x{run}/x{run}");
  EXPECT_EQ(replace_run("/a-{ru}", "x"), "/a-{ru}");
}

TEST(SweepPlan, TheTimeOfARunIsTheCommandsOwnOrFollowsFromTheOptions) {
  const std::vector<std::string> words{"read", "data", "--threads", "1,2", "--min-time", "500ms"};
  const Options none = Options::parse(OptionTable(), {}, Options::kOnCommandLine).value();
  const std::unique_ptr<Communicator> single = single_process();
  const CommandContext context{.options = none,
                               .positionals = {},
                               .argv = {},
                               .command = "sweep",
                               .output = {},
                               .communicator = *single};
  const double asked_s = 0.5 * 3 * 2;
  const TimeRange guessed = run_time(kCommand, std::span(words).subspan(1), context);
  EXPECT_GE(guessed.low_s, asked_s);
  EXPECT_LT(guessed.low_s, asked_s + 1);
  EXPECT_GT(guessed.high_s, 2 * asked_s) << "with warm-up, baseline and ceiling";

  CommandInfo knows = kCommand;
  knows.expected_time = [](const CommandContext& run) -> Result<TimeRange> {
    EXPECT_EQ(run.options.list("threads"), (std::vector<uint64_t>{1, 2}));
    EXPECT_EQ(run.positionals.size(), 1U);
    return TimeRange{100, 200};
  };
  const TimeRange known = run_time(knows, std::span(words).subspan(1), context);
  EXPECT_GE(known.low_s, 100);
  EXPECT_LT(known.high_s, 201);
}

TEST(SweepPlan, LaunchersHavePlaceholders) {
  const SweepSpec mpirun =
      spec_of("ranks: [3]\nlauncher: 'mpirun -np {ranks} --map-by ppr:{tasks-per-node}:node'\n");
  EXPECT_EQ(launcher_arguments(mpirun, cells_of(mpirun)[0], true),
            (std::vector<std::string>{"mpirun", "-np", "3", "--map-by", "ppr:3:node"}));
  const SweepSpec plain = spec_of("ranks: [3]\n");
  EXPECT_EQ(launcher_arguments(plain, cells_of(plain)[0], false),
            (std::vector<std::string>{"mpirun", "-n", "3"}));
  const SweepSpec srun = spec_of("nodes: [2]\ntasks-per-node: 4\nslurm: {srun: [--exact]}\n");
  const auto words = launcher_arguments(srun, cells_of(srun)[0], true);
  EXPECT_EQ(words[0], "srun");
  for (const char* word : {"--ntasks=8", "--nodes=2", "--ntasks-per-node=4", "--mpi=pmix", "--exact"})
    EXPECT_NE(std::find(words.begin(), words.end(), word), words.end()) << word;
  EXPECT_TRUE(launcher_arguments(spec_of(""), cells_of(spec_of(""))[0], true).empty());
  EXPECT_ERRC(Errc::invalid_argument, check_launcher(spec_of("ranks: 2\nlauncher: 'mpirun -np {rank}'\n")));
  EXPECT_ERRC(Errc::invalid_argument, check_launcher(spec_of("launcher: mpirun\n")));
  EXPECT_OK(check_launcher(mpirun));
}

TEST(SweepPlan, OnlyAdditionsAreAllowedAndErrorsNameTheKey) {
  const std::string base = "fixed: {cache: cold}\ngrid: {threads: [1, 2]}\nrepeats: 3\n";
  const Json before = sweep_identity(spec_of(base));
  const auto check = [&](const std::string& now) {
    return check_only_added(before, sweep_identity(spec_of(now)));
  };
  EXPECT_OK(check(base));
  EXPECT_OK(
      check("fixed: {cache: cold}\ngrid: {threads: [4, 2, 1]}\nrepeats: 5\nbudget: 2h\nslurm: {time: 1h}\n"));
  const std::pair<const char*, const char*> refused[] = {
      {"fixed: {cache: warm}\ngrid: {threads: [1, 2]}\nrepeats: 3\n", "fixed.cache"},
      {"fixed: {cache: cold, depth: 2}\ngrid: {threads: [1, 2]}\nrepeats: 3\n", "fixed.depth"},
      {"grid: {threads: [1, 2]}\nrepeats: 3\n", "fixed.cache"},
      {"fixed: {cache: cold}\ngrid: {threads: [1, 4]}\nrepeats: 3\n", "grid.threads"},
      {"fixed: {cache: cold}\ngrid: {threads: [1, 2], depth: [1, 2]}\nrepeats: 3\n", "grid.depth"},
      {"fixed: {cache: cold}\nrepeats: 3\n", "grid.threads"},
      {"fixed: {cache: cold}\ngrid: {threads: [1, 2]}\nrepeats: 2\n", "repeats"},
      {"fixed: {cache: cold}\ngrid: {threads: [1, 2]}\nrepeats: 3\nranks: [1]\n", "ranks"},
      {"fixed: {cache: cold}\ngrid: {threads: [1, 2]}\nrepeats: 3\narms: {a: {}, b: {}}\n", "arms.a"},
  };
  for (const auto& [now, name] : refused)
    EXPECT_TRUE(fails_with(Errc::invalid_argument, check(now), name)) << now;
}

}  // namespace
}  // namespace penstock
