#include "datagen/manifest/stored_form.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

enum Kind : uint64_t { kChunks = 1, kStream = 2 };

constexpr uint64_t kMostFormBytes = INT64_MAX;

// Takes words one after another. After the first failure ok() is false, and every word is 0.
class Words {
 public:
  explicit Words(std::span<const uint64_t> words) : words_(words) {}
  bool ok() const { return ok_; }
  bool at_end() const { return words_.empty(); }
  size_t left() const { return words_.size(); }
  uint64_t next() {
    const std::span<const uint64_t> one = take(1);
    return one.empty() ? 0 : one.front();
  }
  std::span<const uint64_t> take(uint64_t count) {
    ok_ = ok_ && count <= words_.size();
    if (!ok_) return {};
    const auto taken = words_.first(size_t(count));
    words_ = words_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint64_t> words_;
  bool ok_ = true;
};

// item_bytes times all sides; nothing if that is more than `most`.
std::optional<uint64_t> product(uint64_t item_bytes, std::span<const uint64_t> sides, uint64_t most) {
  uint64_t bytes = item_bytes;
  for (const uint64_t side : sides)
    if (__builtin_mul_overflow(bytes, side, &bytes) || bytes > most) return std::nullopt;
  return bytes;
}

void put_filter(const ChunkFilter& filter, std::vector<uint64_t>& out) {
  const auto& parameters = filter.parameters;
  out.push_back(filter.number | uint64_t(parameters.size()) << 16U);
  for (size_t i = 0; i < parameters.size(); i += 2)
    out.push_back(parameters[i] | (i + 1 < parameters.size() ? uint64_t(parameters[i + 1]) << 32U : 0));
}

std::optional<ChunkFilter> take_filter(Words& words) {
  const uint64_t head = words.next();
  const uint64_t count = head >> 16U;
  if (count > ChunkFilter::kMostParameters) return std::nullopt;
  ChunkFilter filter{.number = uint16_t(head)};
  for (const uint64_t word : words.take((count + 1) / 2)) {
    filter.parameters.push_back(uint32_t(word));
    if (filter.parameters.size() < count) filter.parameters.push_back(uint32_t(word >> 32U));
  }
  return words.ok() ? std::optional(std::move(filter)) : std::nullopt;
}

std::optional<StoredForm> decode_chunks(Words words) {
  ChunkedArray array;
  array.item_bytes = words.next();
  array.fill_value = words.next();
  const uint64_t filters = words.next();
  const uint64_t dimensions = words.next();
  if (filters > ChunkFilter::kMostFilters || dimensions == 0 || dimensions > kMostDimensions)
    return std::nullopt;
  const auto shape = words.take(dimensions);
  const auto chunk_shape = words.take(dimensions);
  if (!words.ok() || array.item_bytes == 0) return std::nullopt;
  array.shape.assign(shape.begin(), shape.end());
  array.chunk_shape.assign(chunk_shape.begin(), chunk_shape.end());
  for (uint64_t i = 0; i < filters; ++i) {
    std::optional<ChunkFilter> filter = take_filter(words);
    if (!filter) return std::nullopt;
    array.filters.push_back(*std::move(filter));
  }
  const auto has_zero = [](std::span<const uint64_t> sides) {
    return std::find(sides.begin(), sides.end(), 0U) != sides.end();
  };
  if (has_zero(shape) || has_zero(chunk_shape) || !product(array.item_bytes, shape, kMostFormBytes) ||
      !product(array.item_bytes, chunk_shape, kMostChunkBytes))
    return std::nullopt;
  // Two words for each chunk; so the number of chunks is limited by the words that there are.
  uint64_t count = 1;
  for (size_t i = 0; i < array.shape.size(); ++i)
    if (__builtin_mul_overflow(count, array.grid(i), &count) || count > words.left()) return std::nullopt;
  if (words.left() != 2 * count) return std::nullopt;
  const auto chunks = words.take(2 * count);
  array.chunks = {reinterpret_cast<const ChunkedArray::Chunk*>(chunks.data()),
                  size_t(count)};  // NOLINT(*-cast)
  return array;
}

std::optional<StoredForm> decode_stream(Words words) {
  CompressedStream stream;
  const uint64_t format = words.next();
  if (format > uint64_t(DeflateFormat::gzip)) return std::nullopt;
  stream.format = static_cast<DeflateFormat>(format);
  stream.begin = words.next();
  stream.stored_bytes = words.next();
  stream.bytes = words.next();
  const uint64_t count = words.next();
  if (stream.begin > kMostFormBytes || stream.stored_bytes > kMostFormBytes - stream.begin ||
      count > words.left())
    return std::nullopt;
  stream.points.reserve(size_t(count));
  AccessPoint last;
  for (uint64_t i = 0; i < count; ++i) {
    AccessPoint point{.stored_offset = words.next(), .offset = words.next()};
    const uint64_t word = words.next();
    point.bits = unsigned(word & 7U);
    const uint64_t window_bytes = word >> 3U;
    if (!words.ok() || window_bytes > kDeflateWindowBytes || point.offset <= last.offset ||
        point.stored_offset <= last.stored_offset || point.offset > stream.bytes ||
        point.stored_offset > stream.stored_bytes)
      return std::nullopt;
    const auto window = words.take((window_bytes + 7) / 8);
    if (!words.ok()) return std::nullopt;
    point.window = std::as_bytes(window).first(size_t(window_bytes));
    stream.points.push_back(point);
    last = point;
  }
  return words.ok() && words.at_end() ? std::optional<StoredForm>(std::move(stream)) : std::nullopt;
}

}  // namespace

uint64_t ChunkedArray::bytes() const {
  return product(item_bytes, shape, kMostFormBytes).value_or(0);
}

uint64_t ChunkedArray::chunk_bytes() const {
  return product(item_bytes, chunk_shape, kMostChunkBytes).value_or(0);
}

uint64_t form_bytes(const StoredForm& form) {
  const auto* const array = std::get_if<ChunkedArray>(&form);
  return array != nullptr ? array->bytes() : std::get<CompressedStream>(form).bytes;
}

std::vector<uint64_t> encode_form(const StoredForm& form) {
  std::vector<uint64_t> out;
  if (const auto* const array = std::get_if<ChunkedArray>(&form)) {
    out = {kChunks, array->item_bytes, array->fill_value, array->filters.size(), array->shape.size()};
    out.insert(out.end(), array->shape.begin(), array->shape.end());
    out.insert(out.end(), array->chunk_shape.begin(), array->chunk_shape.end());
    for (const ChunkFilter& filter : array->filters) put_filter(filter, out);
    for (const ChunkedArray::Chunk& chunk : array->chunks) {
      out.push_back(chunk.offset);
      out.push_back(chunk.bytes_and_flags);
    }
    return out;
  }
  const auto& stream = std::get<CompressedStream>(form);
  out = {kStream,      uint64_t(stream.format), stream.begin, stream.stored_bytes,
         stream.bytes, stream.points.size()};
  for (const AccessPoint& point : stream.points) {
    out.push_back(point.stored_offset);
    out.push_back(point.offset);
    out.push_back(uint64_t(point.window.size()) << 3U | point.bits);
    const size_t begin = out.size();
    out.resize(begin + (point.window.size() + 7) / 8);
    std::copy(point.window.begin(), point.window.end(),
              std::as_writable_bytes(std::span(out).subspan(begin)).begin());
  }
  return out;
}

std::optional<StoredForm> decode_form(std::span<const uint64_t> words) {
  Words rest(words);
  switch (rest.next()) {
    case kChunks:
      return decode_chunks(rest);
    case kStream:
      return decode_stream(rest);
    default:
      return std::nullopt;
  }
}

}  // namespace penstock
