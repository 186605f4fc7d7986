#include "datagen/format/sample_choice.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace {

using Layout = SampleChoice::Layout;

StoredArray stored(std::string name, std::vector<uint64_t> shape, uint64_t item = 4, bool integers = false) {
  StoredArray array{.name = std::move(name),
                    .shape = std::move(shape),
                    .bytes = item,
                    .is_integer = integers,
                    .item_bytes = item};
  for (const uint64_t side : array.shape) array.bytes *= side;
  return array;
}

StoredArray labels(std::string name, std::vector<uint64_t> shape) {
  return stored(std::move(name), std::move(shape), 8, true);
}

std::string choice_text(const std::vector<StoredArray>& arrays) {
  const auto choice = choose_samples(arrays);
  if (!choice) return "nothing";
  const std::string layout = choice->layout == Layout::rows     ? " rows"
                             : choice->layout == Layout::ranges ? " ranges"
                                                                : " whole";
  return std::to_string(choice->samples) + layout + " of " + arrays[choice->payload].name +
         (choice->labels ? " by " + arrays[*choice->labels].name : "");
}

TEST(ChooseSamples, LabelsOfSeveralNumbersEachAreLeftOut) {
  for (const StoredArray& one_hot :
       {labels("y", {5, 10}), stored("label", {5, 10}), labels("labels", {5, 2})}) {
    const std::vector<StoredArray> arrays{stored("x", {5, 20, 3}), one_hot};
    EXPECT_EQ(choice_text(arrays), "5 rows of x");
    const auto choice = choose_samples(arrays);
    EXPECT_EQ(choice->left_out_count, 1U);
    EXPECT_EQ(choice->first_left_out, 1U);
    EXPECT_TRUE(choice->labels_have_several_numbers);
  }
  // One number each is a label, and a mask is a field of its sample.
  for (const StoredArray& other : {labels("y", {5, 1}), labels("label", {5, 20, 3})}) {
    const auto choice = choose_samples(std::vector{stored("x", {5, 20, 3}), other});
    EXPECT_EQ(choice->left_out_count, 0U);
    EXPECT_FALSE(choice->labels_have_several_numbers);
  }
}

TEST(ChooseSamples, DependsOnTheArraysNextToThePayload) {
  EXPECT_EQ(choice_text({}), "nothing");
  EXPECT_EQ(choice_text({labels("label", {5}), stored("x", {5, 2, 3})}), "5 rows of x by label");
  EXPECT_EQ(choice_text({labels("a/labels", {5, 1}), stored("a/x", {5, 2, 3})}), "5 rows of a/x by a/labels");
  // y does not contain integers, so it does not contain labels
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), stored("y", {5})}), "5 rows of x");
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), stored("weight", {5})}), "5 rows of x");
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3})}), "5 rows of x");
  EXPECT_EQ(choice_text({stored("x", {500})}), "1 whole of x");
  EXPECT_EQ(choice_text({stored("x", {})}), "1 whole of x");
  EXPECT_EQ(choice_text({stored("x", {0, 2, 3}), labels("label", {0})}), "0 rows of x by label");
  // A single label means one sample, even if another array has as many entries as x has rows.
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), stored("stats", {5}), labels("label", {1})}),
            "1 whole of x by label");
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), labels("y", {})}), "1 whole of x by y");
  // Single numbers next to the rows change nothing, and are left out.
  EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), stored("version", {}, 8, true)}), "5 rows of x");
  EXPECT_EQ(choice_text({stored("scale", {}), stored("x", {5, 2, 3}), stored("version", {})}), "5 rows of x");
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{3}, {2, 3}})
    EXPECT_EQ(choice_text({stored("x", {5, 2, 3}), stored("version", {}), stored("mean", shape)}),
              "1 whole of x");
  EXPECT_EQ(choose_samples(std::vector{stored("x", {5, 2, 3}), stored("version", {})})->left_out_count, 1U);
  // A one-dimensional array is one signal, even if another array has the same length.
  EXPECT_EQ(choice_text({stored("signal", {160000}, 8), stored("time", {160000}, 8)}), "1 whole of signal");
  EXPECT_EQ(choice_text({stored("signal", {160000}, 8), labels("labels", {160000})}), "1 whole of signal");
  // Climate files: labels are pictures, and the statistics have one row for each channel.
  EXPECT_EQ(choice_text({stored("climate/data", {16, 768, 1152}), labels("climate/labels", {768, 1152}),
                         stored("climate/stats", {16, 4})}),
            "1 whole of climate/data");
  EXPECT_EQ(choice_text({stored("climate/data", {6, 16, 768, 1152}), labels("climate/labels", {6, 768, 1152}),
                         stored("climate/stats", {6, 16, 4})}),
            "6 rows of climate/data");
  EXPECT_EQ(choice_text({stored("climate/data", {6, 16, 768, 1152}), labels("climate/labels", {6, 768, 1152}),
                         stored("mean", {16})}),
            "1 whole of climate/data");
  EXPECT_EQ(choice_text({stored("climate/stats", {16, 4})}), "0 whole of climate/stats");
  EXPECT_EQ(choice_text({stored("stats", {16, 4}), stored("x", {2, 3})}), "1 whole of x");
  EXPECT_EQ(choice_text({stored("image", {9}, 1, true), labels("image_offsets", {4}), labels("label", {3})}),
            "3 ranges of image by label");
  EXPECT_EQ(choice_text({labels("labels", {3}), labels("y", {4})}), "1 whole of y");
  // Rows of zero bytes, or more rows than the file has bytes.
  EXPECT_EQ(choice_text({stored("x", {UINT64_MAX, 0}), stored("y", {UINT64_MAX}, 0)}), "1 whole of x");
}

std::string separate_samples(const std::vector<StoredArray>& arrays) {
  const auto choice = choose_samples(arrays);
  std::string names;
  for (const size_t i : choice->sample_arrays) names += arrays[i].name + " ";
  return names + "but " + std::to_string(choice->left_out_count);
}

TEST(ChooseSamples, SimilarArraysAreOneSampleEach) {
  EXPECT_EQ(separate_samples({stored("arr_0", {9, 8}), stored("arr_10", {9, 8}), stored("arr_2", {9, 8})}),
            "arr_0 arr_2 arr_10 but 0");
  // Arrays of different sizes and the same type belong together if their names are a series.
  EXPECT_EQ(separate_samples({stored("a/img007", {70}, 1, true), stored("a/img7", {90}, 1, true),
                              stored("b/img8", {80}, 1, true), stored("a/img10", {12}, 1, true),
                              stored("a/img11", {12})}),
            "a/img007 a/img7 a/img10 but 2");
  EXPECT_EQ(separate_samples({stored("cat", {9, 8}), stored("ape", {9, 8}), stored("dog", {9, 8}),
                              stored("mean", {5}, 8), stored("stats", {9, 8})}),
            "ape cat dog but 1");
  // In each of these two objects, the arrays are fields of one sample.
  EXPECT_EQ(separate_samples({stored("signal", {9}, 8), stored("time", {9}, 8)}), "but 1");
  EXPECT_EQ(separate_samples({stored("x0", {9, 8}), stored("x1", {9, 8}, 8)}), "but 1");
  // Labels and offsets decide what the samples are. Arrays next to a single label belong to its sample.
  EXPECT_EQ(separate_samples({stored("x0", {9, 8}), stored("x1", {9, 8}), labels("label", {1})}), "but 0");
  EXPECT_EQ(separate_samples({stored("x0", {9, 8}), stored("x1", {9, 8}), labels("label", {9})}), "but 0");
  EXPECT_EQ(separate_samples(
                {stored("x0", {9}), labels("x0_offsets", {3}), stored("x1", {9}), labels("x1_offsets", {3})}),
            "but 0");
  EXPECT_EQ(
      separate_samples({stored("x", {9, 8}), labels("label", {9}), stored("w", {9}), stored("names", {4})}),
      "but 1");
}

TEST(ChooseSamples, LabelsAreThoseOfTheirGroup) {
  EXPECT_EQ(choice_text({stored("train/x", {20, 4, 4}), labels("train/y", {20}), stored("val/x", {8, 4, 4}),
                         labels("val/y", {8})}),
            "20 rows of train/x by train/y");
  EXPECT_EQ(choice_text({stored("train/x", {20, 4, 4}), labels("train/y", {20}), stored("val/x", {20, 4, 4}),
                         labels("val/y", {20})}),
            "20 rows of train/x by train/y");
  EXPECT_EQ(choice_text({stored("train/x", {20, 4, 4}), stored("val/x", {8, 4, 4}), labels("val/y", {20})}),
            "20 rows of train/x");
  EXPECT_EQ(choice_text({stored("img_0/data", {4, 4}), labels("img_0/label", {}),
                         stored("img_1/data", {4, 4}), labels("img_1/label", {})}),
            "1 whole of img_0/data by img_0/label");
  EXPECT_EQ(choice_text({stored("a/b/x", {5, 2}), labels("label", {5})}), "5 rows of a/b/x by label");
  EXPECT_EQ(choice_text({stored("a/b/x", {5, 2}), labels("a/y", {5}), labels("label", {5})}),
            "5 rows of a/b/x by a/y");
}

TEST(ChooseSamples, TheSplitInANameIsAGroup) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"x_train", "y_train", "x_test", "y_test"},
        {"train_images", "train_labels", "val_images", "val_labels"},
        {"a/training_x", "a/training_label", "a/dev_x", "a/dev_label"}}) {
    const std::vector<StoredArray> arrays{stored(names[2], {9, 4, 4}), labels(names[3], {9, 1}),
                                          stored(names[0], {60, 4, 4}), labels(names[1], {60, 1})};
    EXPECT_EQ(choice_text(arrays), "60 rows of " + names[0] + " by " + names[1]);
    EXPECT_EQ(choose_samples(arrays)->left_out_count, 2U);
  }
  EXPECT_EQ(
      choice_text({stored("x_train", {9}, 1, true), labels("x_train_offsets", {4}), labels("y_train", {3})}),
      "3 ranges of x_train by y_train");
  EXPECT_EQ(choice_text({stored("trainer_x", {9, 4}), stored("my_y", {9})}), "9 rows of trainer_x");
}

TEST(ChooseSamples, LabelsThatAreNotReadAreNamed) {
  for (const bool are_integers : {false, true}) {
    const auto choice = choose_samples(
        std::vector{stored("w", {6}), stored("x", {6, 4, 5}), stored("y", {6, 10}, 4, are_integers)});
    EXPECT_EQ(choice->samples, 6U);
    EXPECT_EQ(choice->left_out_count, 1U);
    EXPECT_TRUE(choice->labels_have_several_numbers && *choice->first_left_out == 2);
  }
}

std::string left_out_text(const std::vector<StoredArray>& arrays) {
  const auto choice = choose_samples(arrays);
  return std::to_string(choice->left_out_count) +
         (choice->first_left_out ? " from " + arrays[*choice->first_left_out].name : "") +
         (choice->labels_do_not_fit ? " that do not fit" : "");
}

TEST(ChooseSamples, ArraysThatBelongToNoSampleAreCountedAndNamed) {
  // val/x has its own labels, so it is no field of the samples of train/x, even with as many rows as train/x
  for (const uint64_t rows : {8U, 20U})
    EXPECT_EQ(left_out_text({stored("train/x", {20, 4, 4}, 8), labels("train/y", {20}),
                             stored("val/x", {rows, 4}), labels("val/y", {rows}), stored("val/stats", {3})}),
              "2 from val/x");
  EXPECT_EQ(left_out_text({stored("0/image", {4, 4}), labels("0/label", {}), stored("0/mask", {4, 4}),
                           labels("1/label", {}), stored("1/image", {4, 4})}),
            "2 from 1/label");
  EXPECT_EQ(left_out_text({stored("a", {9}), labels("a_offsets", {3}), labels("label", {2}),
                           stored("b/a", {9}), labels("b/a_offsets", {3}), labels("b/label", {2})}),
            "3 from b/a");
  // A series of arrays is not taken as several fields of one sample.
  EXPECT_EQ(left_out_text({labels("label", {}), stored("img0", {4, 4}), stored("img1", {4, 3}),
                           stored("img2", {4, 4}), stored("factor", {})}),
            "2 from img1");
  EXPECT_EQ(left_out_text({stored("cat", {4, 4}), stored("ape", {4, 4}), labels("labels", {2})}),
            "2 from labels that do not fit");
  EXPECT_EQ(left_out_text({stored("x", {10, 4, 4}), labels("label", {7})}), "1 from label that do not fit");
  EXPECT_EQ(left_out_text({stored("w", {10}), stored("x", {10, 4, 4}), labels("label", {7, 1})}),
            "1 from label that do not fit");
  EXPECT_EQ(left_out_text({stored("x", {9}), labels("x_offsets", {4}), labels("label", {2})}),
            "1 from label that do not fit");
  EXPECT_EQ(left_out_text({stored("x", {6}), labels("y", {6})}), "1 from y that do not fit");
  EXPECT_EQ(left_out_text({stored("x", {6, 4}), stored("y", {6})}), "1 from y") << "no integers";
  EXPECT_EQ(left_out_text({stored("x", {6, 4}), stored("y", {6}), stored("label", {6})}), "2 from y")
      << "the first is named";
  // Label arrays that are fields: some numbers of a signal, one for each column or for each pixel, or
  // targets.
  EXPECT_EQ(left_out_text({stored("x", {100}), labels("label", {7})}), "0");
  EXPECT_EQ(left_out_text({stored("x", {10, 7, 4}), labels("label", {7})}), "0");
  EXPECT_EQ(left_out_text({stored("x", {10, 4, 4}), labels("label", {2, 4})}), "0");
  EXPECT_EQ(left_out_text({stored("x", {10, 4, 4}), stored("y", {7})}), "0");
  EXPECT_EQ(left_out_text({stored("x", {9, 1, 1}), labels("y", {8, 1, 1}), labels("y_offsets", {3})}), "0");
}

}  // namespace
}  // namespace penstock
