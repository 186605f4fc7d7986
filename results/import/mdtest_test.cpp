#include "results/import/import_testing.hpp"

namespace penstock {
namespace {

std::string mdtest_text(const std::string& iterations, const std::string& rows,
                        const std::string& before = "") {
  return "-- started at 11/30/2026 21:06:59 --\n\nmdtest-4.1.0 was launched with 2 total task(s) on 1 "
         "node(s)\n"
         "Command line used: /opt/ior/bin/mdtest '-n' '50' '-i' '3' '-u' '-d' '/data/my dir'\n"
         "Path                : /data/my dir\n"
         "FS                  : 252.0 GiB   Used FS: 13.0%   Inodes: 16.0 Mi   Used Inodes: 3.9%\n"
         "2 tasks, 100 files/directories\n" +
         before + "\nSUMMARY rate (in ops/sec): (of " + iterations +
         " iterations)\n   Operation                     Max            Min           Mean        Std Dev\n"
         "   ---------                     ---            ---           ----        -------\n" +
         rows + "-- finished at 11/30/2026 21:07:01 --\n";
}

constexpr const char* kCreation =
    "   Directory creation          900.000       300.000        500.000      300.000\n";

TEST(Mdtest, APhaseBecomesARecordAndThreeIterationsFollowFromTheTable) {
  const auto records = imported_records(
      mdtest_text("3", std::string(kCreation) + "   File stat          0.000   0.000   0.000   0.000\n"));
  ASSERT_EQ(records.size(), 1U) << "a rate of 0 is of a phase that was not run";
  const Record& record = records[0];
  EXPECT_EQ(record.command, "mdtest");
  EXPECT_EQ(record.label.at("peer"), "mdtest-4.1.0");
  EXPECT_EQ(record.parameters.at("operation"), "directory creation");
  EXPECT_EQ(record.parameters.at("ranks"), 2U);
  EXPECT_EQ(record.parameters.at("nodes"), 1U);
  EXPECT_EQ(record.parameters.at("items"), 100U);
  EXPECT_EQ(record.parameters.at("options"), "-n 50 -u");
  EXPECT_EQ(record.parameters.at("tier"), "/data/my dir");
  EXPECT_EQ(samples_of_metric(record, "ops_per_s"), (std::vector{900.0, 300.0, 300.0}));
  EXPECT_EQ(record.verdict, Verdict::ok);
}

TEST(Mdtest, MoreIterationsAreTheMeanUnlessTheLinesOfEachAreThere) {
  EXPECT_EQ(samples_of_metric(imported_records(mdtest_text("4", kCreation)).at(0), "ops_per_s"),
            std::vector{500.0});
  std::string lines =
      "V-1: Rank   0 Line  1125    Directory creation:          0.001 sec,        900.000 ops/sec\n";
  for (const char* const rate : {"300.000", "400.000", "400.000"})
    lines += "V-1: Rank   0 Line  1125    Directory creation:          0.001 sec,        " +
             std::string(rate) + " ops/sec\n";
  EXPECT_EQ(samples_of_metric(imported_records(mdtest_text("4", kCreation, lines)).at(0), "ops_per_s"),
            (std::vector{900.0, 300.0, 400.0, 400.0}));
  const std::string of_another_rank =
      "V-1:    Directory creation:          0.001 sec,        1.000 ops/sec\n";
  EXPECT_EQ(
      samples_of_metric(
          imported_records(mdtest_text("4", kCreation, lines.substr(lines.find('\n') + 1) + of_another_rank))
              .at(0),
          "ops_per_s"),
      std::vector{500.0});
}

TEST(Mdtest, ATextWithoutItsEndIsNamed) {
  const std::string text = mdtest_text("3", kCreation);
  const auto whole = import_foreign(text);
  const auto cut = import_foreign(std::string_view(text).substr(0, text.find("-- finished")));
  ASSERT_TRUE(whole && cut);
  EXPECT_TRUE(whole->problems.empty());
  EXPECT_EQ(cut->records.size(), whole->records.size());
  EXPECT_EQ(cut->problems.size(), 1U);
}

TEST(Mdtest, BytesThatAreNoUtf8AreReplaced) {
  std::string text = mdtest_text("1", "   File stat   9.0   9.0   9.0   0.000\n");
  text.replace(text.find("'-u'"), 4, "'\x80'");
  const auto records = imported_records(text);
  EXPECT_EQ(records.at(0).parameters.at("options"), "-n 50 \xef\xbf\xbd");
}

TEST(Mdtest, RowsOfEarlierVersionsHaveAColon) {
  std::string text =
      mdtest_text("1", "   File creation     :      84.500         84.500         84.500          0.000\n");
  const size_t at = text.find(" (in ops/sec)");
  text.erase(at, std::string(" (in ops/sec)").size());
  const auto records = imported_records(text);
  EXPECT_EQ(samples_of_metric(records.at(0), "ops_per_s"), std::vector{84.5});
}

TEST(Mdtest, TheTableOfTimesIsNotTakenForRates) {
  const std::string times =
      "\nSUMMARY time (in ms/op): (of 1 iterations)\n   File creation   0.001   0.001   0.001   0.000\n";
  const auto both =
      imported_records(mdtest_text("1", "   File creation   84.5   84.5   84.5   0.000\n" + times));
  EXPECT_EQ(samples_of_metric(both.at(0), "ops_per_s"), std::vector{84.5});
  std::string only_times = mdtest_text("1", "   File creation   84.5   84.5   84.5   0.000\n");
  only_times.replace(only_times.find("rate (in ops/sec)"), 17, "time (in ms/op)");
  const auto found = import_foreign(only_times);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->records.empty());
  ASSERT_EQ(found->problems.size(), 1U);
}

TEST(Mdtest, EachNumberOfTasksIsARecordAndARateThatIsNotFiniteIsUnknown) {
  const std::string second =
      "1 tasks, 50 files/directories\n\nSUMMARY rate (in ops/sec): (of 1 iterations)\n"
      "   Directory creation   inf   nan   -nan   0.000\n";
  const auto records = imported_records(mdtest_text("1", kCreation + second));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].parameters.at("ranks"), 1U);
  EXPECT_EQ(records[1].parameters.at("items"), 50U);
  EXPECT_EQ(records[1].verdict, Verdict::failed);
  EXPECT_TRUE(records[1].metrics.empty());
}

TEST(Mdtest, WrongDataIsAVerdictAndARunWithoutATableIsNamed) {
  const auto records = imported_records(mdtest_text(
      "1", "   File read   9.0   9.0   9.0   0.000\n",
      "\nERROR: verifying the data on read (3 errors)! Take the performance values with care!\n"));
  EXPECT_EQ(records.at(0).verdict, Verdict::wrong_bytes);
  const std::string text = mdtest_text("1", kCreation);
  const auto stopped = import_foreign(text.substr(0, text.find("SUMMARY")));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->problems.size(), 1U);
}

}  // namespace
}  // namespace penstock
