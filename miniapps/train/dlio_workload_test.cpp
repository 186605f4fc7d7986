#include "miniapps/train/dlio_workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

class DlioWorkloadTest : public ::testing::Test {
 protected:
  Result<DlioWorkload> read(const std::string& text, const std::vector<std::string>& overrides = {}) {
    std::ofstream(file_) << text;
    return read_dlio_workload(file_, overrides);
  }
  void refused(const std::string& text, const std::string& expected,
               const std::vector<std::string>& overrides = {}) {
    const Result<DlioWorkload> got = read(text, overrides);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().code, Errc::invalid_argument);
    EXPECT_NE(got.error().what.find(expected), std::string::npos) << got.error().what;
  }
  bool noted(const DlioWorkload& workload, const std::string& expected) {
    return std::any_of(workload.notes.begin(), workload.notes.end(),
                       [&](const std::string& note) { return note.find(expected) != std::string::npos; });
  }

  ScratchFolder folder_;
  std::string file_ = (folder_.path() / "it.yaml").string();
};

// A workload file in DLIO's format.
constexpr const char* kUnet = R"(
model:
  name: unet3d
  type: cnn
  model_size: 499153191
framework: pytorch
workflow: {generate_data: False, train: True, checkpoint: True}
dataset:
  data_folder: data/unet3d/
  format: npz
  num_files_train: 168
  num_samples_per_file: 1
  record_length_bytes: 146600628
  record_length_bytes_stdev: 68341808
reader: {data_loader: pytorch, batch_size: 7, read_threads: 4, file_shuffle: seed, sample_shuffle: seed}
train:
  epochs: 5
  computation_time: 0.323
metric:
  au: 0.90
)";

TEST_F(DlioWorkloadTest, SaysHowDataAreReadAndStepsTake) {
  const Result<DlioWorkload> got = read(kUnet);
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->name, "unet3d");
  EXPECT_EQ(got->data_folder, "data/unet3d/");
  EXPECT_EQ(got->format, "npz");
  EXPECT_EQ(got->files, 168U);
  EXPECT_EQ(got->batch, 7U);
  EXPECT_EQ(got->threads, 4U);
  EXPECT_EQ(got->prefetch, 2U) << "DLIO's default";
  EXPECT_EQ(got->epochs, 5U);
  EXPECT_EQ(got->steps, 0U);
  EXPECT_DOUBLE_EQ(got->computation_s, 0.323);
  EXPECT_DOUBLE_EQ(got->au, 0.9);
  EXPECT_TRUE(got->shuffles);
  EXPECT_TRUE(noted(*got, "model_size is without effect in DLIO"));
  EXPECT_TRUE(noted(*got, "checkpoints are not written"));
  EXPECT_FALSE(noted(*got, "not generated")) << "it does not ask for that";
}

TEST_F(DlioWorkloadTest, OverridesGoBeforeTheFile) {
  const Result<DlioWorkload> got = read(
      kUnet, {"++workload.reader.read_threads=8", "++workload.train.computation_time={mean: 0.5, stdev: 0.1}",
              "++workload.reader.file_shuffle=off", "++workload.train.total_training_steps=40"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->threads, 8U);
  EXPECT_DOUBLE_EQ(got->computation_s, 0.5);
  EXPECT_DOUBLE_EQ(got->deviation_s, 0.1);
  EXPECT_EQ(got->steps, 40U);
}

TEST_F(DlioWorkloadTest, TheTrainingMayReadByItself) {
  const Result<DlioWorkload> got = read(kUnet, {"++workload.reader.read_threads=0"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->threads, 0U);
  EXPECT_FALSE(read(kUnet, {"++workload.reader.read_threads=-1"}).ok());
}

TEST_F(DlioWorkloadTest, OverridesReplaceADistributionOrPartOfIt) {
  const std::string spread = "++workload.train.computation_time={mean: 0.5, stdev: 0.1}";
  Result<DlioWorkload> got = read(kUnet, {spread, "++workload.train.computation_time=0.05"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->computation_s, 0.05);
  EXPECT_DOUBLE_EQ(got->deviation_s, 0) << "a number has no spread";
  got = read(kUnet, {spread, "++workload.train.computation_time.mean=0.25"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->computation_s, 0.25);
  EXPECT_DOUBLE_EQ(got->deviation_s, 0.1);
  got = read(kUnet, {"++workload.train.computation_time.median=0.25"});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().what.find("'median'"), std::string::npos) << got.error().what;
}

TEST_F(DlioWorkloadTest, TakesOlderFilesAndSaysSo) {
  const Result<DlioWorkload> got = read(
      "model: resnet50\nframework: pytorch\ndataset:\n num_files_train: 1024\n num_samples_per_file: 1251\n "
      "record_length: 114660.07\n"
      "train:\n computation_time: 0.103\n epoch: 5\nreader:\n batch_size: 64\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->name, "resnet50");
  EXPECT_TRUE(noted(*got, "keys of an older DLIO"));
  EXPECT_EQ(got->epochs, 1U) << "as today's DLIO has it";
}

TEST_F(DlioWorkloadTest, RefusesWhatItDoesNotKnow) {
  refused("reader: {batchsize: 3}", "'reader.batch_size'");
  refused("readr: {batch_size: 3}", "readr");
  refused("reader: {batch_size: 0}", "'reader.batch_size' needs a whole number from 1 on, not '0'");
  refused("reader: {batch_size: -3}", "from 1 on");
  refused("train: {computation_time: fast}", "a number from 0 on");
  refused("train: {computation_time: {mean: 1, type: gamma}}", "normal");
  refused("storage: {storage_type: s3}", "--data TIER");
  refused("metric: {au: 90}", "a part of 1");
  refused("workflow: {train: False}", "trains nothing");
  refused("just words", "no sections");
  refused("a: [", "it.yaml");
  refused("reader: {batch_size: 3}", "++workload.SECTION.KEY=VALUE", {"reader.batch_size=4"});
  refused("reader: {batch_size: 3}", "'reader.batch_size'", {"++workload.reader.bach_size=4"});
}

TEST_F(DlioWorkloadTest, AFileThatIsNotThereIsSaidByName) {
  const Result<DlioWorkload> got = read_dlio_workload("/no/such.yaml", {});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().what.find("/no/such.yaml"), std::string::npos);
}

TEST(FilesLeftByDlio, MayBeNone) {
  DlioWorkload workload;
  workload.files = 1024;
  workload.samples_per_file = 1251;
  workload.batch = 400;
  EXPECT_EQ(files_read_by_dlio(workload, 1), 0U);
  workload.samples_per_file = 1;
  workload.batch = 7;
  workload.files = 168;
  EXPECT_EQ(files_read_by_dlio(workload, 1), 168U);
  EXPECT_EQ(files_read_by_dlio(workload, 5), 140U);
  workload.batch = uint64_t{1} << 62;
  EXPECT_EQ(files_read_by_dlio(workload, 8), 0U) << "more than 64 bits";
}

}  // namespace
}  // namespace penstock
