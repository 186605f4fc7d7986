#include "results/import/import_testing.hpp"

namespace penstock {
namespace {

std::string ior_file(const std::string& results, const std::string& more_command = "") {
  return R"({"Version": "4.1.0", "Began": "Mon Nov 30 21:06:45 2026", "Command line": "/opt/ior/bin/ior -t 256k )" +
         more_command + R"(", "Machine": "Linux node-1",
"tests": [{"TestID": 0, "Parameters": {"api": "POSIX", "testFileName": "/data/p/f", "nodes": 1, "tasksPerNode": 2,
"repetitions": 2, "readFile": 1, "writeFile": 1, "filePerProc": 0, "randomOffset": 1, "fsync": 0, "segmentCount": 3,
"transferSize": 262144, "blockSize": 4194304}, "Options": {"api": "POSIX", "tasks": 2, "xfersize": "262144 bytes"},
"Results": [)" +
         results + "]}]\n}\n";
}

std::string ior_result(const std::string& access, const std::string& mib,
                       const std::string& open = "0.0039") {
  return R"({"access": ")" + access + R"(", "bwMiB": )" + mib +
         R"(, "blockKiB": 4096.0, "xferKiB": 256.0, "iops": 13194.8219, "latency": 0.0002, "openTime": )" +
         open + R"(, "wrRdTime": 0.0024, "closeTime": 0.0004, "totalTime": 0.0025})";
}

TEST(Ior, RepetitionsAreSamplesOfTheReadsAndOfTheWrites) {
  const auto records = imported_records(
      ior_file(ior_result("write", "3262.4630") + "," + ior_result("read", "1663.5") + "," +
               R"({"access": "remove", "totalTime": 0.0002},)" + ior_result("write", "5362.7029", "0.0000") +
               "," + ior_result("read", "1827.25")));
  ASSERT_EQ(records.size(), 2U);
  const Record& writes = records[0];
  EXPECT_EQ(writes.command, "ior");
  EXPECT_EQ(writes.label.at("peer"), "IOR-4.1.0");
  EXPECT_EQ(writes.environment.at("host"), "node-1");
  EXPECT_EQ(writes.parameters.at("operation"), "write");
  EXPECT_EQ(writes.parameters.at("api"), "POSIX");
  EXPECT_EQ(writes.parameters.at("block"), 262144U);
  EXPECT_EQ(writes.parameters.at("block_size"), 4194304U);
  EXPECT_EQ(writes.parameters.at("segments"), 3U);
  EXPECT_EQ(writes.parameters.at("ranks"), 2U);
  EXPECT_EQ(writes.parameters.at("random"), true);
  EXPECT_EQ(writes.parameters.at("file_per_process"), false);
  EXPECT_EQ(writes.parameters.at("tier"), "/data/p/f");
  EXPECT_EQ(writes.cache.at("client_data"), "unknown");
  EXPECT_EQ(writes.started, "") << "a local time without an offset";
  EXPECT_EQ(samples_of_metric(writes, "payload_bytes_per_s"),
            (std::vector{3262.4630 * 1048576, 5362.7029 * 1048576}));
  EXPECT_EQ(samples_of_metric(writes, "wall_s"), (std::vector{0.0025, 0.0025}));
  EXPECT_FALSE(writes.metrics.contains("open_s")) << "one of the two is below IOR's resolution";
  EXPECT_EQ(records[1].parameters.at("operation"), "read");
  EXPECT_EQ(samples_of_metric(records[1], "payload_bytes_per_s"),
            (std::vector{1663.5 * 1048576, 1827.25 * 1048576}));
  EXPECT_EQ(samples_of_metric(records[1], "open_s"), (std::vector{0.0039, 0.0039}));
}

TEST(Ior, ARateThatIsNotFiniteIsUnknown) {
  const auto records =
      imported_records(ior_file(ior_result("write", R"("inf")") + "," + ior_result("read", "nan")));
  ASSERT_EQ(records.size(), 2U);
  for (const Record& record : records) {
    EXPECT_FALSE(record.metrics.contains("payload_bytes_per_s"));
    EXPECT_EQ(record.verdict, Verdict::failed);
  }
}

TEST(Ior, OptionsOfTheBackEndAreWork) {
  const auto direct =
      imported_records(ior_file(ior_result("write", "1"), "--posix.odirect -O summaryFormat=JSON"));
  EXPECT_EQ(direct.at(0).parameters.at("options"), "--posix.odirect");
  EXPECT_EQ(direct[0].cache.at("client_data"), "bypassed");
  const auto buffered = imported_records(ior_file(ior_result("write", "1")));
  EXPECT_FALSE(buffered.at(0).parameters.contains("options"));
}

TEST(Ior, ItsTextIsNamedWithWhatToDo) {
  const std::string text = "IOR-4.1.0: MPI Coordinated Test of Parallel I/O\nBegan : now\n";
  EXPECT_FALSE(import_foreign(text).has_value());
  EXPECT_NE(advice_on_foreign(text, "a.txt").find("-O summaryFormat=JSON"), std::string::npos);
}

}  // namespace
}  // namespace penstock
