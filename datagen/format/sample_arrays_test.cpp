#include "datagen/format/sample_arrays.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format_testing.hpp"

namespace penstock {
namespace {

const std::array kFields{
    Field{.name = "x", .codec = "raw", .extension = ".bin", .shape = {4}},
    Field{.name = "mask", .codec = "raw", .extension = ".bin", .shape = {64 << 20}},
};

TEST(SampleArrays, SamplesMustMatchThePlan) {
  const std::span<const Field> fields(kFields.data(), 1);
  SampleArrays arrays({.name = "a.npz", .samples = 2, .fields = fields}, true);
  const std::vector<std::byte> bytes = pattern(4);
  const std::span<const std::byte> piece(bytes);
  const FieldBytes wrong{.pieces = {&piece, 1}, .bytes = 3};
  EXPECT_ERRC(Errc::internal, arrays.check_complete(), "a.npz");
  EXPECT_ERRC(Errc::internal, arrays.add({.key = "k", .label_name = {}, .fields = {&wrong, 1}}), "3 bytes");
}

TEST(SampleArrays, LabelsAreRequiredForAllSamplesOrNone) {
  const std::span<const Field> fields(kFields.data(), 1);
  const std::vector<std::byte> bytes = pattern(4);
  const std::span<const std::byte> piece(bytes);
  const FieldBytes field{.pieces = {&piece, 1}, .bytes = 4};
  SampleArrays arrays({.name = "a.npz", .samples = 2, .fields = fields}, true);
  ASSERT_OK(arrays.add({.key = "k", .label = 5, .label_name = {}, .fields = {&field, 1}}));
  EXPECT_EQ(arrays.plans().back().name, "label");
  EXPECT_ERRC(Errc::internal, arrays.add({.key = "k", .label_name = {}, .fields = {&field, 1}}), "label");
  SampleArrays without_labels({.name = "a.npz", .samples = 1, .fields = fields}, true);
  ASSERT_OK(without_labels.add({.key = "k", .label_name = {}, .fields = {&field, 1}}));
  EXPECT_EQ(without_labels.plans().size(), 1U);
  EXPECT_OK(without_labels.check_complete());
  EXPECT_ERRC(Errc::internal, without_labels.add({.key = "k", .label_name = {}, .fields = {&field, 1}}),
              "too many");
}

TEST(SampleArrays, MemoryOfBufferedFieldsIsBounded) {
  const std::vector<std::byte> bytes(64 << 20);
  const std::span<const std::byte> piece(bytes);
  const std::array sample{FieldBytes{.pieces = {}, .bytes = 4},
                          FieldBytes{.pieces = {&piece, 1}, .bytes = 64 << 20}};
  SampleArrays arrays({.name = "a.npz", .samples = 9, .fields = kFields}, true);
  for (int i = 0; i < 4; ++i) ASSERT_OK(arrays.add({.key = "k", .label_name = {}, .fields = sample}));
  EXPECT_ERRC(Errc::unsupported, arrays.add({.key = "k", .label_name = {}, .fields = sample}),
              "fewer samples");
}

TEST(PatchableWriter, BuffersForAppendOnlyBackEnds) {
  Tier tier = open_tier("mem:patchable", kNoNamedTiers).value();
  AppendingBackend appending(std::move(tier.backend));
  const auto writer = create_patchable(appending, "a", 0).value();
  ASSERT_OK(writer->append(bytes_of("wrong words")));
  EXPECT_ERRC(Errc::internal, writer->write_at(6, bytes_of("longer")), "'a'");
  ASSERT_OK(writer->write_at(0, bytes_of("right")));
  ASSERT_OK(writer->publish(Durability::visible, IfExists::replace));
  EXPECT_EQ(text_of(content(appending, "a")), "right words");
  const std::vector<std::byte> much(64 << 20);
  const auto bounded = create_patchable(appending, "b", 0).value();
  for (int i = 0; i < 4; ++i) ASSERT_OK(bounded->append(much));
  EXPECT_ERRC(Errc::unsupported, bounded->append(bytes_of("x")), "'b'");
}

}  // namespace
}  // namespace penstock
