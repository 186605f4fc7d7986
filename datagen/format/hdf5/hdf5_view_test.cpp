#include "datagen/format/hdf5/hdf5_view.hpp"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "datagen/format/format_testing.hpp"
#include "datagen/format/hdf5/hdf5_writer.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

// Makes a file with the given data sets. The bytes of each data set are 0, 1, 2 and so on.
std::vector<std::byte> file_with(const std::vector<ArrayPlan>& datasets) {
  const Hdf5Layout layout(datasets);
  std::vector<std::byte> file = layout.metadata();
  file.resize(size_t(layout.end()));
  for (size_t i = 0; i < datasets.size(); ++i)
    for (uint64_t at = 0; at < datasets[i].bytes(); ++at)
      file[size_t(layout.address(i) + at)] = static_cast<std::byte>(at);
  return file;
}

const std::vector<ArrayPlan> kDatasets{
    {.name = "data", .element = Element::f32, .shape = {4, 3, 2}},
    {.name = "climate/labels", .element = Element::i32, .shape = {4}, .chunks = 2},
    {.name = "one", .element = Element::f64, .shape = {}}};

TEST(Hdf5View, FindsArraysInPlace) {
  const std::vector<std::byte> file = file_with(kDatasets);
  const std::vector<Hdf5ArrayRequest> wanted{
      {"climate/labels", Element::i32}, {"data", Element::f32}, {"one"}};
  const auto arrays = hdf5_arrays(file, wanted);
  ASSERT_OK(arrays);
  EXPECT_EQ((*arrays)[1].shape, (std::vector<uint64_t>{4, 3, 2}));
  EXPECT_EQ((*arrays)[1].row_bytes, 24U);
  EXPECT_EQ((*arrays)[0].rows(), 4U);
  EXPECT_EQ((*arrays)[2].rows(), 1U);
  for (const Hdf5Rows& rows : *arrays) {
    for (uint64_t i = 0; i < rows.rows(); ++i) {
      const auto row = rows.row(i);
      ASSERT_EQ(row.size(), rows.row_bytes);
      EXPECT_GE(row.data(), file.data());
      EXPECT_LE(row.data() + row.size(), file.data() + file.size());
      for (size_t at = 0; at < row.size(); ++at)
        ASSERT_EQ(row[at], static_cast<std::byte>(i * rows.row_bytes + at));
    }
  }
}

TEST(Hdf5View, NamesWhatIsMissing) {
  const std::vector<Hdf5ArrayRequest> wanted{{"weight"}};
  const auto arrays = hdf5_arrays(file_with(kDatasets), wanted);
  EXPECT_ERRC(Errc::not_found, arrays, "no dataset 'weight'");
  EXPECT_ERRC(Errc::not_found, arrays, "'climate/labels'");
}

TEST(Hdf5View, RefusesOtherElementTypes) {
  const std::vector<std::byte> file = file_with(kDatasets);
  const std::vector<Hdf5ArrayRequest> doubles{{"data", Element::f64}};
  EXPECT_ERRC(Errc::unsupported, hdf5_arrays(file, doubles), "floats of 4 bytes, not float64");
  const std::vector<Hdf5ArrayRequest> integers{{"data", Element::i32}};
  EXPECT_ERRC(Errc::unsupported, hdf5_arrays(file, integers), "not int32");
}

TEST(Hdf5View, DamageErrorsNameTheOffset) {
  const std::vector<std::byte> file = file_with(kDatasets);
  const std::vector<Hdf5ArrayRequest> wanted{{"data", Element::f32}};
  const auto cut = hdf5_arrays(std::span(file).first(file.size() - 1), wanted);
  EXPECT_ERRC(Errc::truncated, cut, "at byte");
  std::vector<std::byte> damaged = file;
  damaged[20] ^= std::byte{1};
  EXPECT_ERRC(Errc::corrupt, hdf5_arrays(damaged, wanted), "at byte");
  EXPECT_ERRC(Errc::corrupt, hdf5_arrays({}, wanted), "no HDF5");
}

TEST(Hdf5View, ShapesComeFromHeaders) {
  const Tier tier = open_tier("mem:hdf5-view", kNoNamedTiers).value();
  const auto writer = tier.backend->create("a.h5");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(file_with(kDatasets)));
  ASSERT_OK((*writer)->publish(Durability::visible));
  const auto shape = hdf5_shape(*tier.backend, "a.h5", "data");
  ASSERT_OK(shape);
  EXPECT_EQ(*shape, (std::vector<uint64_t>{4, 3, 2}));
  EXPECT_ERRC(Errc::not_found, hdf5_shape(*tier.backend, "a.h5", "nothing"), "'a.h5'");
  EXPECT_ERRC(Errc::not_found, hdf5_shape(*tier.backend, "b.h5", "data"));
}

}  // namespace
}  // namespace penstock
