// Makes photographs' look-alikes of wanted sizes at the speed of memory: composed of encoded strips.
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

// One field: a baseline JPEG of 4:2:0, mostly within 1% of photo_bytes(), with its checksum, in pieces that
// are not copied. No two samples have the same strips with the same bits; a comment names the sample. Each
// maker keeps the strips that it uses (some MiB), to flip bits in; the stock must outlive it.
class PhotoComposer final : public SampleMaker {
 public:
  // `name`: of the data set, for the comment: "imagenet, seed 7".
  PhotoComposer(const StripStock& stock, RandomStream samples, PhotoSizes sizes, std::string_view name);

  Result<std::span<const FieldBytes>> make(std::uint64_t index) override;

 private:
  // Bytes of a header that each sample has others of: the header's checksum follows what they become.
  struct Changing {
    Changing() = default;
    Changing(std::span<const std::byte> header, std::size_t where, std::size_t bytes);
    void follow(std::span<const std::byte> header, std::uint32_t& header_crc);
    std::size_t at = 0;
    std::size_t size = 0;
    std::uint32_t crc = 0;    // of them alone
    std::uint32_t power = 0;  // crc32c_power() of what is behind them
  };

  // This maker's own copy of a class, as its last sample left it.
  struct Own {
    const StripClass* stock = nullptr;
    int percent = 0;
    std::vector<std::byte> header;  // with the comment
    std::size_t height_at = 0;
    std::uint32_t header_crc = 0;
    Changing number;  // of the sample, in the comment
    Changing height;
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> flipped;     // a bit for each flip, by strip
    std::vector<std::uint32_t> first_word;  // of each strip, in `flipped`
    std::vector<std::uint32_t> crcs;        // of each strip, as flipped
    std::vector<bool> used;                 // by the sample at hand
  };

  Result<Own*> own(std::uint32_t width, int percent);
  void choose(Own& own, Draws& draws, double wanted);
  std::uint32_t fitting(const Own& own, double bytes) const;
  std::uint32_t unused(const Own& own, std::uint32_t first) const;
  void put_header(Own& own, std::uint64_t index, std::uint32_t height);
  void draw_bits(Own& own, RandomStream bits);
  void put_strip(Own& own, std::size_t place, const std::uint64_t* changed);
  std::span<std::byte> room(Own& own, const Strip& strip, bool again);

  const StripStock& stock_;
  const RandomStream samples_;
  const PhotoSizes sizes_;
  std::string comment_;
  std::size_t comment_digits_;  // where the sample's number stands
  std::vector<std::unique_ptr<Own>> classes_;
  std::vector<std::uint32_t> chosen_;   // strips of the sample at hand
  std::vector<bool> again_;             // for each of them: the picture has it already
  std::vector<std::uint64_t> changed_;  // a bit for each of their flips
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::vector<std::byte>> copies_;  // of strips that a picture has twice
  std::size_t copies_used_ = 0;
  FieldBytes made_;
};

}  // namespace penstock
