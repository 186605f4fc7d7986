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
constexpr double kNear = 0.003;
constexpr int kTries = 32;

// Rounds a width to one of those that pictures have: two steps per octave, around ImageNet's 500. Few widths
// are used because each pair of width and quantizer needs its own stock of strips. The picture's height
// compensates for the rounding.
std::uint32_t step_of_width(std::uint32_t width) {
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

int percent_for(double bytes_per_pixel) {
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

PhotoComposer::Changing::Changing(std::span<const std::byte> header, std::size_t where, std::size_t bytes)
    : at(where),
      size(bytes),
      crc(crc32c(header.subspan(at, size))),
      power(crc32c_power(header.size() - at - size)) {}

// A CRC is linear. If bytes change but not their number, the checksum changes by the CRC of the difference,
// shifted over all bytes after them.
void PhotoComposer::Changing::follow(std::span<const std::byte> header, std::uint32_t& header_crc) {
  const std::uint32_t now = crc32c(header.subspan(at, size));
  header_crc ^= crc32c_shift(now ^ crc, power);
  crc = now;
}

Result<PhotoComposer::Own*> PhotoComposer::own(std::uint32_t width, int percent) {
  for (const std::unique_ptr<Own>& known : classes_)
    if (known->stock->width == width && known->percent == percent) return known.get();
  PENSTOCK_ASSIGN(const StripClass* const stock, stock_.get(width, percent));
  auto made = std::make_unique<Own>();
  made->stock = stock;
  made->percent = percent;
  made->bytes = stock->bytes;
  made->used.resize(stock->strips.size());
  for (const Strip& strip : stock->strips) {
    made->first_word.push_back(static_cast<std::uint32_t>(made->flipped.size()));
    made->flipped.resize(made->flipped.size() + (strip.flips + 63) / 64);
    made->crcs.push_back(strip.crc32c);
  }
  const std::size_t segment = kCommentHead + comment_.size();
  made->header = stock->header;
  made->header.insert(made->header.begin() + kJfifBytes, segment, std::byte{});
  made->height_at = stock->height_at + segment;
  std::byte* const comment = made->header.data() + kJfifBytes;
  comment[0] = std::byte{0xff};
  comment[1] = std::byte{0xfe};
  put_number(comment + 2, segment - 2);
  std::memcpy(comment + kCommentHead, comment_.data(), comment_.size());
  made->header_crc = crc32c(made->header);
  made->number = Changing(made->header, kJfifBytes + kCommentHead + comment_digits_, kSampleDigits);
  made->height = Changing(made->header, made->height_at, 2);
  classes_.push_back(std::move(made));
  return classes_.back().get();
}

// The first full strip from `first` on that the current sample does not have yet. The search wraps around.
// Returns `first` if the sample has all of them.
std::uint32_t PhotoComposer::unused(const Own& own, std::uint32_t first) const {
  const auto full = static_cast<std::uint32_t>(own.stock->full);
  for (std::uint32_t i = 0; i < full; ++i) {
    const std::uint32_t which = first + i < full ? first + i : first + i - full;
    if (!own.used[which]) return which;
  }
  return first;
}

// The strip whose size is closest to `bytes`, among those that the current sample does not have yet.
std::uint32_t PhotoComposer::fitting(const Own& own, double bytes) const {
  const std::vector<std::uint32_t>& by_size = own.stock->by_size;
  const auto size = [&](std::size_t i) { return static_cast<double>(own.stock->sizes[i]); };
  const std::size_t count = by_size.size();
  std::size_t above = 0;
  for (std::size_t step = std::bit_floor(count); step != 0; step /= 2)
    if (above + step <= count && size(above + step - 1) < bytes) above += step;
  std::size_t below = above;
  while (above < count && own.used[by_size[above]]) ++above;
  while (below > 0 && own.used[by_size[below - 1]]) --below;
  if (above == count && below == 0) return by_size[std::min(above, count - 1)];
  if (above == count) return by_size[below - 1];
  if (below == 0) return by_size[above];
  return size(above) - bytes < bytes - size(below - 1) ? by_size[above] : by_size[below - 1];
}

// Adds random full strips while more than two of the largest still fit. Then fills the rest with one strip,
// or with a strip and an end: tries several, and takes those that fit best.
void PhotoComposer::choose(Own& own, Draws& draws, double wanted) {
  const StripClass& stock = *own.stock;
  const auto bytes_of = [&](std::uint32_t which) { return static_cast<double>(stock.strips[which].bytes); };
  const double largest = bytes_of(stock.by_size.back());
  double room = wanted - static_cast<double>(own.header.size() + kEndOfImage.size());
  std::uint32_t rows = 0;
  chosen_.clear();
  const auto take = [&](std::uint32_t which) {
    chosen_.push_back(which);
    own.used[which] = true;
    rows += stock.strips[which].rows;
  };
  const auto any = [&] {
    return unused(own, static_cast<std::uint32_t>(draws.between(0, static_cast<int>(stock.full) - 1)));
  };
  while (room > 2 * largest && rows + 3 * strip_rows(stock.width) <= kMostRows) {
    take(any());
    room -= bytes_of(chosen_.back());
  }
  // One strip may be enough.
  std::optional<std::uint32_t> strip;
  std::uint32_t end = fitting(own, room);
  double off = std::abs(room - bytes_of(end));
  for (int i = 0; i < kTries && off > kNear * wanted; ++i) {
    const std::uint32_t which = any();
    const bool had = own.used[which];
    own.used[which] = true;
    const double left = room - bytes_of(which);
    const std::uint32_t behind = fitting(own, left);
    own.used[which] = had;
    if (std::abs(left - bytes_of(behind)) >= off) continue;
    off = std::abs(left - bytes_of(behind));
    strip = which;
    end = behind;
  }
  if (strip) take(*strip);
  take(end);
}

void PhotoComposer::put_header(Own& own, std::uint64_t index, std::uint32_t height) {
  char* const digits =
      reinterpret_cast<char*>(own.header.data()) + kJfifBytes + kCommentHead + comment_digits_;
  const char* const end = std::to_chars(digits, digits + kSampleDigits, index).ptr;
  std::memset(digits + (end - digits), ' ', kSampleDigits - static_cast<std::size_t>(end - digits));
  put_number(own.header.data() + own.height_at, height);
  own.number.follow(own.header, own.header_crc);
  own.height.follow(own.header, own.header_crc);
  pieces_.emplace_back(own.header);
  made_.bytes = own.header.size();
  made_.crc32c = own.header_crc;
}

// The memory for the strip's bytes: their place in the class, or a copy if the picture already contains the
// strip.
std::span<std::byte> PhotoComposer::room(Own& own, const Strip& strip, bool again) {
  const std::span<std::byte> here(own.bytes.data() + strip.begin, strip.bytes);
  if (!again) return here;
  if (copies_used_ == copies_.size()) copies_.emplace_back();
  std::vector<std::byte>& copy = copies_[copies_used_++];
  copy.assign(here.begin(), here.end());
  return copy;
}

// Draws the random bits for each strip of the sample. The bytes to change are in no cache, so they are
// prefetched all at once.
void PhotoComposer::draw_bits(Own& own, RandomStream bits) {
  std::uint64_t draw = 0;
  changed_.clear();
  again_.clear();
  for (const std::uint32_t which : chosen_) {
    const Strip& strip = own.stock->strips[which];
    const std::span edges(own.stock->edges.data() + strip.first_edge, strip.edges);
    for (const std::uint32_t at : edges) __builtin_prefetch(&own.bytes[strip.begin + at], 1);
    again_.push_back(!own.used[which]);  // clears the mark of the strip's first use
    own.used[which] = false;
    for (std::uint32_t first = 0; first < strip.flips; first += 64) {
      const std::uint32_t left = strip.flips - first;
      std::uint64_t& state = own.flipped[own.first_word[which] + first / 64];
      const std::uint64_t wanted = bits.bits(draw++) >> (left < 64 ? 64 - left : 0);
      changed_.push_back(wanted ^ state);
      if (!again_.back()) state = wanted;
    }
  }
}

// `changed`: one bit per flip of this strip, 64 per word.
void PhotoComposer::put_strip(Own& own, std::size_t place, const std::uint64_t* changed) {
  const std::uint32_t which = chosen_[place];
  const Strip& strip = own.stock->strips[which];
  const std::span<std::byte> bytes = room(own, strip, again_[place]);
  std::uint32_t crc = own.crcs[which];
  for (std::uint32_t first = 0; first < strip.flips; first += 64) {
    const Flip* const flips = own.stock->flips.data() + strip.first_flip + first;
    for (std::uint64_t left = *changed++; left != 0; left &= left - 1) {
      const Flip& flip = flips[std::countr_zero(left)];
      bytes[flip.at()] ^= flip.mask();
      crc ^= flip.crc32c;
    }
  }
  if (!again_[place]) own.crcs[which] = crc;
  made_.crc32c = crc32c_shift(*made_.crc32c, strip.power) ^ crc;
  made_.bytes += bytes.size();
  pieces_.emplace_back(bytes);
}

Result<std::span<const FieldBytes>> PhotoComposer::make(std::uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double wanted = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  const PhotoShape shape = draw_photo_shape(draws, sizes_, wanted);
  PENSTOCK_ASSIGN(Own* const from, own(step_of_width(shape.width), percent_for(wanted / shape.pixels())));
  choose(*from, draws, wanted);
  std::uint32_t rows = 0;
  for (const std::uint32_t which : chosen_) rows += from->stock->strips[which].rows;
  pieces_.clear();
  copies_used_ = 0;
  draw_bits(*from, sample.substream(2));
  put_header(*from, index, rows * kLines - static_cast<std::uint32_t>(draws.between(0, kLines - 1)));
  const std::uint64_t* changed = changed_.data();
  for (std::size_t place = 0; place < chosen_.size(); ++place) {
    put_strip(*from, place, changed);
    changed += (from->stock->strips[chosen_[place]].flips + 63) / 64;
  }
  made_.crc32c = crc32c_portable(kEndOfImage, *made_.crc32c);  // the table version is faster for two bytes
  made_.bytes += kEndOfImage.size();
  pieces_.emplace_back(kEndOfImage);
  made_.pieces = pieces_;
  return std::span<const FieldBytes>(&made_, 1);
}

}  // namespace penstock
