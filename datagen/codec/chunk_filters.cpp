#include "datagen/codec/chunk_filters.hpp"

#include <fmt/format.h>
#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "datagen/codec/library_filters.hpp"
#include "io_backends/core/checksums/checksums_count.hpp"

namespace penstock {
namespace {

constexpr size_t kFletcherBytes = 4;

Error damaged(std::string_view what) {
  return make_error(Errc::corrupt, "a chunk is damaged: {}", what);
}

// The checksum of HDF5's filter fletcher32. It adds up 16-bit numbers, whose first byte is the high one, and
// also the sums after each number. Both sums are taken modulo 65535.
uint32_t fletcher32(std::span<const std::byte> bytes) {
  // After this count of numbers, the sums still fit in 32 bits.
  constexpr size_t kNumbersPerBlock = 360;
  uint32_t sum = 0;
  uint32_t sum_of_sums = 0;
  const auto fold = [](uint32_t value) { return (value & 0xffffU) + (value >> 16U); };
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.size(), at + 2 * kNumbersPerBlock);
    for (; at < end; at += 2) {
      const uint32_t low = at + 1 < bytes.size() ? uint32_t(bytes[at + 1]) : 0;
      sum += uint32_t(bytes[at]) << 8U | low;
      sum_of_sums += sum;
    }
    sum = fold(sum);
    sum_of_sums = fold(sum_of_sums);
  }
  sum = fold(sum);
  sum_of_sums = fold(sum_of_sums);
  return sum_of_sums << 16U | sum;
}

// Puts the bytes of each element together again. The bytes of an incomplete element at the end were not
// moved.
template <size_t kBytes>
void unshuffle_elements(std::span<const std::byte> in, std::span<std::byte> out, size_t bytes) {
  const size_t element_bytes = kBytes == 0 ? bytes : kBytes;
  const size_t elements = in.size() / element_bytes;
  const std::byte* const from = in.data();
  std::byte* to = out.data();
  for (size_t i = 0; i < elements; ++i, to += element_bytes)
    for (size_t b = 0; b < element_bytes; ++b) to[b] = from[b * elements + i];
  const size_t moved_bytes = elements * element_bytes;
  std::copy(in.begin() + ptrdiff_t(moved_bytes), in.end(), out.begin() + ptrdiff_t(moved_bytes));
}

void unshuffle(std::span<const std::byte> in, std::span<std::byte> out, size_t element_bytes) {
  switch (element_bytes) {
    case 2:
      return unshuffle_elements<2>(in, out, 2);
    case 4:
      return unshuffle_elements<4>(in, out, 4);
    case 8:
      return unshuffle_elements<8>(in, out, 8);
    default:
      return unshuffle_elements<0>(in, out, element_bytes);
  }
}

// Decompresses LibLZF's format and returns the number of bytes in `out`; nothing if the bytes are not of this
// format, or do not fit. After a byte n below 32 follow n + 1 unchanged bytes. Any other
// begins a reference to bytes before: 3 bits for its length, where 7 means that another byte adds to it, and
// 13 bits for the distance.
std::optional<size_t> unlzf(std::span<const std::byte> in, std::span<std::byte> out) {
  size_t at = 0;
  size_t filled = 0;
  while (at < in.size()) {
    const auto control = size_t(in[at++]);
    if (control < 32) {
      const size_t count = control + 1;
      if (count > in.size() - at || count > out.size() - filled) return std::nullopt;
      std::copy_n(in.begin() + ptrdiff_t(at), count, out.begin() + ptrdiff_t(filled));
      at += count;
      filled += count;
      continue;
    }
    size_t count = control >> 5U;
    if (count == 7) {
      if (at == in.size()) return std::nullopt;
      count += size_t(in[at++]);
    }
    count += 2;
    if (at == in.size()) return std::nullopt;
    const size_t distance = ((control & 31U) << 8U | size_t(in[at++])) + 1;
    if (distance > filled || count > out.size() - filled) return std::nullopt;
    // The bytes may overlap with those that they become, so they are copied one after another.
    for (size_t i = 0; i < count; ++i, ++filled) out[filled] = out[filled - distance];
  }
  return filled;
}

}  // namespace

struct ChunkOpener::Inflater {
#ifdef PENSTOCK_HAS_ZLIB
  Inflater() {
    is_ready = inflateInit(&stream) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    inflateEnd(&stream);
  }

  // The number of bytes in `out`; nothing if `in` is no whole stream of zlib, or if it does not fit.
  std::optional<size_t> inflate_all(std::span<const std::byte> in, std::span<std::byte> out) {
    if (in.size() > UINT32_MAX || out.size() > UINT32_MAX) return std::nullopt;
    inflateReset(&stream);
    // zlib takes input through non-const pointers but does not write to it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // NOLINT(*-cast)
    stream.avail_in = uInt(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = uInt(out.size());
    const int result = ::inflate(&stream, Z_FINISH);
    lacks_memory = result == Z_MEM_ERROR;
    const bool ended = result == Z_STREAM_END;
    return ended ? std::optional(out.size() - stream.avail_out) : std::nullopt;
  }

  z_stream stream{};
  bool is_ready = false;
  bool lacks_memory = false;  // why inflate_all() returned nothing the last time
#endif
};

std::string chunk_filter_name(uint64_t number) {
  constexpr std::array<std::string_view, 7> kNames{
      "", "deflate", "shuffle", "the Fletcher-32 checksum", "szip", "n-bit", "scale-offset"};
  if (number > 0 && number < kNames.size()) return std::string(kNames[size_t(number)]);
  // Names from The HDF Group's registry of filters.
  static const std::map<uint64_t, std::string> kRegistered{
      {305, "LZO"},          {307, "bzip2"}, {ChunkFilter::kLzf, "lzf"}, {32001, "Blosc"}, {32004, "LZ4"},
      {32008, "bitshuffle"}, {32013, "ZFP"}, {32015, "Zstandard"},       {32026, "Blosc2"}};
  const auto found = kRegistered.find(number);
  return found == kRegistered.end() ? fmt::format("filter {}", number) : found->second;
}

ChunkOpener::ChunkOpener() = default;
ChunkOpener::ChunkOpener(std::unique_ptr<LibraryFilters> library) : library_(std::move(library)) {}
ChunkOpener::~ChunkOpener() {
  if (library_) LibraryFilters::keep(std::move(library_));
}

Result<void> ChunkOpener::use(const std::vector<ChunkFilter>& filters, uint64_t chunk_bytes) {
  if (filters.size() > ChunkFilter::kMostFilters)
    return make_error(Errc::invalid_argument, "chunks of {} filters", filters.size());
  if (chunk_bytes > kMostChunkBytes) return make_error(Errc::unsupported, "chunks of {} bytes", chunk_bytes);
  for (const ChunkFilter& filter : filters) {
    if (filter.needs_library() && (!library_ || library_->has_given_up())) library_ = LibraryFilters::take();
    if (filter.number != ChunkFilter::kDeflate || inflater_) continue;
#ifdef PENSTOCK_HAS_ZLIB
    auto inflater = std::make_unique<Inflater>();
    if (!inflater->is_ready) return make_error(Errc::exhausted, "no memory for zlib");
    inflater_ = std::move(inflater);
#else
    return make_error(Errc::unsupported, "the chunks are compressed with deflate, and this build lacks zlib");
#endif
  }
  filters_ = filters;
  chunk_bytes_ = chunk_bytes;
  return success();
}

Result<std::span<const std::byte>> ChunkOpener::open(std::span<const std::byte> stored,
                                                     uint32_t not_applied) {
  const auto is_applied = [&](size_t i) { return (not_applied >> i & 1U) == 0; };
  const std::span<const ChunkFilter> all = filters_;
  // The library undoes the last filter that needs it and all before. Those after it are undone here, and
  // first.
  size_t for_library = all.size();
  while (for_library > 0 && !(is_applied(for_library - 1) && all[for_library - 1].needs_library()))
    --for_library;
  std::span<const std::byte> bytes = stored;
  size_t next_buffer = 0;
  for (size_t i = all.size(); i-- > for_library;) {
    if (!is_applied(i)) continue;
    PENSTOCK_ASSIGN(bytes, undo(all[i], bytes, buffers_[next_buffer]));
    if (all[i].number != ChunkFilter::kFletcher32) next_buffer = 1 - next_buffer;
  }
  if (for_library > 0) return library_->undo(all.first(for_library), not_applied, bytes, chunk_bytes_);
  if (bytes.size() != chunk_bytes_)
    return damaged(fmt::format("it has {} bytes, not {}", bytes.size(), chunk_bytes_));
  return bytes;
}

// Undoes one filter. The result is in `out`, or a part of `bytes`.
Result<std::span<const std::byte>> ChunkOpener::undo(const ChunkFilter& filter,
                                                     std::span<const std::byte> bytes, Buffer& out) {
  if (filter.number == ChunkFilter::kFletcher32) {
    if (bytes.size() < kFletcherBytes) return damaged("it is too short for its checksum");
    const std::span<const std::byte> content = bytes.first(bytes.size() - kFletcherBytes);
    uint32_t stored = 0;
    for (size_t i = 0; i < kFletcherBytes; ++i) stored |= uint32_t(bytes[content.size() + i]) << (8 * i);
    const uint32_t sum = fletcher32(content);
    // Old versions of HDF5 swapped the bytes of both halves. The library accepts that, too.
    const uint32_t swapped = (sum & 0x00ff00ffU) << 8U | (sum >> 8U & 0x00ff00ffU);
    if (kVerifyChecksums && stored != sum && stored != swapped)
      return damaged("its checksum (fletcher32) is wrong");
    return content;
  }
  // What a filter gets is a chunk, which filters before it made longer by checksums, or a little longer by
  // compression that did not help.
  const uint64_t most_bytes = std::min<uint64_t>(chunk_bytes_ + chunk_bytes_ / 64 + 4096, UINT32_MAX);
  const size_t room = filter.number == ChunkFilter::kShuffle ? bytes.size() : size_t(most_bytes);
  if (!out.try_grow(std::max<size_t>(room, 1)))
    return make_error(Errc::exhausted, "no memory for a chunk of {} bytes", room);
  const std::span<std::byte> into = out.first(room);
  if (filter.number == ChunkFilter::kShuffle) {
    // HDF5's library refuses these, too (H5Zshuffle.c).
    if (filter.parameters.size() != 1 || filter.parameters.front() == 0)
      return damaged("its shuffle filter has no element size");
    unshuffle(bytes, into, filter.parameters.front());
    return std::span<const std::byte>(into);
  }
  std::optional<size_t> made;
  if (filter.number == ChunkFilter::kLzf) made = unlzf(bytes, into);
#ifdef PENSTOCK_HAS_ZLIB
  if (filter.number == ChunkFilter::kDeflate) {
    made = inflater_->inflate_all(bytes, into);
    if (inflater_->lacks_memory) return make_error(Errc::exhausted, "no memory for zlib");
  }
#endif
  if (!made)
    return damaged(filter.number == ChunkFilter::kLzf ? "it cannot be decompressed (lzf)"
                                                      : "it cannot be decompressed (deflate)");
  return std::span<const std::byte>(into.first(*made));
}

}  // namespace penstock
