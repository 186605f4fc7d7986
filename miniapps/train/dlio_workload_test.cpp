#include "miniapps/train/dlio_workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.323);
  EXPECT_DOUBLE_EQ(got->sample_bytes, 146600628);
  EXPECT_DOUBLE_EQ(got->au, 0.9);
  EXPECT_TRUE(got->shuffles_files);
  EXPECT_TRUE(got->shuffles_samples);
  EXPECT_TRUE(noted(*got, "model_size has no effect in DLIO"));
  EXPECT_TRUE(noted(*got, "checkpoints are not written"));
  EXPECT_FALSE(noted(*got, "not generated")) << "it does not ask for that";
}

TEST_F(DlioWorkloadTest, OverridesGoBeforeTheFile) {
  const Result<DlioWorkload> got = read(
      kUnet, {"++workload.reader.read_threads=8", "++workload.train.computation_time={mean: 0.5, stdev: 0.1}",
              "++workload.reader.file_shuffle=off", "++workload.train.total_training_steps=40"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->threads, 8U);
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.5);
  EXPECT_DOUBLE_EQ(got->computation.deviation_s, 0.1);
  EXPECT_EQ(got->steps, 40U);
  EXPECT_FALSE(got->shuffles_files);
}

TEST_F(DlioWorkloadTest, OverridesAreMergedAsHydraDoes) {
  Result<DlioWorkload> got = read(kUnet, {"++workload.train={computation_time: 0.03}",
                                          "+workload.workflow.train=no", "workload.reader={read_threads: 6}",
                                          "~workload.metric", "++workload.dataset.num_files_train=null"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.03);
  EXPECT_EQ(got->epochs, 5U) << "the other keys of the section stay";
  EXPECT_EQ(got->batch, 7U);
  EXPECT_EQ(got->threads, 6U);
  EXPECT_FALSE(got->trains);
  EXPECT_EQ(got->files, 8U) << "null: DLIO's default";
  got = read("reader: {batch_size: 2}\n", {"++workload.train.computation_time.mean=0.5"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.5);
  got = read("data_reader: {batch_size: 2}\nreader: {batch_size: 3}\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->batch, 2U) << "DLIO reads this one";
}

TEST_F(DlioWorkloadTest, TheOrderOfKeysDoesNotMatter) {
  for (const char* text :
       {"train: {computation_time: 0.003, computation_time_stdev: 0.001}",
        "train: {computation_time_stdev: 0.001, computation_time: 0.003}",
        "train: {computation_time_stdev: 0.001, computation_time: {mean: 0.003, stdev: 0.2}}"}) {
    Result<DlioWorkload> got = read(text);
    ASSERT_TRUE(got.ok()) << got.error().what;
    EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.003);
    EXPECT_DOUBLE_EQ(got->computation.deviation_s, 0.001);
    got = read(text, {"++workload.train.computation_time=0.01"});
    ASSERT_TRUE(got.ok()) << got.error().what;
    EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.01);
    EXPECT_DOUBLE_EQ(got->computation.deviation_s, 0.001) << "overriding the mean keeps the deviation";
  }
}

TEST_F(DlioWorkloadTest, TakesValuesAsOmegaConfReadsThem) {
  for (const char* word : {"False", "false", "FALSE", "off", "Off", "no", "NO"}) {
    const Result<DlioWorkload> got = read(std::string("reader: {file_shuffle: ") + word +
                                          ", sample_shuffle: seed}\n" + "workflow: {train: " + word + "}");
    ASSERT_TRUE(got.ok()) << got.error().what;
    EXPECT_FALSE(got->shuffles_files) << word;
    EXPECT_TRUE(got->shuffles_samples) << word;
    EXPECT_FALSE(got->trains) << word;
  }
  Result<DlioWorkload> got = read("workflow: {train: Yes}\ndataset: {num_files_train: 1_024}\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_TRUE(got->trains);
  EXPECT_EQ(got->files, 1024U);
  got = read("metric:\n  au:\nreader: {prefetch_size: null, batch_size: ~}\ntrain:\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->au, 0.9);
  EXPECT_EQ(got->prefetch, 2U);
  EXPECT_EQ(got->batch, 1U);
}

TEST_F(DlioWorkloadTest, TakesAllDistributionsOfTimes) {
  const auto time = [&](const std::string& text) {
    const Result<DlioWorkload> got = read("train: {computation_time: {" + text + "}}");
    EXPECT_TRUE(got.ok()) << text;
    return got.ok() ? got->computation : ComputationTime{};
  };
  const ComputationTime uniform = time("type: uniform, min: 0.1, max: 0.3");
  EXPECT_DOUBLE_EQ(uniform.mean_s, 0.2);
  EXPECT_NEAR(uniform.deviation_s, 0.1 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(uniform.distribution, "uniform");
  const ComputationTime gamma = time("type: gamma, shape: 4, scale: 0.1");
  EXPECT_DOUBLE_EQ(gamma.mean_s, 0.4);
  EXPECT_DOUBLE_EQ(gamma.deviation_s, 0.2);
  const ComputationTime exponential = time("type: exponential, scale: 0.1");
  EXPECT_DOUBLE_EQ(exponential.mean_s, 0.1);
  EXPECT_DOUBLE_EQ(exponential.deviation_s, 0.1);
  EXPECT_EQ(exponential.distribution, "gamma");
  const ComputationTime poisson = time("type: poisson, lam: 4");
  EXPECT_DOUBLE_EQ(poisson.mean_s, 4);
  EXPECT_DOUBLE_EQ(poisson.deviation_s, 2);
  refused("train: {computation_time: {type: gamma, scale: 1}}", "'shape'");
  refused("train: {computation_time: {type: normal, stdev: 1}}", "'mean'");
}

TEST_F(DlioWorkloadTest, KeysThatDlioDoesNotReadAreIgnoredAndNamed) {
  const Result<DlioWorkload> got = read(
      "future: {x: 1}\nreader: {gpu_direct: yes}\nlogging: {verbosity: INFO}\n"
      "workflow: {debug: False}\ndataset: {parquet: {columns: []}}\n"
      "storage: {storage_options: {region: r, access_key_id: k, s3_force_path_style: true}}\n"
      "output: {folder: f, metric: {unit: s}}\ntrain: {computation_time: {mean: 1}}\nevaluation: ~\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_TRUE(noted(*got, "ignored, as in DLIO: future.x, reader.gpu_direct, output.metric.unit"));
}

TEST_F(DlioWorkloadTest, ReadsWhatHydraComposes) {
  std::ofstream(folder_.path() / "base.yaml") << "reader: {batch_size: 4, read_threads: 3}\n";
  Result<DlioWorkload> got = read("defaults: [base, _self_]\nreader: {batch_size: 5}\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->batch, 5U);
  EXPECT_EQ(got->threads, 3U);
  refused("defaults: [{override hydra/launcher: slurm}]\n", "'defaults'");
  refused("defaults: [it]\n", "'defaults'");
  got = read("defaults: [_self_, base]\nreader: {batch_size: 5, prefetch_size: 9}\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->batch, 4U) << "what comes after _self_ changes the file";
  EXPECT_EQ(got->prefetch, 9U);
  got = read("hydra: {x: 1}\nworkload: {reader: {batch_size: 6}}\n", {"++workload.reader.read_threads=2"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->batch, 6U);
  EXPECT_EQ(got->threads, 2U);
}

TEST_F(DlioWorkloadTest, TakesMergeKeysOfYaml) {
  const Result<DlioWorkload> got = read(
      "x: &x {read_threads: 3, batch_size: 5}\ny: &y {batch_size: 4, prefetch_size: 6}\n"
      "reader:\n  <<: [*x, *y]\n  read_threads: 2\n");
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->threads, 2U) << "the mapping's own keys come first";
  EXPECT_EQ(got->batch, 5U) << "then those of the first mapping";
  EXPECT_EQ(got->prefetch, 6U);
}

TEST_F(DlioWorkloadTest, RefusesMappingsThatOmegaConfRefuses) {
  refused("reader: {batch_size: 3}\nreader: {batch_size: 4}\n", "'reader' twice");
  refused("reader: {batch_size: 3, batch_size: 4}\n", "'batch_size' twice");
  refused("reader: &a {x: *a}\n", "nested too deeply");
  refused("reader: {batch_size: 3}\n---\nreader: {batch_size: 4}\n", "second document");
  EXPECT_EQ(read("---\nreader: {batch_size: 3}\n...\n---\n").value().batch, 3U);
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = ", *a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [1";
    for (int j = 0; j < 9; ++j) bomb += alias;
    bomb += "]\n";
  }
  refused(bomb, "too many values");
}

TEST_F(DlioWorkloadTest, AnOverrideRemovesOnlyWhatIsThere) {
  const std::string text = "reader: {batch_size: 3, shapes: [[2, True], x], name: '4', other: ~}\n";
  for (const char* override :
       {"~workload.reader.batch_size", "~workload.reader.batch_size=3", "~workload.reader",
        "~workload.reader=null",
        "~workload.reader={shapes: [[2,true],x], batch_size: 3, name: '4', other: null}",
        "~workload.reader.batch_size=3.0"})
    EXPECT_NE(read(text, {override}).value().batch, 3U) << override;
  for (const char* override :
       {"~workload.reader.batch_size=4", "~workload.reader.read_threads", "~workload.metric",
        "~workload.reader.batch_size.x", "~workload.reader.shapes=[2,5]",
        "~workload.reader.shapes=[[3,True],x]", "~workload.reader.name=4", "~workload.reader.other=[1]",
        "~workload.reader.batch_size='3'", "~workload.reader={batch_size: 3}",
        "~workload.reader.batch_size=[3]"})
    refused(text, override, {override});
}

TEST_F(DlioWorkloadTest, KeysWithADotAndValuesWithoutASectionAreIgnored) {
  const DlioWorkload workload =
      read("n: &n 5\nreader.batch_size: {x: 1}\nreader: {batch_size: *n, x.y: 9}\n7: [a]\n").value();
  EXPECT_EQ(workload.batch, 5U);
  for (const char* name : {"n", "reader.batch_size.x", "reader.x.y", "7"})
    EXPECT_TRUE(noted(workload, name)) << name;
  refused("reader: 3\n", "'reader' needs keys below it");
}

TEST_F(DlioWorkloadTest, OverridesAreWrittenAsHydraReadsThem) {
  const Result<DlioWorkload> got =
      read(kUnet, {"++workload.reader={batch_size:3,read_threads:5}", "++workload.workflow={train:1}",
                   "++workload.storage={storage_type:s3,storage_options:{endpoint_url:http://h:1/}}",
                   "++workload.dataset.data_folder=${oc.env:DATA,a:b}"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_EQ(got->batch, 3U);
  EXPECT_EQ(got->threads, 5U);
  EXPECT_TRUE(got->trains);
  EXPECT_EQ(got->endpoint, "http://h:1/");
  EXPECT_EQ(got->data_folder, "${oc.env:DATA,a:b}");
  refused(kUnet, "override '++workload.train=[1'", {"++workload.train=[1"});
  refused(kUnet, "'x' twice", {"++workload.train={x: 1, x: 2}"});
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
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.05);
  EXPECT_DOUBLE_EQ(got->computation.deviation_s, 0) << "a number has no spread";
  got = read(kUnet, {spread, "++workload.train.computation_time.mean=0.25"});
  ASSERT_TRUE(got.ok()) << got.error().what;
  EXPECT_DOUBLE_EQ(got->computation.mean_s, 0.25);
  EXPECT_DOUBLE_EQ(got->computation.deviation_s, 0.1);
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
  EXPECT_TRUE(noted(*got, "dataset.record_length is for DLIO up to"));
  EXPECT_TRUE(noted(*got, "train.epoch has no effect"));
  EXPECT_NEAR(got->sample_bytes, 114660.07, 1e-6);
  EXPECT_EQ(got->epochs, 1U) << "as today's DLIO has it";
}

TEST_F(DlioWorkloadTest, RefusesWhatItDoesNotKnow) {
  refused("reader: {batchsize: 3}", "'reader.batch_size'");
  refused("readr: {batch_size: 3}", "readr");
  refused("reader: {batch_size: 0}", "'reader.batch_size' needs a whole number of at least 1, not '0'");
  refused("reader: {batch_size: -3}", "of at least 1");
  refused("train: {computation_time: fast}", "a number of seconds");
  refused("train: {computation_time: {mean: 1, type: weibull}}", "normal");
  refused("metric: {au: 90}", "a fraction from 0 to 1");
  refused("just words", "no sections");
  refused("a: [", "it.yaml");
  refused("reader: {batch_size: 3}", "++workload.SECTION.KEY=VALUE", {"reader.batch_size=4"});
  refused("reader: {batch_size: 3}", "'reader.batch_size'", {"++workload.reader.bach_size=4"});
  refused("output: {metric: {exclude_start_step: 2}}", "'output.metric.exclude_start_steps'");
  refused("output: {metrics: {exclude_start_steps: 2}}", "'output.metric'");
  refused("storage: {storage_options: {endpoint_ur: http://h}}", "'storage.storage_options.endpoint_url'");
  refused("output: {}", "exclude_end_steps'", {"++workload.output.metric.exclude_end_step=2"});
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
