#include "datagen/recipe/noise_stock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

constexpr std::array kKinds{Noise::bytes, Noise::floats, Noise::classes};

std::vector<float> stock_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(NoiseArray, KnowsItsChecksumsAtEveryLength) {
  for (const Noise kind : kKinds) {
    const NoiseStock stock(kind, 7);
    NoiseArray array(stock);
    for (const uint64_t bytes :
         {0U, 1U, 15U, 16U, 17U, 256U, 4095U, 4096U, 4097U, 4352U, 100'000U, 8'400'000U}) {
      const FieldBytes& made = array.make(RandomStream(7, bytes), bytes);
      const std::vector<std::byte> all = joined(made);
      EXPECT_EQ(all.size(), bytes);
      EXPECT_EQ(made.bytes, bytes);
      EXPECT_EQ(made.crc32c, crc32c(all)) << bytes;
      ASSERT_NE(made.crc32, nullptr);
      EXPECT_EQ(crc32_of(made), crc32(all)) << bytes;
    }
  }
}

// No 4 KiB may occur twice, wherever they begin in a file. The first array is more than twice as long as the
// stock.
TEST(NoiseArray, NoBlockIsLikeAnother) {
  for (const Noise kind : kKinds) {
    const NoiseStock stock(kind, 7);
    NoiseArray array(stock);
    std::set<std::string> blocks;
    size_t count = 0;
    for (uint64_t sample = 0; sample < 3; ++sample) {
      const std::vector<std::byte> all = joined(
          array.make(RandomStream(7, sample), sample == 0 ? 2 * NoiseStock::kStockBytes + 5000 : 1'000'000));
      for (size_t at = sample * 1001; at + NoiseStock::kBlockBytes <= all.size();
           at += NoiseStock::kBlockBytes) {
        blocks.emplace(reinterpret_cast<const char*>(all.data()) + at, NoiseStock::kBlockBytes);
        ++count;
      }
    }
    EXPECT_EQ(blocks.size(), count);
  }
}

TEST(NoiseArray, FloatsAreNumbersThatResembleTheirNeighbours) {
  const NoiseStock stock(Noise::floats, 7);
  NoiseArray array(stock);
  const std::vector<float> values = stock_floats(joined(array.make(RandomStream(1, 2), 4'000'000)));
  double sum = 0, squares = 0, steps = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(values[i])) << i;
    ASSERT_LT(std::abs(values[i]), 20.0F);
    sum += values[i];
    squares += double{values[i]} * values[i];
    steps += (double{values[i]} - values[i - 1]) * (double{values[i]} - values[i - 1]);
  }
  const auto count = double(values.size());
  EXPECT_NEAR(sum / count, 0.0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.3);
  EXPECT_LT(steps / squares, 0.5);  // the ratio would be 2 for independent neighbours
}

TEST(NoiseArray, BytesHaveTheEntropyOfAScan) {
  const NoiseStock stock(Noise::bytes, 7);
  NoiseArray array(stock);
  const std::vector<std::byte> all = joined(array.make(RandomStream(1, 2), 4'000'000));
  std::array<double, 256> counts{};
  for (const std::byte byte : all) ++counts[std::to_integer<size_t>(byte)];
  double bits = 0;
  for (const double count : counts)
    if (count > 0) bits -= count / 4e6 * std::log2(count / 4e6);
  EXPECT_GT(bits, 6.0);
  EXPECT_LT(bits, 7.9);
}

TEST(NoiseArray, HasThreeClasses) {
  const NoiseStock stock(Noise::classes, 7);
  NoiseArray array(stock);
  std::array<size_t, 3> counts{};
  const std::vector<float> values = stock_floats(joined(array.make(RandomStream(1, 2), 4'000'000)));
  for (const float value : values) {
    ASSERT_TRUE(value == 0.0F || value == 1.0F || value == 2.0F) << value;
    ++counts[size_t(value)];
  }
  EXPECT_GT(counts[0], counts[1]);
  EXPECT_GT(counts[1], counts[2]);
  EXPECT_GT(counts[2], values.size() / 200);
}

// recipe.hpp promises the same bytes on every machine and with every compiler.
TEST(NoiseArray, SameBytesOnEveryMachine) {
  std::vector<uint32_t> crcs;
  for (const Noise kind : kKinds) {
    const NoiseStock stock(kind, 7);
    NoiseArray array(stock);
    crcs.push_back(crc32c_of(array.make(RandomStream(7, "golden"), 9'000'000)));
  }
  EXPECT_EQ(crcs, (std::vector<uint32_t>{3334427628U, 2148779270U, 1331856746U}));
}

}  // namespace
}  // namespace penstock
