#include "results/sweep/spec.hpp"

#include <gtest/gtest.h>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using std::chrono::hours;

constexpr const char* kWhole = R"(
name: threads-by-tier
command: read
nouns: [data]
fixed: {cache: cold, min_time: 2s, label: [a=b, c=d], only-tiers: true}
grid:
  threads: 1..8*2
  tier: [fast=posix:/dev/shm/p, [disk=posix:/data/p, nvme=posix:/nvme/p]]
  nouns: [[one], [../two]]
arms:
  base: {program: build/base/penstock}
  candidate: {fixed: {depth: 4}}
ranks: [1, 2]
nodes: 1..2
tasks-per-node: 2
launcher: "mpirun -np {ranks}"
repeats: 5
seed: 7
budget: 2h
until: {metric: samples_per_s, interval: 5%}
results: out
slurm: {partition: p, account: a, time: 90s, mpi: pmi2, options: ["--constraint=x"], srun: [--exact]}
)";

TEST(SweepFile, AcceptsEveryKey) {
  const auto spec = parse_sweep(kWhole, "x.yaml");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->name, "threads-by-tier");
  EXPECT_EQ(spec->command, "read");
  EXPECT_EQ(spec->arguments, std::vector<std::string>{"data"});
  ASSERT_EQ(spec->fixed_settings.size(), 4U);
  EXPECT_EQ(spec->fixed_settings[1].key, "min-time");
  EXPECT_EQ(spec->fixed_settings[2].values, (std::vector<std::string>{"a=b", "c=d"}));
  ASSERT_EQ(spec->grid.size(), 3U);
  EXPECT_EQ(spec->grid[0].values, (std::vector<std::vector<std::string>>{{"1"}, {"2"}, {"4"}, {"8"}}));
  EXPECT_EQ(spec->grid[1].values[1].size(), 2U);
  EXPECT_EQ(spec->grid[2].values[1], std::vector<std::string>{"../two"});
  ASSERT_EQ(spec->arms.size(), 2U);
  EXPECT_EQ(spec->arms[0].program, "build/base/penstock");
  EXPECT_EQ(spec->arms[1].fixed_settings[0].key, "depth");
  EXPECT_EQ(spec->ranks, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(spec->nodes, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(spec->tasks_per_node, 2U);
  EXPECT_EQ(spec->repeats, 5U);
  EXPECT_EQ(spec->seed, 7U);
  EXPECT_EQ(*spec->budget, hours(2));
  EXPECT_DOUBLE_EQ(spec->until_interval, 0.05);
  EXPECT_EQ(spec->results, "out");
  EXPECT_EQ(spec->slurm.time, "2") << "minutes, and never less than was said";
  EXPECT_EQ(spec->slurm.mpi, "pmi2");
  EXPECT_EQ(spec->slurm.srun, std::vector<std::string>{"--exact"});
}

TEST(SweepFile, HasDefaults) {
  const auto spec = parse_sweep("name: a\ncommand: read\n", "x.yaml");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->repeats, 1U);
  EXPECT_EQ(spec->results, "penstock-results");
  EXPECT_EQ(spec->slurm.mpi, "pmix");
  const auto until = parse_sweep("name: a\ncommand: read\nuntil: {metric: m, interval: 0.1}\n", "x.yaml");
  ASSERT_OK(until);
  EXPECT_GT(until->repeats, 6U) << "or it could never stop";
}

struct Wrong {
  const char* text;
  const char* says;
};

TEST(SweepFile, ErrorsNameTheWrongKey) {
  const Wrong all[] = {
      {"name: a\ncommand: read\nrepets: 3\n", "repeats"},
      {"name: a\ncommand: read\nrepets: 3\n", "tasks-per-node"},  // the error lists all keys
      {"name: a\ncommand: read\nslurm: {tim: 3m}\n", "did you mean 'time'"},
      {"name: a\ncommand: read\nuntil: {metric: x}\n", "needs a metric and an interval"},
      {"name: a\ncommand: read\nuntil: {metric: x, interval: wide}\n", "share of the median"},
      {"name: a\ncommand: read\narms: {one: {}}\n", "two arms"},
      {"name: a\ncommand: read\narms: {one: {}, two: {programs: x}}\n", "did you mean 'program'"},
      {"name: a b\ncommand: read\n", "'name' takes letters"},
      {"name: ../a\ncommand: read\n", "'name' takes letters"},
      {"command: read\n", "'name' is missing"},
      {"name: a\n", "'command' is missing"},
      {"name: a\ncommand: read\nrepeats: 0\n", "whole number from 1"},
      {"name: a\ncommand: read\nranks: [0]\n", "from 1 on"},
      {"name: a\ncommand: read\ngrid: {threads: []}\n", "needs a list of values"},
      {"name: a\ncommand: read\ngrid: {threads: [1, 2, 1]}\n", "the value '1' twice"},
      {"name: a\ncommand: read\ngrid: {threads: 1, threads: 2}\n", "has 'threads' twice"},
      {"name: a\ncommand: read\ngrid: {threads: 1}\n---\ngrid: {threads: 2}\n", "second document"},
      {"name: a\ncommand: read\nfixed: {results: x}\n", "the sweep gives that to each run"},
      {"name: a\ncommand: read\nbudget: 5\n", "a time like 2h"},
      {"name: a\ncommand: read\nslurm: {time: soon}\n", "a time like 30m"},
      {"- a\n- b\n", "expected a mapping"},
      {"name: [a\n", "x.yaml"},
      {"", "expected a mapping"},
  };
  for (const Wrong& wrong : all) {
    const auto spec = parse_sweep(wrong.text, "x.yaml");
    EXPECT_TRUE(fails_with(Errc::invalid_argument, spec, wrong.says)) << wrong.text;
  }
  EXPECT_ERRC(Errc::invalid_argument, read_sweep_file("/nowhere.yaml"));
  EXPECT_ERRC(Errc::invalid_argument, read_sweep_file("/"));
}

}  // namespace
}  // namespace penstock
