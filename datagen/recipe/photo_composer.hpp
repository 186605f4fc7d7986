// Makes JPEG pictures that resemble photographs and have given sizes. It joins encoded strips of pictures
// (strip_stock.hpp), so it is as fast as memory can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/recipe/photo_sizes.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/strip_stock.hpp"

namespace penstock {

// Makes samples of one field: a baseline JPEG with 4:2:0, with its checksum. Its size is mostly within 1% of
// photo_bytes(). A comment in the JPEG names the sample.
// No two samples have the same strip with the same bits: some bits of a strip are flipped for each sample. So
// each composer has its own copy of the strips that it uses (some MiB). The field refers to this copy; the
// bytes are not copied again. The stock must outlive the composer.
class PhotoComposer final : public SampleMaker {
 public:
  // `name` is the data set's name in the JPEG comment, such as "imagenet, seed 7".
  PhotoComposer(const StripStock& stock, RandomStream samples, PhotoSizes sizes, std::string_view name);

  Result<std::span<const FieldBytes>> make(uint64_t index) override;

 private:
  // Some bytes of a header that differ between samples. When they have changed, update_checksum() updates the
  // checksum of the header.
  struct ChecksummedField {
    ChecksummedField() = default;
    ChecksummedField(std::span<const std::byte> header, size_t begin, size_t bytes);
    void update_checksum(std::span<const std::byte> header, uint32_t& header_crc);
    size_t offset = 0;
    size_t size = 0;
    uint32_t crc = 0;        // checksum of these bytes alone
    uint32_t crc_power = 0;  // crc32c_power(n) for the n bytes of the header after these
  };

  // This composer's copy of a StripClass. Its bits are still flipped as the last sample needed them.
  struct ClassCopy {
    const StripClass* stock = nullptr;
    int percent = 0;
    std::vector<std::byte> header;  // the header, with the comment that names the sample
    size_t height_offset = 0;
    uint32_t header_crc = 0;
    ChecksummedField number;  // the sample's number, in the comment
    ChecksummedField height;
    std::vector<std::byte> bytes;
    // one bit per flip, in the order of strips: whether the flip is applied to `bytes` now
    std::vector<uint64_t> flip_bits;
    std::vector<uint32_t> first_flip_word;  // for each strip: index of its first word in `flip_bits`
    std::vector<uint32_t> strip_crcs;       // checksum of each strip as it is now
    std::vector<bool> is_used;              // whether the current sample uses this strip
  };

  Result<ClassCopy*> class_copy(uint32_t width, int percent);
  void choose_strips(ClassCopy& copy, Draws& draws, double target_bytes);
  uint32_t closest_strip(const ClassCopy& copy, double bytes) const;
  uint32_t next_unused(const ClassCopy& copy, uint32_t first) const;
  void put_header(ClassCopy& copy, uint64_t index, uint32_t height);
  void draw_bits(ClassCopy& copy, RandomStream bits);
  void put_strip(ClassCopy& copy, size_t chosen_index, const uint64_t* changed_bits);
  std::span<std::byte> memory_for(ClassCopy& copy, const Strip& strip, bool is_repeated);

  const StripStock& stock_;
  const RandomStream samples_;
  const PhotoSizes sizes_;
  std::string comment_;
  size_t number_offset_;  // offset of the sample's number in the comment
  std::vector<std::unique_ptr<ClassCopy>> classes_;
  std::vector<uint32_t> chosen_strips_;  // indexes of the strips of the current sample, in order
  std::vector<bool> is_repeated_;        // for each chosen strip: whether the picture contains it already
  std::vector<uint64_t> changed_bits_;   // one bit per flip of each chosen strip: whether its bit must change
  std::vector<std::span<const std::byte>> pieces_;
  // Copies of strips, for a picture that contains a strip more than once.
  std::vector<std::vector<std::byte>> strip_copies_;
  size_t copies_used_ = 0;
  FieldBytes field_;
};

}  // namespace penstock
