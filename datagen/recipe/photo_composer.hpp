// Makes JPEG pictures that resemble photographs, of given sizes and at the speed of memory, by joining
// encoded strips.
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

// Makes one field: a baseline JPEG with 4:2:0, mostly within 1% of photo_bytes(), with its checksum. Its
// pieces are not copied. No two samples have the same strip with the same bits. A comment in the JPEG names
// the sample. Each composer has its own copy of the strips that it uses (some MiB), because it flips bits in
// them. The stock must outlive it.
class PhotoComposer final : public SampleMaker {
 public:
  // `name`: the data set's name for the comment, such as "imagenet, seed 7".
  PhotoComposer(const StripStock& stock, RandomStream samples, PhotoSizes sizes, std::string_view name);

  Result<std::span<const FieldBytes>> make(std::uint64_t index) override;

 private:
  // Bytes of a header that differ between samples. update_checksum() updates the checksum of the header after
  // they change.
  struct ChecksummedField {
    ChecksummedField() = default;
    ChecksummedField(std::span<const std::byte> header, std::size_t where, std::size_t bytes);
    void update_checksum(std::span<const std::byte> header, std::uint32_t& header_crc);
    std::size_t at = 0;
    std::size_t size = 0;
    std::uint32_t crc = 0;    // of these bytes alone
    std::uint32_t power = 0;  // crc32c_power() of the bytes after them
  };

  // This composer's copy of a class, as the last sample left it.
  struct ClassCopy {
    const StripClass* stock = nullptr;
    int percent = 0;
    std::vector<std::byte> header;  // with the comment
    std::size_t height_at = 0;
    std::uint32_t header_crc = 0;
    ChecksummedField number;  // number of the sample, in the comment
    ChecksummedField height;
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> flipped;     // one bit per flip, by strip
    std::vector<std::uint32_t> first_word;  // index in `flipped`, one per strip
    std::vector<std::uint32_t> crcs;        // one per strip, with its flips
    std::vector<bool> used;                 // one per strip: used by the current sample
  };

  Result<ClassCopy*> class_copy(std::uint32_t width, int percent);
  void choose_strips(ClassCopy& copy, Draws& draws, double target_bytes);
  std::uint32_t closest_strip(const ClassCopy& copy, double bytes) const;
  std::uint32_t next_unused(const ClassCopy& copy, std::uint32_t first) const;
  void put_header(ClassCopy& copy, std::uint64_t index, std::uint32_t height);
  void draw_bits(ClassCopy& copy, RandomStream bits);
  void put_strip(ClassCopy& copy, std::size_t chosen_index, const std::uint64_t* changed);
  std::span<std::byte> memory_for(ClassCopy& copy, const Strip& strip, bool is_repeated);

  const StripStock& stock_;
  const RandomStream samples_;
  const PhotoSizes sizes_;
  std::string comment_;
  std::size_t comment_digits_;  // offset of the sample's number in the comment
  std::vector<std::unique_ptr<ClassCopy>> classes_;
  std::vector<std::uint32_t> chosen_;        // strips of the current sample
  std::vector<bool> is_repeated_;            // one per chosen strip: the picture already contains it
  std::vector<std::uint64_t> changed_bits_;  // one bit per flip of a strip
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::vector<std::byte>> copies_;  // copies of strips that a picture contains more than once
  std::size_t copies_used_ = 0;
  FieldBytes field_;
};

}  // namespace penstock
