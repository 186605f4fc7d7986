#include "results/record/trial.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kOptions[] = {
    {.name = "threads", .role = OptionRole::work, .type = OptionType::list, .fallback = "1,2"},
    {.name = "min-time", .role = OptionRole::repeat, .type = OptionType::duration, .fallback = "1500ms"},
    {.name = "block", .role = OptionRole::work, .type = OptionType::size, .fallback = "4KiB"},
    {.name = "jitter", .role = OptionRole::work, .type = OptionType::real, .fallback = "0.25"},
    {.name = "direct", .role = OptionRole::work, .type = OptionType::boolean, .fallback = "0"},
    {.name = "order",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "sequential|shuffled",
     .fallback = "shuffled"},
    {.name = "tier", .role = OptionRole::target, .repeated = true},
};

constexpr MetricInfo kWall{"wall_s", "s", Better::lower, "repeat", kHeadline};
constexpr MetricInfo kCalls{"calls.*", "1"};
constexpr MetricInfo kMetrics[] = {kWall, kCalls};

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-trial-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override {
    simulate_interrupt(0);
    fs::remove_all(dir_);
  }

  Result<penstock::Run> begin(std::vector<OptionWord> words = {}, bool json = false) {
    words.push_back({"results", (dir_ / "runs").string()});
    const OptionTable tables[] = {kOptions, measuring_options(), common_options()};
    auto parsed = Options::parse(tables, words, "option");
    EXPECT_TRUE(parsed.ok()) << parsed.error().message();
    options_ = *std::move(parsed);
    Output output;
    output.json = json;
    CommandContext context{options_, {}, argv_, "read", output, 7, *communicator_, kMetrics};
    context.warn = [this](std::string_view text) { warnings_.emplace_back(text); };
    return penstock::Run::begin(context);
  }
  RecordSet stored() const {
    const fs::path folder = dir_ / "runs";
    auto set = read_records(std::span(&folder, 1));
    return set.ok() ? *std::move(set) : RecordSet{};
  }

  fs::path dir_;
  Options options_;
  std::vector<std::string> argv_{"penstock", "read", "c"};
  std::vector<std::string> warnings_;  // the texts that a run passed to `warn` of its context
  std::unique_ptr<Communicator> communicator_ = single_process();
};

TEST_F(RunTest, RecordsHaveTheRunsFieldsAndTypedParameters) {
  auto run = begin({{"label", "a=b=c"}, {"tier", "x"}, {"tier", "y"}});
  ASSERT_TRUE(run.ok()) << run.error().message();
  Trial trial = run->trial();
  trial.parameter("threads", 4);
  trial.sample(kWall, 2);
  trial.sample(kWall, 4);
  trial.sample(kCalls, "pread", 9);
  run->add(std::move(trial));
  run->add(run->trial());
  const auto path = run->finish();
  ASSERT_TRUE(path.ok()) << path.error().message();
  const RecordSet set = stored();
  ASSERT_EQ(set.records.size(), 2U);
  const Record& record = set.records[0].record;
  EXPECT_EQ(record.command, "read");
  EXPECT_EQ(record.argv, argv_);
  EXPECT_EQ(record.seed, 7U);
  EXPECT_EQ(record.label.at("a"), "b=c");
  EXPECT_EQ(record.started.size(), std::string_view("2026-11-20T09:30:00Z").size());
  EXPECT_EQ(record.metrics.at("wall_s").value(), 3);
  EXPECT_TRUE(record.metrics.at("wall_s").headline);
  EXPECT_EQ(record.metrics.at("calls.pread").value(), 9);
  EXPECT_FALSE(record.metrics.at("calls.pread").headline);
  EXPECT_EQ(record.parameters.dump(),
            R"({"threads":4,"min_time_s":1.5,"block":4096,"jitter":0.25,"direct":false,"order":"shuffled",)"
            R"("tier":["x","y"],"cpus":null,"numa":null,"ranks":1})");
  EXPECT_EQ(record.work, (std::vector<std::string>{"threads", "block", "jitter", "direct", "order", "cpus",
                                                   "numa", "ranks"}));
  EXPECT_NE(record.id, set.records[1].record.id);
  EXPECT_EQ(record.environment["memory_bytes"].is_number(), true);
  EXPECT_EQ(set.records[1].record.parameters["threads"].dump(), "[1,2]");
}

TEST_F(RunTest, ThePairIsInEveryRecordAndIsNoParameter) {
  auto run = begin({{"pair", "a,b,12,base"}});
  ASSERT_TRUE(run.ok()) << run.error().message();
  const Record record = run->trial().record();
  EXPECT_EQ(record.pair.dump(), R"({"suite":"a,b","index":12,"arm":"base"})");
  EXPECT_FALSE(record.parameters.contains("pair"));
  EXPECT_TRUE(begin()->trial().record().pair.empty());
  for (const char* wrong : {"base", "12,base", "a,x,base", "a,-1,base", "a,1,", ",1,base", "a,,base"}) {
    const auto refused = begin({{"pair", wrong}});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  }
}

TEST_F(RunTest, WithoutMeasurementsNoFileIsWritten) {
  auto run = begin();
  ASSERT_TRUE(run.ok());
  const auto path = run->finish();
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(*path, "");
  EXPECT_FALSE(fs::exists(dir_ / "runs"));
}

TEST_F(RunTest, ALabelWithoutAValueIsAUsageError) {
  const auto run = begin({{"label", "lonely"}});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, Errc::invalid_argument);
  EXPECT_NE(run.error().message().find("lonely"), std::string::npos);
}

TEST_F(RunTest, TheWorstVerdictWinsWithItsReason) {
  auto run = begin();
  ASSERT_TRUE(run.ok());
  Trial trial = run->trial();
  trial.verdict(Verdict::degraded, "3 samples skipped");
  trial.verdict(Verdict::short_time, "0.5 s of 2 s");
  trial.verdict(Verdict::client_bound, "steps end late");
  trial.verdict(Verdict::client_bound, "steps end late");
  EXPECT_EQ(trial.record().verdict, Verdict::degraded) << "what was skipped is said first";
  EXPECT_EQ(trial.record().reason,
            "3 samples skipped; also short: 0.5 s of 2 s; also client_bound: steps end late");
  trial.fail(make_error(Errc::io, "cannot read 'x'"));
  trial.verdict(Verdict::degraded, "later");
  EXPECT_EQ(trial.record().verdict, Verdict::failed);
  EXPECT_EQ(trial.record().reason, "cannot read 'x'");
  run->add(std::move(trial));
  Trial lacking = run->trial();
  lacking.fail(make_error(Errc::unsupported, "no direct I/O here"));
  EXPECT_EQ(lacking.record().verdict, Verdict::skipped);
  run->add(std::move(lacking));
  EXPECT_EQ(run->exit_code(), 1);
}

TEST_F(RunTest, ExitCodesAreZeroOr77IfNothingFailed) {
  auto run = begin();
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->exit_code(), 0);
  run->add(run->trial());
  EXPECT_EQ(run->exit_code(), 0);
  Trial lacking = run->trial();
  lacking.verdict(Verdict::skipped, "no MPI");
  run->add(std::move(lacking));
  EXPECT_EQ(run->exit_code(), 77);
}

TEST_F(RunTest, AnInterruptMarksTheUnfinishedCell) {
  auto run = begin();
  ASSERT_TRUE(run.ok());
  run->add(run->trial());
  Trial cut = run->trial();
  simulate_interrupt(SIGINT);
  run->add(std::move(cut));
  ASSERT_TRUE(run->finish().ok());
  const RecordSet set = stored();
  ASSERT_EQ(set.records.size(), 2U);
  EXPECT_EQ(set.records[0].record.verdict, Verdict::ok);
  EXPECT_EQ(set.records[1].record.verdict, Verdict::interrupted);
}

TEST_F(RunTest, AnInterruptBetweenCellsIsARecordToo) {
  auto run = begin({}, true);
  ASSERT_TRUE(run.ok());
  testing::internal::CaptureStdout();
  run->add(run->trial());
  simulate_interrupt(SIGTERM);
  const auto path = run->finish();
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(path.ok());
  const RecordSet set = stored();
  ASSERT_EQ(set.records.size(), 2U);
  EXPECT_EQ(set.records[1].record.verdict, Verdict::interrupted);
  EXPECT_NE(set.records[1].record.reason.find("1 complete"), std::string::npos);
  EXPECT_EQ(printed, record_line(set.records[0].record) + "\n" + record_line(set.records[1].record) + "\n");
}

// On the same file system, the records do no harm: they are written after the measurement.
TEST_F(RunTest, WarnsOnlyIfTheResultsAreInsideAMeasuredTier) {
  auto run = begin();
  ASSERT_TRUE(run.ok());
  Tier tier;
  tier.name = "disk";
  tier.facts.fs_type = "nfs4";
  tier.facts.network = true;
  tier.root = (dir_ / "not" / "there" / "yet").string();
  run->check_tier(tier);
  run->check_tier(tier);
  EXPECT_TRUE(warnings_.empty());
  run->add(run->trial());
  const Json& remarks = run->records()[0].environment["warnings"];
  ASSERT_EQ(remarks.size(), 1U) << "but it is recorded, once";
  EXPECT_NE(remarks[0].get<std::string>().find("'disk'"), std::string::npos);
  tier.name = "other";
  tier.root = dir_.string();
  run->check_tier(tier);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("'other'"), std::string::npos);
  run->add(run->trial());
  EXPECT_EQ(run->records()[1].environment["warnings"].size(), 2U);
  tier.facts.memory = true;
  tier.name = "fast";
  run->check_tier(tier);
  run->add(run->trial());
  EXPECT_EQ(run->records()[2].environment["warnings"].size(), 2U);
  EXPECT_EQ(warnings_.size(), 1U) << "memory is no place of the results";
}

}  // namespace
}  // namespace penstock
