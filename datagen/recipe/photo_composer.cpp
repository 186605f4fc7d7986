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

constexpr std::size_t kJfifBytes = 20;     // start of image and the JFIF segment; comments may follow
constexpr std::size_t kSampleDigits = 20;  // of the largest sample number
constexpr std::size_t kCommentHead = 4;
constexpr std::array kEndOfImage{std::byte{0xff}, std::byte{0xd9}};
constexpr std::uint32_t kLines = 16;
constexpr std::uint32_t kMostRows = 65500 / kLines;
constexpr double kSizeTolerance = 0.003;
constexpr int kTries = 32;

// Rounds a width to one of those that pictures have: two steps per octave, around ImageNet's 500. Few widths
// are used because each pair of width and quantizer needs its own stock of strips. The picture's height
// compensates for the rounding.
std::uint32_t rounded_width(std::uint32_t width) {
  constexpr double kStep = 1.4142;
  constexpr double kHalfStep = 1.1892;
  double step = 500;
  while (step * kHalfStep < width) step *= kStep;
  while (step > 20 && step > kHalfStep * width) step /= kStep;
  return static_cast<std::uint32_t>(std::floor(step + 0.5));
}

// The quantizers that pictures have. `bytes_per_pixel` is the average over pictures of the scenery. The
// picture's height compensates for its own difference.
struct Quantizer {
  int percent;
  double bytes_per_pixel;
};
constexpr std::array<Quantizer, 7> kQuantizers{
    {{2, 0.93}, {5, 0.73}, {11, 0.545}, {24, 0.36}, {48, 0.232}, {104, 0.145}, {192, 0.096}}};

int quantizer_percent(double bytes_per_pixel) {
  const Quantizer* best = kQuantizers.data();
  for (const Quantizer& candidate : kQuantizers) {
    const auto distance = [&](double density) {
      return std::max(density / bytes_per_pixel, bytes_per_pixel / density);
    };
    if (distance(candidate.bytes_per_pixel) < distance(best->bytes_per_pixel)) best = &candidate;
  }
  return best->percent;
}

void put_number(std::byte* at, std::size_t number) {
  at[0] = static_cast<std::byte>(number >> 8U);
  at[1] = static_cast<std::byte>(number & 0xffU);
}

}  // namespace

PhotoComposer::PhotoComposer(const StripStock& stock, RandomStream samples, PhotoSizes sizes,
                             std::string_view name)
    : stock_(stock), samples_(samples), sizes_(sizes), comment_(name) {
  comment_ += ", sample ";
  comment_digits_ = comment_.size();
  comment_.resize(comment_digits_ + kSampleDigits, ' ');
}

PhotoComposer::ChecksummedField::ChecksummedField(std::span<const std::byte> header, std::size_t where,
                                                  std::size_t bytes)
    : at(where),
      size(bytes),
      crc(crc32c(header.subspan(at, size))),
      power(crc32c_power(header.size() - at - size)) {}

// A CRC is linear. If bytes change but not their number, the checksum changes by the CRC of the difference,
// shifted over all bytes after them.
void PhotoComposer::ChecksummedField::update_checksum(std::span<const std::byte> header,
                                                      std::uint32_t& header_crc) {
  const std::uint32_t now = crc32c(header.subspan(at, size));
  header_crc ^= crc32c_shift(now ^ crc, power);
  crc = now;
}

Result<PhotoComposer::ClassCopy*> PhotoComposer::class_copy(std::uint32_t width, int percent) {
  for (const std::unique_ptr<ClassCopy>& known : classes_)
    if (known->stock->width == width && known->percent == percent) return known.get();
  PENSTOCK_ASSIGN(const StripClass* const stock, stock_.get(width, percent));
  auto copy = std::make_unique<ClassCopy>();
  copy->stock = stock;
  copy->percent = percent;
  copy->bytes = stock->bytes;
  copy->used.resize(stock->strips.size());
  for (const Strip& strip : stock->strips) {
    copy->first_word.push_back(static_cast<std::uint32_t>(copy->flipped.size()));
    copy->flipped.resize(copy->flipped.size() + (strip.flips + 63) / 64);
    copy->crcs.push_back(strip.crc32c);
  }
  const std::size_t segment = kCommentHead + comment_.size();
  copy->header = stock->header;
  copy->header.insert(copy->header.begin() + kJfifBytes, segment, std::byte{});
  copy->height_at = stock->height_at + segment;
  std::byte* const comment = copy->header.data() + kJfifBytes;
  comment[0] = std::byte{0xff};
  comment[1] = std::byte{0xfe};
  put_number(comment + 2, segment - 2);
  std::memcpy(comment + kCommentHead, comment_.data(), comment_.size());
  copy->header_crc = crc32c(copy->header);
  copy->number = ChecksummedField(copy->header, kJfifBytes + kCommentHead + comment_digits_, kSampleDigits);
  copy->height = ChecksummedField(copy->header, copy->height_at, 2);
  classes_.push_back(std::move(copy));
  return classes_.back().get();
}

// The first whole strip from `first` on that the current sample does not have yet. The search wraps around.
// Returns `first` if the sample has all of them.
std::uint32_t PhotoComposer::next_unused(const ClassCopy& copy, std::uint32_t first) const {
  const auto whole_strips = static_cast<std::uint32_t>(copy.stock->whole_strips);
  for (std::uint32_t i = 0; i < whole_strips; ++i) {
    const std::uint32_t strip_index = first + i < whole_strips ? first + i : first + i - whole_strips;
    if (!copy.used[strip_index]) return strip_index;
  }
  return first;
}

// The strip whose size is closest to `bytes`, among those that the current sample does not have yet.
std::uint32_t PhotoComposer::closest_strip(const ClassCopy& copy, double bytes) const {
  const std::vector<std::uint32_t>& by_size = copy.stock->by_size;
  const auto size = [&](std::size_t i) { return static_cast<double>(copy.stock->sizes[i]); };
  const std::size_t count = by_size.size();
  std::size_t above = 0;
  for (std::size_t step = std::bit_floor(count); step != 0; step /= 2)
    if (above + step <= count && size(above + step - 1) < bytes) above += step;
  std::size_t below = above;
  while (above < count && copy.used[by_size[above]]) ++above;
  while (below > 0 && copy.used[by_size[below - 1]]) --below;
  if (above == count && below == 0) return by_size[std::min(above, count - 1)];
  if (above == count) return by_size[below - 1];
  if (below == 0) return by_size[above];
  return size(above) - bytes < bytes - size(below - 1) ? by_size[above] : by_size[below - 1];
}

// Adds random whole strips while more than two of the largest still fit. Then fills the rest with one strip,
// or with a strip and an end: tries several, and takes those that fit best.
void PhotoComposer::choose_strips(ClassCopy& copy, Draws& draws, double target_bytes) {
  const StripClass& stock = *copy.stock;
  const auto bytes_of = [&](std::uint32_t strip_index) {
    return static_cast<double>(stock.strips[strip_index].bytes);
  };
  const double largest = bytes_of(stock.by_size.back());
  double bytes_left = target_bytes - static_cast<double>(copy.header.size() + kEndOfImage.size());
  std::uint32_t rows = 0;
  chosen_.clear();
  const auto take = [&](std::uint32_t strip_index) {
    chosen_.push_back(strip_index);
    copy.used[strip_index] = true;
    rows += stock.strips[strip_index].rows;
  };
  const auto random_unused_strip = [&] {
    return next_unused(
        copy, static_cast<std::uint32_t>(draws.between(0, static_cast<int>(stock.whole_strips) - 1)));
  };
  while (bytes_left > 2 * largest && rows + 3 * strip_rows(stock.width) <= kMostRows) {
    take(random_unused_strip());
    bytes_left -= bytes_of(chosen_.back());
  }
  // One strip may be enough.
  std::optional<std::uint32_t> strip;
  std::uint32_t end = closest_strip(copy, bytes_left);
  double error_bytes = std::abs(bytes_left - bytes_of(end));
  for (int i = 0; i < kTries && error_bytes > kSizeTolerance * target_bytes; ++i) {
    const std::uint32_t strip_index = random_unused_strip();
    const bool was_used = copy.used[strip_index];
    copy.used[strip_index] = true;
    const double left = bytes_left - bytes_of(strip_index);
    const std::uint32_t last = closest_strip(copy, left);
    copy.used[strip_index] = was_used;
    if (std::abs(left - bytes_of(last)) >= error_bytes) continue;
    error_bytes = std::abs(left - bytes_of(last));
    strip = strip_index;
    end = last;
  }
  if (strip) take(*strip);
  take(end);
}

void PhotoComposer::put_header(ClassCopy& copy, std::uint64_t index, std::uint32_t height) {
  char* const digits =
      reinterpret_cast<char*>(copy.header.data()) + kJfifBytes + kCommentHead + comment_digits_;
  const char* const end = std::to_chars(digits, digits + kSampleDigits, index).ptr;
  std::memset(digits + (end - digits), ' ', kSampleDigits - static_cast<std::size_t>(end - digits));
  put_number(copy.header.data() + copy.height_at, height);
  copy.number.update_checksum(copy.header, copy.header_crc);
  copy.height.update_checksum(copy.header, copy.header_crc);
  pieces_.emplace_back(copy.header);
  field_.bytes = copy.header.size();
  field_.crc32c = copy.header_crc;
}

// The memory for the strip's bytes: their place in the class, or a copy if the picture already contains the
// strip.
std::span<std::byte> PhotoComposer::memory_for(ClassCopy& copy, const Strip& strip, bool is_repeated) {
  const std::span<std::byte> here(copy.bytes.data() + strip.begin, strip.bytes);
  if (!is_repeated) return here;
  if (copies_used_ == copies_.size()) copies_.emplace_back();
  std::vector<std::byte>& repeated = copies_[copies_used_++];
  repeated.assign(here.begin(), here.end());
  return repeated;
}

// Draws the random bits for each strip of the sample. The bytes to change are in no cache, so they are
// prefetched all at once.
void PhotoComposer::draw_bits(ClassCopy& copy, RandomStream bits) {
  std::uint64_t draw = 0;
  changed_bits_.clear();
  is_repeated_.clear();
  for (const std::uint32_t strip_index : chosen_) {
    const Strip& strip = copy.stock->strips[strip_index];
    const std::span edges(copy.stock->edges.data() + strip.first_edge, strip.edges);
    for (const std::uint32_t at : edges) __builtin_prefetch(&copy.bytes[strip.begin + at], 1);
    // The first use still finds the mark, which the next statement clears. So each later use is a repeat.
    is_repeated_.push_back(!copy.used[strip_index]);
    copy.used[strip_index] = false;
    for (std::uint32_t first = 0; first < strip.flips; first += 64) {
      const std::uint32_t left = strip.flips - first;
      std::uint64_t& state = copy.flipped[copy.first_word[strip_index] + first / 64];
      const std::uint64_t flips = bits.bits(draw++) >> (left < 64 ? 64 - left : 0);
      changed_bits_.push_back(flips ^ state);
      if (!is_repeated_.back()) state = flips;
    }
  }
}

// `changed`: one bit per flip of this strip, 64 per word.
void PhotoComposer::put_strip(ClassCopy& copy, std::size_t chosen_index, const std::uint64_t* changed) {
  const std::uint32_t strip_index = chosen_[chosen_index];
  const Strip& strip = copy.stock->strips[strip_index];
  const std::span<std::byte> bytes = memory_for(copy, strip, is_repeated_[chosen_index]);
  std::uint32_t crc = copy.crcs[strip_index];
  for (std::uint32_t first = 0; first < strip.flips; first += 64) {
    const Flip* const flips = copy.stock->flips.data() + strip.first_flip + first;
    for (std::uint64_t left = *changed++; left != 0; left &= left - 1) {
      const Flip& flip = flips[std::countr_zero(left)];
      bytes[flip.at()] ^= flip.mask();
      crc ^= flip.crc32c;
    }
  }
  if (!is_repeated_[chosen_index]) copy.crcs[strip_index] = crc;
  field_.crc32c = crc32c_shift(*field_.crc32c, strip.power) ^ crc;
  field_.bytes += bytes.size();
  pieces_.emplace_back(bytes);
}

Result<std::span<const FieldBytes>> PhotoComposer::make(std::uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  const PhotoShape shape = draw_photo_shape(draws, sizes_, target_bytes);
  PENSTOCK_ASSIGN(ClassCopy* const copy,
                  class_copy(rounded_width(shape.width), quantizer_percent(target_bytes / shape.pixels())));
  choose_strips(*copy, draws, target_bytes);
  std::uint32_t rows = 0;
  for (const std::uint32_t strip_index : chosen_) rows += copy->stock->strips[strip_index].rows;
  pieces_.clear();
  copies_used_ = 0;
  draw_bits(*copy, sample.substream(2));
  put_header(*copy, index, rows * kLines - static_cast<std::uint32_t>(draws.between(0, kLines - 1)));
  const std::uint64_t* changed = changed_bits_.data();
  for (std::size_t chosen_index = 0; chosen_index < chosen_.size(); ++chosen_index) {
    put_strip(*copy, chosen_index, changed);
    changed += (copy->stock->strips[chosen_[chosen_index]].flips + 63) / 64;
  }
  field_.crc32c = crc32c_portable(kEndOfImage, *field_.crc32c);  // the table version is faster for two bytes
  field_.bytes += kEndOfImage.size();
  pieces_.emplace_back(kEndOfImage);
  field_.pieces = pieces_;
  return std::span<const FieldBytes>(&field_, 1);
}

}  // namespace penstock
