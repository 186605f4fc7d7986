// Tests what every format must do, on every back end that is always available: format_contract_test NAME.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/sample_opener.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

std::string g_format;  // name of the tested format, set from the command line before any test runs

struct Sample {
  std::string key;
  uint32_t label = 0;
  std::string label_name;
  std::vector<std::byte> bytes;
};

// Fields for the tests: a picture, an array for formats that accept only arrays, and a line for formats that
// accept only text.
const Field kPictureField{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
const Field kArray{
    .name = "image", .codec = "raw", .extension = ".bin", .element = Element::u8, .shape = {3, 32, 32}};
const Field kLine{.name = "text", .codec = "json", .extension = ".json", .varies = true};

Result<Placement> add(ObjectWriter& writer, const Sample& sample) {
  // The bytes of the sample in three pieces, which may be empty.
  const std::span<const std::byte> bytes(sample.bytes);
  const std::array pieces{bytes.first(bytes.size() / 3), bytes.subspan(bytes.size() / 3, bytes.size() / 2),
                          bytes.subspan(bytes.size() / 3 + bytes.size() / 2)};
  FieldBytes field{.pieces = pieces, .bytes = bytes.size()};
  if (sample.label % 2 == 1) field.crc32c = crc32c(bytes);  // as a SampleMaker does that knows the checksum
  return writer.add(
      {.key = sample.key, .label = sample.label, .label_name = sample.label_name, .fields = {&field, 1}});
}

std::vector<Sample> make_samples(const Field& field) {
  std::vector<Sample> samples;
  const RandomStream random(7, "format contract");
  const std::vector<size_t> sizes{0, 1, 2, 511, 512, 513, 4096, 70000, 3, 1000};
  for (size_t i = 0; i < 40; ++i) {
    const uint32_t label = uint32_t(i / 10);
    Sample sample{
        .key = "n" + std::to_string(label) + "/n" + std::to_string(label) + "_" + std::to_string(100 + i),
        .label = label,
        .label_name = "n" + std::to_string(label),
        .bytes = std::vector<std::byte>(field.varies ? sizes[i % sizes.size()] : size_t(field_bytes(field)))};
    const RandomStream own = random.substream(i);
    for (size_t b = 0; b < sample.bytes.size(); ++b)
      sample.bytes[b] = std::byte(&field == &kLine ? 'a' + own.bits(b) % 26 : own.bits(b) & 0xffU);
    samples.push_back(std::move(sample));
  }
  return samples;
}

// Returns the sets of options with which the format is tested: no options, two numbers of samples per object,
// and compression with both. Leaves out options that the format does not have.
std::vector<std::vector<OptionWord>> variants() {
  std::vector<std::vector<OptionWord>> words{{}};
  const OptionTable table = (*format_registry().find(g_format))->options;
  const auto has = [&](std::string_view name) {
    return std::any_of(table.begin(), table.end(), [&](const OptionSpec& spec) { return spec.name == name; });
  };
  if (has("shards")) {
    words.push_back({{"shards", "3"}});
    words.push_back({{"samples_per_file", "1"}});
  }
  if (has("compression") && gzip_available().ok()) {
    words.push_back({{"compression", "gzip"}, {"shards", "3"}});
    words.push_back({{"compression", "gzip"}, {"samples_per_file", "1"}});
  }
  return words;
}

std::unique_ptr<Format> make_format(const std::vector<OptionWord>& words = {}) {
  const auto info = format_registry().find(g_format);
  if (!info.ok()) return nullptr;
  const auto options = Options::parse((*info)->options, words, "format option");
  EXPECT_TRUE(options.ok());
  auto format = (*info)->make(*options);
  EXPECT_TRUE(format.ok());
  return *std::move(format);
}

class FormatContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string text = "mem:format-contract";
    if (GetParam() == "posix") {
      std::string name = (std::filesystem::temp_directory_path() / "penstock-format-XXXXXX").string();
      ASSERT_NE(::mkdtemp(name.data()), nullptr);
      folder_ = name;
      text = "posix:" + folder_;
    }
    auto tier = open_tier(text, kNoNamedTiers);
    ASSERT_TRUE(tier.ok()) << tier.error().message();
    tier_ = std::make_unique<Tier>(*std::move(tier));
    format_ = make_format();
    ASSERT_NE(format_, nullptr);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string object_name(uint64_t object, const std::vector<Sample>& samples) const {
    const uint64_t first = format_->first_sample(object, samples.size());
    return format_->object_name(object, format_->objects(samples.size()), "contract", samples[first].key,
                                ".jpg");
  }

  // Returns those of kPictureField and kArray that the format accepts; kLine if it accepts neither.
  std::vector<const Field*> fields() const {
    std::vector<const Field*> taken;
    for (const Field* field : {&kPictureField, &kArray})
      if (format_->check({field, 1}).ok()) taken.push_back(field);
    if (taken.empty() && format_->check({&kLine, 1}).ok()) taken.push_back(&kLine);
    EXPECT_FALSE(taken.empty());
    return taken;
  }

  void round_trip(const Field& field);

  std::string folder_;
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<Format> format_;
};

// Writes all samples into objects and reads them back: first at their placements, then by a scan.
void FormatContract::round_trip(const Field& field) {
  const std::vector<Sample> samples = make_samples(field);
  const uint64_t objects = format_->objects(samples.size());
  ASSERT_GE(objects, 1U);
  ASSERT_EQ(format_->first_sample(0, samples.size()), 0U);
  for (uint64_t object = 0; object < objects; ++object) {
    const uint64_t begin = format_->first_sample(object, samples.size());
    const uint64_t end =
        object + 1 < objects ? format_->first_sample(object + 1, samples.size()) : samples.size();
    ASSERT_LT(begin, end);
    const std::string name = object_name(object, samples);
    ASSERT_TRUE(check_object_name(name).ok());
    auto writer =
        format_->create(*tier_->backend, {.name = name, .samples = end - begin, .fields = {&field, 1}});
    ASSERT_TRUE(writer.ok()) << writer.error().message();
    std::vector<Placement> placed;
    for (uint64_t i = begin; i < end; ++i) {
      const auto placement = add(**writer, samples[i]);
      ASSERT_TRUE(placement.ok()) << placement.error().message();
      if (format_->wrapping().empty()) {
        EXPECT_EQ(placement->length, samples[i].bytes.size());
      }
      placed.push_back(*placement);
    }
    EXPECT_FALSE(tier_->backend->open(name).ok()) << "visible before it was published";
    const auto published_object = (*writer)->publish(Durability::visible);
    ASSERT_TRUE(published_object.ok()) << published_object.error().message();

    const auto reader = tier_->backend->open(name);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    ASSERT_EQ((*reader)->size().value_or(0), published_object->bytes);
    std::vector<std::byte> whole(published_object->bytes);
    ASSERT_TRUE((*reader)->read_at(0, whole).ok());
    EXPECT_EQ(crc32c(whole), published_object->crc32c);
    auto opener = SampleOpener::make(std::string(field.codec) + std::string(format_->wrapping()));
    ASSERT_TRUE(opener.ok()) << opener.error().message();
    for (uint64_t i = begin; i < end; ++i) {
      const Placement& placement = placed[i - begin];
      std::vector<std::byte> stored(placement.length);
      ASSERT_TRUE((*reader)->read_at(placement.offset, stored).ok());
      EXPECT_EQ(placement.crc32c.value_or(crc32c(samples[i].bytes)), crc32c(stored)) << samples[i].key;
      const auto opened = opener->open(stored);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      EXPECT_TRUE(std::ranges::equal(*opened, samples[i].bytes)) << samples[i].key;
    }

    EXPECT_TRUE(format_->claims(name)) << name;
    std::vector<Placement> scanned;
    std::vector<std::string> labels;
    const auto found = format_->scan(*tier_->backend, {.name = name, .bytes = published_object->bytes},
                                     [&](const Format::FoundSample& sample) {
                                       scanned.push_back(sample.placement);
                                       labels.emplace_back(sample.label_name);
                                     });
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_EQ(scanned.size(), placed.size());
    for (size_t i = 0; i < placed.size(); ++i) {
      EXPECT_EQ(scanned[i].offset, placed[i].offset);
      EXPECT_EQ(scanned[i].length, placed[i].length);
      // A format that stores only label numbers cannot return label names.
      if (!labels[i].empty() && labels[i] != std::to_string(samples[begin + i].label)) {
        EXPECT_EQ(labels[i], samples[begin + i].label_name);
      }
    }
    EXPECT_TRUE(tier_->backend->names().remove(name).ok());
  }
}

TEST_P(FormatContract, StoredSamplesAreReadBack) {
  for (const std::vector<OptionWord>& words : variants()) {
    SCOPED_TRACE(words.empty() ? "by itself" : words[0].key + "=" + words[0].value);
    format_ = make_format(words);
    for (const Field* field : fields()) round_trip(*field);
  }
}

TEST_P(FormatContract, NamesAreDistinct) {
  const std::vector<Sample> samples = make_samples(kPictureField);
  for (const std::vector<OptionWord>& words : variants()) {
    format_ = make_format(words);
    std::vector<std::string> names;
    for (uint64_t object = 0; object < format_->objects(samples.size()); ++object)
      names.push_back(object_name(object, samples));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  }
}

TEST_P(FormatContract, AnAbandonedObjectLeavesNothing) {
  const Field& field = *fields().front();
  const std::vector<Sample> samples = make_samples(field);
  {
    auto writer =
        format_->create(*tier_->backend, {.name = "abandoned.jpg", .samples = 2, .fields = {&field, 1}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(add(**writer, samples[7]).ok());
  }
  EXPECT_FALSE(tier_->backend->open("abandoned.jpg").ok());
}

TEST_P(FormatContract, AnObjectIsApprovedBeforeItAppears) {
  const Field& field = *fields().front();
  const std::vector<Sample> samples = make_samples(field);
  for (const bool approved : {false, true}) {
    auto writer =
        format_->create(*tier_->backend, {.name = "approved.jpg", .samples = 1, .fields = {&field, 1}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(add(**writer, samples[7]).ok());
    PublishedObject approved_object;
    const auto made = (*writer)->publish(Durability::visible, [&](const PublishedObject& written) {
      approved_object = written;
      EXPECT_FALSE(tier_->backend->open("approved.jpg").ok());
      return approved ? success() : Result<void>(make_error(Errc::corrupt, "not approved"));
    });
    EXPECT_EQ(tier_->backend->open("approved.jpg").ok(), approved);
    ASSERT_EQ(made.ok(), approved);
    if (!approved) {
      EXPECT_EQ(made.error().code, Errc::corrupt);
      continue;
    }
    EXPECT_EQ(approved_object.bytes, made->bytes);
    EXPECT_EQ(approved_object.crc32c, made->crc32c);
  }
}

TEST_P(FormatContract, AFullTierIsNoSpaceAndLeavesNothing) {
  auto full = open_tier(
      GetParam() == "posix" ? "posix:" + folder_ + ",capacity=1KiB" : "mem:format-full,capacity=1KiB",
      kNoNamedTiers);
  ASSERT_TRUE(full.ok()) << full.error().message();
  const Field& field = *fields().front();
  const std::vector<Sample> samples = make_samples(field);
  auto writer = format_->create(*full->backend, {.name = "full.jpg", .samples = 1, .fields = {&field, 1}});
  ASSERT_TRUE(writer.ok());
  const auto placed = add(**writer, samples[7]);
  const auto published =
      placed.ok() ? (*writer)->publish(Durability::visible) : Result<PublishedObject>(placed.error());
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Errc::no_space) << published.error().message();
  EXPECT_FALSE(full->backend->open("full.jpg").ok());
}

TEST_P(FormatContract, DoesNotClaimHiddenObjects) {
  EXPECT_FALSE(format_->claims(".penstock/manifest"));
  EXPECT_FALSE(format_->claims("a/.hidden.jpg"));
}

INSTANTIATE_TEST_SUITE_P(OnBackends, FormatContract, ::testing::Values("mem", "posix"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: format_contract_test FORMAT\n");
    return 2;
  }
  penstock::g_format = argv[1];
  const auto found = penstock::format_registry().find(penstock::g_format);
  if (!found.ok()) {
    std::fprintf(stderr, "skipped: %s\n", found.error().what.c_str());
    return found.error().code == penstock::Errc::unsupported ? 77 : 2;
  }
  return RUN_ALL_TESTS();
}
