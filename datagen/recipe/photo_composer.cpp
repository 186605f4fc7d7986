#include "datagen/recipe/photo_composer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

namespace penstock {
namespace {

// size of the start-of-image marker and the JFIF segment, after which comments may follow
constexpr size_t kJfifBytes = 20;
constexpr size_t kSampleDigits = 20;  // digits of the largest sample number
constexpr size_t kCommentHeaderBytes = 4;
constexpr std::array kEndOfImage{std::byte{0xff}, std::byte{0xd9}};
constexpr uint32_t kLinesPerRow = 16;  // lines of pixels in a row of coding units
constexpr uint32_t kMostRows = 65500 / kLinesPerRow;
constexpr double kSizeTolerance = 0.003;
constexpr int kStripTries = 32;

// Rounds a width to one of the few widths that pictures have. Each width is about 1.4 times the next smaller
// one, and one of them is 500, the usual width in ImageNet. The widths are few, because each pair of width
// and quantizer needs a stock of strips of its own. The picture's height is then chosen to give the right
// number of bytes.
uint32_t rounded_width(uint32_t width) {
  constexpr double kStep = 1.4142;
  constexpr double kHalfStep = 1.1892;
  double step = 500;
  while (step * kHalfStep < width) step *= kStep;
  while (step > 20 && step > kHalfStep * width) step /= kStep;
  return uint32_t(std::floor(step + 0.5));
}

// One of the few quantizers that pictures have. `bytes_per_pixel` is the average over pictures of the
// scenery. A picture with fewer bytes per pixel than this gets more rows, so that its size is right; one with
// more gets fewer rows.
struct Quantizer {
  int percent;
  double bytes_per_pixel;
};
constexpr std::array<Quantizer, 7> kQuantizers{
    {{2, 0.93}, {5, 0.73}, {11, 0.545}, {24, 0.36}, {48, 0.232}, {104, 0.145}, {192, 0.096}}};

int quantizer_percent(double bytes_per_pixel) {
  const Quantizer* nearest = kQuantizers.data();
  for (const Quantizer& candidate : kQuantizers) {
    const auto distance = [&](double density) {
      return std::max(density / bytes_per_pixel, bytes_per_pixel / density);
    };
    if (distance(candidate.bytes_per_pixel) < distance(nearest->bytes_per_pixel)) nearest = &candidate;
  }
  return nearest->percent;
}

void put_number(std::byte* at, size_t number) {
  at[0] = static_cast<std::byte>(number >> 8U);
  at[1] = static_cast<std::byte>(number & 0xffU);
}

}  // namespace

PhotoComposer::PhotoComposer(const StripStock& stock, RandomStream samples, PhotoSizes sizes,
                             std::string_view name)
    : stock_(stock), samples_(samples), sizes_(sizes), comment_(name) {
  comment_ += ", sample ";
  number_offset_ = comment_.size();
  comment_.resize(number_offset_ + kSampleDigits, ' ');
}

PhotoComposer::ChecksummedField::ChecksummedField(std::span<const std::byte> header, size_t begin,
                                                  size_t bytes)
    : offset(begin),
      size(bytes),
      crc(crc32c(header.subspan(offset, size))),
      crc_power(crc32c_power(header.size() - offset - size)) {}

// Updates the header's checksum without reading the whole header: replaces the contribution of the old bytes
// by that of the new ones. This is possible because a CRC is linear and the number of bytes stays the same.
// It is enough to shift the CRC of the difference over all bytes after the field.
void PhotoComposer::ChecksummedField::update_checksum(std::span<const std::byte> header,
                                                      uint32_t& header_crc) {
  const uint32_t new_crc = crc32c(header.subspan(offset, size));
  header_crc ^= crc32c_shift(new_crc ^ crc, crc_power);
  crc = new_crc;
}

Result<PhotoComposer::ClassCopy*> PhotoComposer::class_copy(uint32_t width, int percent) {
  for (const std::unique_ptr<ClassCopy>& known : classes_)
    if (known->stock->width == width && known->percent == percent) return known.get();
  PENSTOCK_ASSIGN(const StripClass* const stock, stock_.get(width, percent));
  auto copy = std::make_unique<ClassCopy>();
  copy->stock = stock;
  copy->percent = percent;
  copy->bytes = stock->bytes;
  copy->is_used.resize(stock->strips.size());
  for (const Strip& strip : stock->strips) {
    copy->first_flip_word.push_back(uint32_t(copy->flip_bits.size()));
    copy->flip_bits.resize(copy->flip_bits.size() + (strip.flip_count + 63) / 64);
    copy->strip_crcs.push_back(strip.crc32c);
  }
  const size_t segment_bytes = kCommentHeaderBytes + comment_.size();
  copy->header = stock->header;
  copy->header.insert(copy->header.begin() + kJfifBytes, segment_bytes, std::byte{});
  copy->height_offset = stock->height_offset + segment_bytes;
  std::byte* const comment = copy->header.data() + kJfifBytes;
  comment[0] = std::byte{0xff};
  comment[1] = std::byte{0xfe};
  put_number(comment + 2, segment_bytes - 2);
  std::memcpy(comment + kCommentHeaderBytes, comment_.data(), comment_.size());
  copy->header_crc = crc32c(copy->header);
  copy->number =
      ChecksummedField(copy->header, kJfifBytes + kCommentHeaderBytes + number_offset_, kSampleDigits);
  copy->height = ChecksummedField(copy->header, copy->height_offset, 2);
  classes_.push_back(std::move(copy));
  return classes_.back().get();
}

// Returns the first whole strip that the current sample does not use yet. Searches from number `first` on,
// and continues with strip 0 after the last whole strip. Returns `first` if the sample already uses all whole
// strips.
uint32_t PhotoComposer::next_unused(const ClassCopy& copy, uint32_t first) const {
  const auto whole_strips = uint32_t(copy.stock->whole_strips);
  for (uint32_t i = 0; i < whole_strips; ++i) {
    const uint32_t strip_index = first + i < whole_strips ? first + i : first + i - whole_strips;
    if (!copy.is_used[strip_index]) return strip_index;
  }
  return first;
}

// Among the strips that the current sample does not use yet, returns the one whose size is closest to
// `bytes`. If the sample already uses all strips, returns the largest.
uint32_t PhotoComposer::closest_strip(const ClassCopy& copy, double bytes) const {
  const std::vector<uint32_t>& by_size = copy.stock->by_size;
  const auto size = [&](size_t i) { return double(copy.stock->sorted_sizes[i]); };
  const size_t count = by_size.size();
  size_t above = 0;
  for (size_t step = std::bit_floor(count); step != 0; step /= 2)
    if (above + step <= count && size(above + step - 1) < bytes) above += step;
  size_t below = above;
  while (above < count && copy.is_used[by_size[above]]) ++above;
  while (below > 0 && copy.is_used[by_size[below - 1]]) --below;
  if (above == count && below == 0) return by_size[std::min(above, count - 1)];
  if (above == count) return by_size[below - 1];
  if (below == 0) return by_size[above];
  return size(above) - bytes < bytes - size(below - 1) ? by_size[above] : by_size[below - 1];
}

// Chooses the strips of the current sample. First adds random whole strips, as long as more than two of the
// largest strips fit and the height stays below the limit of JPEG. Then fills the rest with a single strip,
// or with a whole strip and a last strip. Tries up to kStripTries such pairs, and takes what fits best.
void PhotoComposer::choose_strips(ClassCopy& copy, Draws& draws, double target_bytes) {
  const StripClass& stock = *copy.stock;
  const auto bytes_of = [&](uint32_t strip_index) { return double(stock.strips[strip_index].bytes); };
  const double largest_bytes = bytes_of(stock.by_size.back());
  double bytes_left = target_bytes - double(copy.header.size() + kEndOfImage.size());
  uint32_t rows = 0;
  chosen_strips_.clear();
  const auto take = [&](uint32_t strip_index) {
    chosen_strips_.push_back(strip_index);
    copy.is_used[strip_index] = true;
    rows += stock.strips[strip_index].rows;
  };
  const auto random_unused_strip = [&] {
    return next_unused(copy, uint32_t(draws.between(0, int(stock.whole_strips) - 1)));
  };
  while (bytes_left > 2 * largest_bytes && rows + 3 * strip_rows(stock.width) <= kMostRows) {
    take(random_unused_strip());
    bytes_left -= bytes_of(chosen_strips_.back());
  }
  // First tries to fill the rest with a single strip, which may be close enough.
  std::optional<uint32_t> best_whole_strip;
  uint32_t best_last_strip = closest_strip(copy, bytes_left);
  double error_bytes = std::abs(bytes_left - bytes_of(best_last_strip));
  for (int i = 0; i < kStripTries && error_bytes > kSizeTolerance * target_bytes; ++i) {
    const uint32_t strip_index = random_unused_strip();
    const bool was_used = copy.is_used[strip_index];
    copy.is_used[strip_index] = true;
    const double rest_bytes = bytes_left - bytes_of(strip_index);
    const uint32_t last_strip = closest_strip(copy, rest_bytes);
    copy.is_used[strip_index] = was_used;
    if (std::abs(rest_bytes - bytes_of(last_strip)) >= error_bytes) continue;
    error_bytes = std::abs(rest_bytes - bytes_of(last_strip));
    best_whole_strip = strip_index;
    best_last_strip = last_strip;
  }
  if (best_whole_strip) take(*best_whole_strip);
  take(best_last_strip);
}

void PhotoComposer::put_header(ClassCopy& copy, uint64_t index, uint32_t height) {
  char* const digits =
      reinterpret_cast<char*>(copy.header.data()) + kJfifBytes + kCommentHeaderBytes + number_offset_;
  const char* const end = std::to_chars(digits, digits + kSampleDigits, index).ptr;
  std::memset(digits + (end - digits), ' ', kSampleDigits - size_t(end - digits));
  put_number(copy.header.data() + copy.height_offset, height);
  copy.number.update_checksum(copy.header, copy.header_crc);
  copy.height.update_checksum(copy.header, copy.header_crc);
  pieces_.emplace_back(copy.header);
  field_.bytes = copy.header.size();
  field_.crc32c = copy.header_crc;
}

// Returns the memory in which the strip's bytes may be changed. Normally these are the strip's bytes in the
// ClassCopy. If the picture already contains the strip, the function makes one more copy of the bytes.
std::span<std::byte> PhotoComposer::memory_for(ClassCopy& copy, const Strip& strip, bool is_repeated) {
  const std::span<std::byte> own_bytes(copy.bytes.data() + strip.begin, strip.bytes);
  if (!is_repeated) return own_bytes;
  if (copies_used_ == strip_copies_.size()) strip_copies_.emplace_back();
  std::vector<std::byte>& repeated_bytes = strip_copies_[copies_used_++];
  repeated_bytes.assign(own_bytes.begin(), own_bytes.end());
  return repeated_bytes;
}

// Draws a random bit for each flip of each strip of the sample, and finds out which bits must change. Also
// prefetches all bytes that may change, because no processor cache has them yet.
void PhotoComposer::draw_bits(ClassCopy& copy, RandomStream bits) {
  uint64_t draw_count = 0;
  changed_bits_.clear();
  is_repeated_.clear();
  for (const uint32_t strip_index : chosen_strips_) {
    const Strip& strip = copy.stock->strips[strip_index];
    const std::span edges(copy.stock->edges.data() + strip.first_edge, strip.edge_count);
    for (const uint32_t at : edges) __builtin_prefetch(&copy.bytes[strip.begin + at], 1);
    // Finds out whether the picture already contains the strip. choose_strips() has set is_used for each
    // chosen strip, and the first use of a strip here clears it. So at a second use it is not set.
    is_repeated_.push_back(!copy.is_used[strip_index]);
    copy.is_used[strip_index] = false;
    for (uint32_t first = 0; first < strip.flip_count; first += 64) {
      const uint32_t left = strip.flip_count - first;
      uint64_t& flipped_bits = copy.flip_bits[copy.first_flip_word[strip_index] + first / 64];
      const uint64_t wanted_bits = bits.bits(draw_count++) >> (left < 64 ? 64 - left : 0);
      changed_bits_.push_back(wanted_bits ^ flipped_bits);
      if (!is_repeated_.back()) flipped_bits = wanted_bits;
    }
  }
}

// Adds the strip chosen_strips_[chosen_index] to the picture. `changed_bits` has one bit per flip of this
// strip, 64 per word. A bit of 1 means that the flip's bit must change.
void PhotoComposer::put_strip(ClassCopy& copy, size_t chosen_index, const uint64_t* changed_bits) {
  const uint32_t strip_index = chosen_strips_[chosen_index];
  const Strip& strip = copy.stock->strips[strip_index];
  const std::span<std::byte> bytes = memory_for(copy, strip, is_repeated_[chosen_index]);
  uint32_t crc = copy.strip_crcs[strip_index];
  for (uint32_t first = 0; first < strip.flip_count; first += 64) {
    const Flip* const flips = copy.stock->flips.data() + strip.first_flip + first;
    for (uint64_t bits_left = *changed_bits++; bits_left != 0; bits_left &= bits_left - 1) {
      const Flip& flip = flips[std::countr_zero(bits_left)];
      bytes[flip.at()] ^= flip.mask();
      crc ^= flip.crc32c;
    }
  }
  if (!is_repeated_[chosen_index]) copy.strip_crcs[strip_index] = crc;
  field_.crc32c = crc32c_shift(*field_.crc32c, strip.crc_power) ^ crc;
  field_.bytes += bytes.size();
  pieces_.emplace_back(bytes);
}

Result<std::span<const FieldBytes>> PhotoComposer::make(uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  const PhotoShape shape = draw_photo_shape(draws, sizes_, target_bytes);
  PENSTOCK_ASSIGN(ClassCopy* const copy,
                  class_copy(rounded_width(shape.width), quantizer_percent(target_bytes / shape.pixels())));
  choose_strips(*copy, draws, target_bytes);
  uint32_t rows = 0;
  for (const uint32_t strip_index : chosen_strips_) rows += copy->stock->strips[strip_index].rows;
  pieces_.clear();
  copies_used_ = 0;
  draw_bits(*copy, sample.substream(2));
  put_header(*copy, index, rows * kLinesPerRow - uint32_t(draws.between(0, kLinesPerRow - 1)));
  const uint64_t* changed_bits = changed_bits_.data();
  for (size_t chosen_index = 0; chosen_index < chosen_strips_.size(); ++chosen_index) {
    put_strip(*copy, chosen_index, changed_bits);
    changed_bits += (copy->stock->strips[chosen_strips_[chosen_index]].flip_count + 63) / 64;
  }
  // For only two bytes, the tables of crc32c_portable() are faster than crc32c().
  field_.crc32c = crc32c_portable(kEndOfImage, *field_.crc32c);
  field_.bytes += kEndOfImage.size();
  pieces_.emplace_back(kEndOfImage);
  field_.pieces = pieces_;
  return std::span<const FieldBytes>(&field_, 1);
}

}  // namespace penstock
