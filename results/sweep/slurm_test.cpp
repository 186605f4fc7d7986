#include "results/sweep/slurm.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"
#include "results/sweep/child.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

TEST(Slurm, TimesAreParsed) {
  EXPECT_EQ(parse_slurm_time("29:59"), 29 * 60 + 59);
  EXPECT_EQ(parse_slurm_time("1:00:05"), 3605);
  EXPECT_EQ(parse_slurm_time("1-02:03:04"), 26 * 3600 + 3 * 60 + 4);
  for (const char* none : {"UNLIMITED", "NOT_SET", "", "INVALID", "a:b", "1-2"})
    EXPECT_FALSE(parse_slurm_time(none)) << none;
}

TEST(Slurm, TheScriptRequestsNodesForTheLargestCell) {
  const auto spec = parse_sweep(
      "name: s\ncommand: read\nresults: out dir\nnodes: [1, 4]\nranks: [1, 8]\n"
      "slurm: {partition: p, account: a, time: 30m, options: ['--constraint=x']}\n",
      "x.yaml");
  ASSERT_OK(spec);
  const auto cells = sweep_cells(*spec);
  ASSERT_OK(cells);
  const std::string script = batch_script(*spec, *cells, {"/bin/p", "sweep", "a b.yaml"});
  EXPECT_TRUE(script.starts_with("#!/bin/sh\n"));
  for (const char* line :
       {"#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=8\n", "#SBATCH --exclusive\n",
        "#SBATCH --time=30\n", "#SBATCH --partition=p\n", "#SBATCH --account=a\n", "#SBATCH --constraint=x\n",
        "/out dir/sweep-s.log\"\n", "#SBATCH --output=\"/", "exec /bin/p sweep 'a b.yaml'\n"})
    EXPECT_NE(script.find(line), std::string::npos) << line << script;
}

// Replaces the programs of Slurm by scripts that give fixed answers.
class SlurmTools : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    ::setenv("PATH", (scratch_.path().string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    simulate_interrupt(0);
  }
  void tool(const std::string& name, const std::string& body) const {
    const fs::path file = scratch_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << body;
    fs::permissions(file, fs::perms(0755));
  }

  ScratchFolder scratch_;
  std::string path_;
};

TEST_F(SlurmTools, TheStateOfAJobComesFromAnyToolThatKnowsIt) {
  tool("squeue", "echo 'PENDING (Resources)'\n");
  EXPECT_EQ(job_phase(inspect_job("12")), JobPhase::waiting);
  tool("squeue", "echo 'RUNNING (None)'\n");
  EXPECT_EQ(inspect_job("12"), "RUNNING");
  EXPECT_TRUE(is_running("12"));
  tool("squeue", "echo 'COMPLETING (None)'\n");
  EXPECT_EQ(job_phase(inspect_job("12")), JobPhase::running);
  EXPECT_FALSE(is_running("12"));
  tool("squeue", "echo 'Invalid job id specified' >&2; exit 1\n");
  tool("scontrol", "echo \"JobId=$4 JobName=x JobState=TIMEOUT Reason=TimeLimit\"\n");
  EXPECT_EQ(inspect_job("12"), "TIMEOUT");
  EXPECT_EQ(job_phase(inspect_job("12")), JobPhase::ended);
  tool("scontrol", "exit 1\n");
  tool("sacct", "echo 'CANCELLED by 0'\n");
  EXPECT_EQ(job_phase(inspect_job("12")), JobPhase::ended);
  tool("sacct", "exit 1\n");
  EXPECT_EQ(job_phase(inspect_job("12")), JobPhase::unknown);
}

TEST_F(SlurmTools, SbatchReturnsTheJobOrAnError) {
  tool("sbatch", "echo 'a word of the site'; echo '12;cluster'\n");
  EXPECT_EQ(submit_batch("x.sh").value_or(""), "12");
  tool("sbatch", "echo 'invalid partition' >&2; exit 1\n");
  EXPECT_TRUE(fails_with(Errc::io, submit_batch("x.sh"), "invalid partition"));
  tool("sbatch", "echo nothing\n");
  EXPECT_ERRC(Errc::io, submit_batch("x.sh"));
}

TEST_F(SlurmTools, ChildrenAreWaitedForAndGetTheStopSignal) {
  const fs::path log = scratch_.path() / "log";
  EXPECT_EQ(
      run_child(std::vector<std::string>{"sh", "-c", "echo said; echo so >&2; exit 3"}, log, 0).value_or(-1),
      3);
  EXPECT_EQ(run_child(std::vector<std::string>{"sh", "-c", "kill -9 $$"}, log, 0).value_or(-1), 137);
  EXPECT_EQ(run_child(std::vector<std::string>{"no-such-program"}, log, 0).value_or(-1), 127);
  std::ifstream in(log);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_NE(text.find("said\nso\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot run this program"), std::string::npos) << text;
  simulate_interrupt(SIGINT);
  EXPECT_EQ(run_child(std::vector<std::string>{"sleep", "600"}, log, SIGTERM).value_or(-1), 128 + SIGTERM);
}

TEST_F(SlurmTools, AMissingProgramIsNamed) {
  ::setenv("PATH", scratch_.path().c_str(), 1);
  EXPECT_TRUE(fails_with(Errc::unsupported, check_slurm(), "sbatch"));
  for (const char* name : {"sbatch", "squeue", "srun"}) tool(name, "exit 0\n");
  EXPECT_OK(check_slurm());
}

}  // namespace
}  // namespace penstock
