// Tests what every recipe promises (recipe.hpp): recipe_contract_test NAME. Exits with 77 if this build does
// not have the recipe.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

using Bytes = std::string;

const RecipeInfo* tested = nullptr;
constexpr uint64_t kSamples = 300;
constexpr uint64_t kMadeSamples = 12;

std::vector<OptionWord> option_list(std::span<const RecipeSetting> settings) {
  std::vector<OptionWord> words;
  for (const RecipeSetting& setting : settings)
    words.push_back({std::string(setting.key), std::string(setting.value)});
  return words;
}

// Makes the recipe with settings that make its samples quick to make.
std::unique_ptr<Recipe> make_recipe(uint64_t samples, uint64_t seed) {
  const Options options =
      Options::parse(tested->options, option_list(tested->small_settings), "setting").value();
  return tested->make({samples, seed}, options).value();
}
// Returns one recipe, which the tests share. Making a new recipe can take longer than making its samples.
const Recipe& shared_recipe() {
  static const std::unique_ptr<Recipe> recipe = make_recipe(kSamples, 7);
  return *recipe;
}
// Makes the recipe with its default settings.
std::unique_ptr<Recipe> full_recipe(uint64_t seed) {
  return tested->make({0, seed}, Options::parse(tested->options, {}, "setting").value()).value();
}

// Returns the settings that the recipe has for its own format.
std::vector<OptionWord> own_settings() {
  if (tested->format_settings == nullptr) return {};
  return option_list(tested->format_settings(Options::parse(tested->options, {}, "setting").value()));
}

// The bytes of all fields of a sample, one after another.
Bytes make_sample(SampleMaker& maker, uint64_t index) {
  Bytes bytes;
  const std::span<const FieldBytes> sample = maker.make(index).value();
  for (const FieldBytes& field : sample)
    for (const std::span<const std::byte> piece : field.pieces)
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return bytes;
}

SamplePlan plan_of(const Recipe& recipe, uint64_t index) {
  SamplePlan plan;
  recipe.plan(index, plan);
  return plan;
}

const std::vector<Bytes>& first_samples() {
  static const std::vector<Bytes> samples = [] {
    const auto maker = shared_recipe().maker().value();
    std::vector<Bytes> made_samples;
    for (uint64_t i = 0; i < kMadeSamples; ++i) made_samples.push_back(make_sample(*maker, i));
    return made_samples;
  }();
  return samples;
}

TEST(RecipeContract, DescribesItself) {
  EXPECT_FALSE(tested->summary.empty());
  EXPECT_FALSE(tested->source.empty());
  EXPECT_FALSE(tested->sizes.empty());
  const auto format = format_registry().find(tested->format);
  ASSERT_TRUE(format.ok()) << tested->format;
  const auto options = Options::parse((*format)->options, own_settings(), "format option");
  ASSERT_TRUE(options.ok()) << options.error().what;
  const auto accepted = (*format)->make(*options).value()->check(make_recipe(kSamples, 1)->fields());
  EXPECT_TRUE(accepted.ok()) << accepted.error().what;
  EXPECT_GT(tested->full_samples, 0U);
  EXPECT_EQ(full_recipe(1)->samples(), tested->full_samples);
  EXPECT_EQ(make_recipe(kSamples, 1)->samples(), kSamples);
}

TEST(RecipeContract, RefusesUnknownSettings) {
  const OptionWord word{"no_such_setting", "1"};
  EXPECT_EQ(Options::parse(tested->options, {&word, 1}, "setting").error().code, Errc::invalid_argument);
}

TEST(RecipeContract, PlansNeedNoOtherPlans) {
  const auto in_order = make_recipe(kSamples, 7);
  std::vector<SamplePlan> plans;
  for (uint64_t i = 0; i < kSamples; ++i) plans.push_back(plan_of(*in_order, i));
  const auto backwards = make_recipe(kSamples, 7);
  for (uint64_t i = kSamples; i-- > 0;) {
    const SamplePlan plan = plan_of(*backwards, i);
    EXPECT_EQ(plan.key, plans[i].key);
    EXPECT_EQ(plan.label, plans[i].label);
    EXPECT_EQ(backwards->bytes_expected(i), in_order->bytes_expected(i));
  }
  EXPECT_FALSE(plan_of(*full_recipe(7), tested->full_samples - 1).key.empty());
}

TEST(RecipeContract, KeysAreUniqueNamesAndLabelsInRange) {
  const auto recipe = make_recipe(5000, 7);
  const std::vector<std::string> labels = recipe->label_names();
  EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), labels.size());
  std::set<std::string> keys;
  for (uint64_t i = 0; i < recipe->samples(); ++i) {
    const SamplePlan plan = plan_of(*recipe, i);
    EXPECT_TRUE(keys.insert(plan.key).second) << plan.key;
    EXPECT_TRUE(check_object_name(plan.key + std::string(recipe->fields().front().extension)).ok())
        << plan.key;
    if (!labels.empty()) {
      EXPECT_LT(plan.label, labels.size());
    }
  }
}

TEST(RecipeContract, SameBytesInAnyOrderAndByAnyMaker) {
  const std::vector<Bytes>& expected = first_samples();
  const Recipe& recipe = shared_recipe();
  const auto maker = recipe.maker().value();
  for (uint64_t i = kMadeSamples; i-- > 0;) EXPECT_TRUE(make_sample(*maker, i) == expected[i]) << i;
  for (uint64_t i = 0; i < kMadeSamples; i += 3)
    EXPECT_TRUE(make_sample(*recipe.maker().value(), i) == expected[i]) << i;
}

TEST(RecipeContract, SameBytesOnAnyThread) {
  const std::vector<Bytes>& expected = first_samples();
  const auto recipe = make_recipe(kSamples, 7);  // its stock is made by several threads
  std::vector<Bytes> got(kMadeSamples);
  {
    std::vector<std::jthread> threads;
    for (uint64_t worker = 0; worker < 4; ++worker)
      threads.emplace_back([&, worker] {
        const auto maker = recipe->maker().value();
        for (uint64_t i = worker; i < kMadeSamples; i += 4) got[i] = make_sample(*maker, i);
      });
  }
  for (uint64_t i = 0; i < kMadeSamples; ++i) EXPECT_TRUE(got[i] == expected[i]) << i;
}

// If the bytes of a recipe change, its fingerprint must change.
TEST(RecipeContract, BytesAreThoseOfTheFingerprint) {
  uint32_t crc = 0;
  const auto add = [&](const auto& bytes) { crc = crc32c(std::as_bytes(std::span(bytes)), crc); };
  for (const Bytes& sample : first_samples()) add(sample);
  for (uint64_t i = 0; i < kMadeSamples; ++i) {
    const SamplePlan plan = plan_of(shared_recipe(), i);
    add(plan.key);
    add(std::to_string(plan.label));
  }
  for (const Companion& companion : shared_recipe().companions()) {
    add(companion.name);
    for (const std::vector<std::byte>& bytes : companion.bytes) add(bytes);
  }
  // Adds what changes the objects even if the samples stay the same: the shape of an array, and the format's
  // settings.
  for (const Field& field : shared_recipe().fields())
    if (field.trailing_ones != 0) add(std::to_string(field.trailing_ones));
  for (const OptionWord& setting : own_settings())
    if (setting.key != "samples_per_file") add(setting.key + "=" + setting.value);
  EXPECT_EQ(tested->fingerprint, crc) << "the recipe (or this machine's libjpeg-turbo) makes other bytes "
                                         "than it did: if the recipe shall, give "
                                         "RecipeInfo this fingerprint: 0x"
                                      << std::hex << crc;
}

TEST(RecipeContract, SamplesAndSeedsDiffer) {
  std::vector<Bytes> samples = first_samples();
  const auto other = make_recipe(kSamples, 8);
  const auto maker = other->maker().value();
  for (uint64_t i = 0; i < kMadeSamples; ++i) samples.push_back(make_sample(*maker, i));
  EXPECT_EQ(std::set<Bytes>(samples.begin(), samples.end()).size(), samples.size());
}

TEST(RecipeContract, SizesAreAsPlanned) {
  const Recipe& recipe = shared_recipe();
  const auto maker = recipe.maker().value();
  double expected = 0;
  double got = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const auto plan = double(recipe.bytes_expected(i));
    double size = 0;
    const std::span<const FieldBytes> sample = maker->make(i).value();
    for (const FieldBytes& field : sample) size += double(field.bytes);
    EXPECT_NEAR(size / plan, 1.0, 0.2) << i;
    expected += plan;
    got += size;
  }
  EXPECT_NEAR(got / expected, 1.0, 0.02);

  double sum = 0;
  const auto full = full_recipe(7);
  const uint64_t count = std::min<uint64_t>(tested->full_samples, 4096);
  for (uint64_t i = 0; i < count; ++i) sum += double(full->bytes_expected(i));
  EXPECT_NEAR(sum / double(count) / tested->mean_sample_bytes, 1.0, 0.05);
}

TEST(RecipeContract, FieldsAreAsDeclared) {
  const Recipe& recipe = shared_recipe();
  const std::span<const Field> fields = recipe.fields();
  ASSERT_FALSE(fields.empty());
  std::set<std::string_view> names;
  for (const Field& field : fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.codec.empty()) << field.name;
    EXPECT_TRUE(field.extension.starts_with('.')) << field.name;
    if (field.varies) {
      EXPECT_TRUE(field.shape.empty()) << field.name;
    }
  }
  const auto maker = recipe.maker().value();
  for (uint64_t i = 0; i < kMadeSamples; ++i) {
    const std::span<const FieldBytes> sample = maker->make(i).value();
    ASSERT_EQ(sample.size(), fields.size());
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::vector<std::byte> bytes = joined(sample[f]);
      EXPECT_EQ(bytes.size(), sample[f].bytes);
      EXPECT_EQ(crc32c_of(sample[f]), crc32c(bytes)) << fields[f].name << " of sample " << i;
      EXPECT_EQ(crc32_of(sample[f]), crc32(bytes)) << fields[f].name << " of sample " << i;
      if (!fields[f].varies) {
        EXPECT_EQ(bytes.size(), field_bytes(fields[f])) << fields[f].name;
      }
    }
  }
}

TEST(RecipeContract, CompanionsAreAsDeclared) {
  const Recipe& recipe = shared_recipe();
  std::set<std::string> names;
  for (const Companion& companion : recipe.companions()) {
    EXPECT_TRUE(names.insert(companion.name).second) << companion.name;
    EXPECT_TRUE(check_object_name(companion.name).ok()) << companion.name;
    ASSERT_EQ(companion.fields.size(), companion.bytes.size());
    ASSERT_FALSE(companion.fields.empty());
    for (size_t f = 0; f < companion.fields.size(); ++f) {
      EXPECT_EQ(companion.bytes[f].size(), field_bytes(companion.fields[f])) << companion.fields[f].name;
    }
  }
}

// Checks that a field's bytes are valid for its codec.
void expect_decodes(const Field& field, const std::vector<std::byte>& bytes) {
  if (field.codec == "jpeg" || field.codec == "png") {
    JpegDecoder decoder;
    Image image;
    const Result<void> decoded =
        field.codec == "png" ? decode_png(bytes, image) : decoder.decode(bytes, image);
    ASSERT_TRUE(decoded.ok()) << decoded.error().what;
    EXPECT_GE(image.width, 16U);
    EXPECT_GE(image.height, 16U);
    return;
  }
  ASSERT_EQ(field.codec, "raw") << "teach this test to decode the codec";
  ASSERT_EQ(bytes.size() % element_bytes(field.element), 0U);
  if (field.element != Element::f32) return;
  for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    ASSERT_TRUE(std::isfinite(value)) << field.name << " element " << at / sizeof value;
  }
}

TEST(RecipeContract, DecodesByItsCodec) {
  const Recipe& recipe = shared_recipe();
  const auto maker = recipe.maker().value();
  for (uint64_t i = 0; i < 50; ++i) {
    const std::span<const FieldBytes> sample = maker->make(i).value();
    for (size_t f = 0; f < sample.size(); ++f) expect_decodes(recipe.fields()[f], joined(sample[f]));
  }
}

// No block may consist of one repeated byte, and no two blocks may be equal. Storage could compress or
// deduplicate such blocks.
TEST(RecipeContract, BlocksAreNeitherEmptyNorAlike) {
  constexpr size_t kBlock = 4096;
  std::set<std::string_view> blocks;
  size_t count = 0;
  for (const Bytes& sample : first_samples())
    for (size_t at = 0; at + kBlock <= sample.size(); at += kBlock) {
      const std::string_view block = std::string_view(sample).substr(at, kBlock);
      EXPECT_NE(block.find_first_not_of(block[0]), std::string_view::npos);
      blocks.insert(block);
      ++count;
    }
  EXPECT_EQ(blocks.size(), count);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s RECIPE\n", argv[0]);
    return 2;
  }
  const auto found = penstock::recipe_registry().find(argv[1]);
  if (!found.ok()) {
    std::fprintf(stderr, "%s\n", found.error().what.c_str());
    return found.error().code == penstock::Errc::unsupported ? 77 : 2;
  }
  penstock::tested = *found;
  return RUN_ALL_TESTS();
}
