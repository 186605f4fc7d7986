#include "miniapps/train/sample_log.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

class SampleLogTest : public ::testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "samples").string(); }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path(), std::ios::binary).rdbuf();
    return all.str();
  }
  static Batch batch(uint64_t epoch, std::vector<uint64_t> index) {
    Batch batch;
    batch.epoch = epoch;
    batch.index = std::move(index);
    return batch;
  }

 private:
  const ScratchFolder folder_;
};

TEST_F(SampleLogTest, AFreshRunReplacesIt) {
  write("0 0 0 7\n");
  SampleLog log = SampleLog::open(path(), 0, 1).value();
  ASSERT_OK(log.after_step(0, batch(0, {5, 1})));
  ASSERT_OK(log.close());
  EXPECT_EQ(text(), "0 0 0 5\n0 0 0 1\n");
}

TEST_F(SampleLogTest, GoesOnBehindTheStepsThatCount) {
  for (const char* rest : {"", "1 2 0 9\n1 2 0 4\n", "1 2 0 9\n1 3", "1 2", "1 2 0 9"}) {
    write(std::string("0 0 0 7\n0 1 0 8\n") + rest);
    SampleLog log = SampleLog::continue_log(path(), 0, 1, 2).value();
    ASSERT_OK(log.after_step(0, batch(1, {4})));
    ASSERT_OK(log.close());
    EXPECT_EQ(text(), "0 0 0 7\n0 1 0 8\n1 2 0 4\n") << rest;
  }
}

TEST_F(SampleLogTest, GoesOnWhereThereIsNone) {
  SampleLog log = SampleLog::continue_log(path(), 0, 1, 2).value();
  ASSERT_OK(log.after_step(0, batch(1, {4})));
  ASSERT_OK(log.close());
  EXPECT_EQ(text(), "1 2 0 4\n");
  ASSERT_OK(keep_steps(path(), 1));  // the log begins with a later step, so no line is kept
  EXPECT_EQ(text(), "");
}

TEST_F(SampleLogTest, GoesOnOverOtherRanks) {
  const auto at = [&](int rank) { return path() + "." + std::to_string(rank); };
  for (int rank = 0; rank < 3; ++rank)
    std::ofstream(at(rank)) << "0 0 " << rank << " 7\n0 1 " << rank << " 8\n";
  const auto text_of = [](const std::string& file) {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  };
  for (int rank = 0; rank < 2; ++rank) {
    SampleLog log = SampleLog::continue_log(path(), rank, 2, 1, 3).value();
    ASSERT_OK(log.after_step(0, batch(0, {9})));
    ASSERT_OK(log.close());
  }
  EXPECT_EQ(text_of(at(0)), "0 0 0 7\n0 1 0 9\n");
  EXPECT_EQ(text_of(at(1)), "0 0 1 7\n0 1 1 9\n");
  EXPECT_EQ(text_of(at(2)), "0 0 2 7\n");
  SampleLog log = SampleLog::continue_log(path(), 0, 1, 0, 2).value();
  ASSERT_OK(log.close());
  EXPECT_EQ(text_of(at(0)) + text_of(at(1)) + text(), "");
}

TEST_F(SampleLogTest, WhatIsNoneOrLacksStepsStaysAsItIs) {
  for (const char* other : {"hello\n", "0 0 0 7\n\n", "0 0 0\n", "0 0 0 7 \n", "0 -1 0 7\n",
                            "0 1 0 7\n0 0 0 8\n", "0 0 0 7\n0 1 0 8\n"}) {
    write(other);
    EXPECT_ERRC(Errc::invalid_argument, SampleLog::continue_log(path(), 0, 1, 3), "another --sample-log");
    EXPECT_EQ(text(), other);
  }
}

}  // namespace
}  // namespace penstock
