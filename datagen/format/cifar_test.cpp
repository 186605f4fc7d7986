#include <string>
#include <vector>

#include "datagen/format/format_testing.hpp"

namespace penstock {
namespace {

const Field kPicture{.name = "image", .codec = "raw", .extension = ".bin", .shape = {3, 32, 32}};
constexpr size_t kRecordBytes = 3073;

class Cifar : public ::testing::Test {
 protected:
  Tier tier_ = open_tier("mem:cifar", kNoNamedTiers).value();
  Backend& backend_ = *tier_.backend;
  const std::unique_ptr<Format> format_ = format_of("cifar");
};

TEST_F(Cifar, FilesAreCalledAsTheRealOnes) {
  EXPECT_EQ(format_->objects(60000), 6U);
  std::string names;
  for (uint64_t object = 0; object < 6; ++object)
    names += format_->object_name(object, 6, "r", "k", ".x") + " ";
  EXPECT_EQ(
      names,
      "data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin ");
  EXPECT_EQ(format_->object_name(0, 1, "r", "k", ".x"), "data_batch_1.bin");
  EXPECT_EQ(format_->objects(60001), 7U);
  EXPECT_EQ(format_of("cifar", {{"samples_per_file", "7"}})->first_sample(2, 20), 14U);
  for (const char* name : {"data_batch_12.bin", "cifar/test_batch.bin"})
    EXPECT_TRUE(format_->claims(name)) << name;
  for (const char* name : {"data_batch_.bin", "data_batch_1x.bin", "batch_1.bin", "test_batch.bin.gz",
                           "x.bin", "data_batch_1", ".data_batch_1.bin"})
    EXPECT_FALSE(format_->claims(name)) << name;
}

TEST_F(Cifar, RecordsAreLabelThenPixels) {
  const std::vector<Field> fields{kPicture};
  auto samples = test_samples(fields, 3);
  samples[1].label = 255;
  const auto made = make_object(backend_, *format_, "data_batch_1.bin", fields, samples);
  ASSERT_OK(made);
  const auto bytes = content(backend_, "data_batch_1.bin");
  ASSERT_EQ(bytes.size(), 3 * kRecordBytes);
  EXPECT_EQ(std::to_integer<unsigned>(bytes[kRecordBytes]), 255U);
  EXPECT_EQ(made->placed[2].offset, 2 * kRecordBytes + 1);
  const auto scanned = scan_object(backend_, *format_, "data_batch_1.bin").value();
  ASSERT_EQ(scanned.size(), 3U);
  EXPECT_EQ(scanned[1].label, "255");
  EXPECT_EQ(scanned[1].codec, "raw");
}

TEST_F(Cifar, RefusesWhatIsNoRecord) {
  EXPECT_OK(format_->check({&kPicture, 1}));
  const Field flat{.name = "flat", .codec = "raw", .extension = ".bin", .shape = {3072}};
  EXPECT_OK(format_->check({&flat, 1}));
  const Field varying{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
  const Field floats{
      .name = "floats", .codec = "raw", .extension = ".bin", .element = Element::f32, .shape = {768}};
  const Field large{.name = "large", .codec = "raw", .extension = ".bin", .shape = {3, 64, 64}};
  for (const Field& field : {varying, floats, large})
    EXPECT_ERRC(Errc::invalid_argument, format_->check({&field, 1}), field.name);
  const std::vector<Field> two{kPicture, flat};
  EXPECT_ERRC(Errc::invalid_argument, format_->check(two), "3072");
  auto samples = test_samples({&kPicture, 1}, 1);
  samples[0].label = 256;
  EXPECT_ERRC(Errc::invalid_argument, make_object(backend_, *format_, "a", {&kPicture, 1}, samples),
              "label 256");
}

TEST_F(Cifar, PartsOfRecordsAreTruncated) {
  const auto bytes = pattern(2 * kRecordBytes);
  for (const size_t length :
       {size_t{0}, size_t{1}, kRecordBytes - 1, kRecordBytes + 1, 2 * kRecordBytes - 1}) {
    put(backend_, "test_batch.bin", std::span(bytes).first(length));
    EXPECT_ERRC(Errc::truncated, scan_object(backend_, *format_, "test_batch.bin"), "test_batch.bin");
  }
}

}  // namespace
}  // namespace penstock
