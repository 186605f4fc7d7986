#include <algorithm>

#include "results/import/import_testing.hpp"

namespace penstock {
namespace {

std::string dlio_summary(const std::string& metric) {
  return R"({"start": "2026-11-30T21:10:10.805425", "num_accelerators": 4, "num_hosts": 2, "hostname": "node-1",
"metric": {)" +
         metric +
         R"(}, "num_files_train": 64, "num_samples_per_file": 1, "host_memory_GB": [23.5, 23.5], "epochs": 2,
"data_size_per_host_GB": 5.960464477539063e-08})";
}

TEST(Dlio, EpochsAreSamples) {
  const auto records = imported_records(dlio_summary(
      R"("train_au_percentage": [87.5, 75.0], "train_au_mean_percentage": 81.25,
"train_throughput_samples_per_second": [300.0, 100.0], "train_throughput_mean_samples_per_second": 200.0,
"train_io_mean_MB_per_second": 25.0, "eval_au_percentage": [NaN, 50], "eval_throughput_samples_per_second": [NaN, 7])"));
  ASSERT_EQ(records.size(), 2U);
  const Record& train = records[0];
  EXPECT_EQ(train.command, "dlio");
  EXPECT_EQ(train.parameters.at("operation"), "train");
  EXPECT_EQ(train.parameters.at("accelerators"), 4U);
  EXPECT_EQ(train.parameters.at("hosts"), 2U);
  EXPECT_EQ(train.parameters.at("epochs"), 2U);
  EXPECT_EQ(train.parameters.at("bytes_per_host"), 64U);
  EXPECT_EQ(train.environment.at("host"), "node-1");
  EXPECT_EQ(train.started, "") << "a local time without an offset";
  EXPECT_EQ(samples_of_metric(train, "au_dlio"), (std::vector{0.875, 0.75}));
  EXPECT_EQ(samples_of_metric(train, "samples_per_s"), (std::vector{300.0, 100.0}));
  EXPECT_EQ(samples_of_metric(train, "payload_bytes_per_s"), (std::vector{39321600.0, 13107200.0}));
  EXPECT_EQ(records[1].parameters.at("operation"), "evaluate");
  EXPECT_EQ(samples_of_metric(records[1], "samples_per_s"), std::vector{7.0});
  EXPECT_FALSE(records[1].metrics.contains("payload_bytes_per_s"));
}

TEST(Dlio, CheckpointsAreRecordsOfTheirOwn) {
  const auto records = imported_records(dlio_summary(
      R"("save_checkpoint_io_mean_GB_per_second": 0.5, "save_checkpoint_duration_mean_seconds": 2.5,
"load_checkpoint_io_mean_GB_per_second": NaN, "load_checkpoint_duration_mean_seconds": NaN, "checkpoint_size_GB": 1.25)"));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].parameters.at("operation"), "checkpoint save");
  EXPECT_EQ(records[0].parameters.at("checkpoint_bytes"), 1342177280U);
  EXPECT_EQ(samples_of_metric(records[0], "checkpoint_s"), std::vector{2.5});
  EXPECT_EQ(samples_of_metric(records[0], "checkpoint_bytes_per_s"), std::vector{536870912.0});
}

TEST(Dlio, TheOptionsNextToTheSummaryAreWork) {
  Record record =
      imported_records(
          dlio_summary(R"("train_au_percentage": [1], "train_throughput_samples_per_second": [2])"))
          .at(0);
  add_dlio_overrides(
      record,
      "- workload=unet3d_h100\n- ++workload.reader.batch_size=4\n- '++workload.dataset.data_folder=/data/p'\n"
      "- ++workload.output.folder=/results/7\nnot an option\n");
  EXPECT_EQ(record.parameters.at("workload"), "unet3d_h100");
  EXPECT_EQ(record.parameters.at("reader.batch_size"), "4");
  EXPECT_EQ(record.parameters.at("tier"), "/data/p");
  EXPECT_FALSE(record.parameters.contains("output.folder"));
  ASSERT_TRUE(record.work.has_value());
  EXPECT_NE(std::find(record.work->begin(), record.work->end(), "reader.batch_size"), record.work->end());
  EXPECT_EQ(std::find(record.work->begin(), record.work->end(), "tier"), record.work->end());
}

TEST(Dlio, OtherFilesOfARunAreNoSummary) {
  EXPECT_FALSE(import_foreign(R"({"1": {"start": "2026-11-30T21:10:12", "block1": {"duration": "0.58"}}})"));
}

}  // namespace
}  // namespace penstock
