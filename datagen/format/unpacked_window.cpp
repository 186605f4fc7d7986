#include "datagen/format/unpacked_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "io_backends/core/checksums/checksums_count.hpp"
#include "io_backends/core/checksums/crc32.hpp"

namespace penstock {
namespace {

constexpr size_t kStepBytes = size_t{64} << 10U;  // stored bytes that are inflated per step
// The most inflated bytes in memory: twice what one read may ask for, and a window of deflate.
constexpr size_t kBufferBytes = (size_t{128} << 10U) + kDeflateWindowBytes;

}  // namespace

ChunkWindow::ChunkWindow(ByteWindow& object, ChunkedArray array, std::vector<ChunkedArray::Chunk> chunks)
    : object_(object), chunks_(std::move(chunks)), array_(std::move(array)) {
  array_.chunks = chunks_;
}

Result<std::shared_ptr<UnpackedWindow>> ChunkWindow::make(ByteWindow& object, ChunkedArray array,
                                                          std::vector<ChunkedArray::Chunk> chunks) {
  std::shared_ptr<ChunkWindow> window(new ChunkWindow(object, std::move(array), std::move(chunks)));
  PENSTOCK_TRY(window->reader_.use(window->array_));
  *window->form_ = encode_form(window->array_);
  return std::shared_ptr<UnpackedWindow>(std::move(window));
}

Result<std::span<const std::byte>> ChunkWindow::at(uint64_t offset, size_t length) {
  if (offset > end() || length > end() - offset)
    return error(Errc::truncated, offset, fmt::format("{} bytes should be here", length));
  return reader_.read(object_, {offset, length});
}

Error ChunkWindow::error(Errc code, uint64_t offset, std::string_view what) const {
  return object_.error(code, array_.chunks.empty() ? 0 : array_.chunks.front().offset,
                       fmt::format("{} (at byte {} of the array)", what, offset));
}

StreamWindow::StreamWindow(ObjectWindow& object, StreamInflater inflater, DeflateFormat format,
                           const Extent& extent)
    : object_(object),
      inflater_(std::move(inflater)),
      stream_{.format = format, .begin = extent.offset, .stored_bytes = extent.length},
      bytes_(kBufferBytes) {}

Result<std::shared_ptr<StreamWindow>> StreamWindow::make(ObjectWindow& object, DeflateFormat format,
                                                         const Extent& extent) {
  auto inflater = StreamInflater::start(format);
  if (!inflater.ok())
    return object.error(inflater.error().code, extent.offset,
                        "it is compressed, and " + inflater.error().what);
  return std::shared_ptr<StreamWindow>(new StreamWindow(object, *std::move(inflater), format, extent));
}

Error StreamWindow::error(Errc code, uint64_t offset, std::string_view what) const {
  // Names the stream that has this byte, if it is still known.
  const auto after = std::find_if(boundaries_.begin() + 1, boundaries_.end(),
                                  [&](const Boundary& boundary) { return boundary.offset > offset; });
  const Boundary& begin = *(after - 1);
  return object_.error(
      code, stream_.begin + begin.stored_offset,
      fmt::format("{} (at byte {} of the decompressed data)", what, offset - std::min(begin.offset, offset)));
}

Result<std::span<const std::byte>> StreamWindow::at(uint64_t offset, size_t length) {
  if (offset < begin_)
    return error(Errc::unsupported, offset,
                 fmt::format("this part is needed a second time, and only the last {} KiB are in memory: "
                             "decompress the file first",
                             kBufferBytes >> 10U));
  while (end_ < offset + length) {
    if (ended_)
      return error(Errc::truncated, offset,
                   fmt::format("{} bytes should be here, but they end at {}", length, end_));
    PENSTOCK_TRY(inflate(offset));
  }
  return std::span<const std::byte>(bytes_).subspan(size_t(offset - begin_), length);
}

Result<bool> StreamWindow::ends_at(uint64_t offset) {
  while (end_ <= offset && !ended_) PENSTOCK_TRY(inflate(offset));
  return end_ == offset;
}

std::optional<Extent> StreamWindow::stream_between(uint64_t begin, uint64_t end) const {
  for (size_t i = 0; i + 1 < boundaries_.size(); ++i)
    if (boundaries_[i].offset == begin && boundaries_[i + 1].offset == end && begin < end)
      return Extent{stream_.begin + boundaries_[i].stored_offset,
                    boundaries_[i + 1].stored_offset - boundaries_[i].stored_offset};
  return std::nullopt;
}

// Inflates more bytes. If bytes_ is full, it first drops the bytes before `keep_from`, but not the window
// that a point at end_ would need.
Result<void> StreamWindow::inflate(uint64_t keep_from) {
  auto buffered_bytes = size_t(end_ - begin_);
  if (buffered_bytes == kBufferBytes) {
    const auto dropped_bytes = size_t(std::min(keep_from, end_ - kDeflateWindowBytes) - begin_);
    std::copy(bytes_.begin() + ptrdiff_t(dropped_bytes), bytes_.end(), bytes_.begin());
    begin_ += dropped_bytes;
    buffered_bytes -= dropped_bytes;
    while (boundaries_.size() > 1 && boundaries_[1].offset <= begin_) boundaries_.pop_front();
  }
  const auto step_bytes = size_t(std::min<uint64_t>(kStepBytes, stream_.stored_bytes - stored_end_));
  PENSTOCK_ASSIGN(const auto in, object_.at(stream_.begin + stored_end_, step_bytes));
  const auto out = std::span(bytes_).subspan(buffered_bytes);
  const auto step = inflater_.step(in, out, true);
  if (!step.ok()) return error(step.error().code, end_, step.error().what);
  if (!step->ended && step->in_bytes == 0 && step->out_bytes == 0)
    return error(Errc::truncated, end_,
                 fmt::format("the compressed data do not end before the object ends at {}",
                             stream_.begin + stream_.stored_bytes));
  if (expected_) crc32_ = crc32(out.first(step->out_bytes), crc32_);
  stored_end_ += step->in_bytes;
  end_ += step->out_bytes;
  if (step->ended) return end_stream();
  if (step->at_point && end_ >= (points_.empty() ? 0 : points_.back().place.offset) + kPointDistance)
    add_point();
  return success();
}

Result<void> StreamWindow::end_stream() {
  boundaries_.push_back({end_, stored_end_});
  ended_ = stored_end_ == stream_.stored_bytes;
  if (ended_) return success();
  const uint64_t bytes_left = stream_.stored_bytes - stored_end_;
  if (stream_.format == DeflateFormat::gzip) {
    PENSTOCK_ASSIGN(const auto next,
                    object_.at(stream_.begin + stored_end_, size_t(std::min<uint64_t>(bytes_left, 2))));
    inflater_.begin();
    // If one byte is left, the next step finds that the rest is missing.
    if (bytes_left == 1 || begins_as_gzip(next)) return success();
  }
  return object_.corrupt(stream_.begin + stored_end_,
                         fmt::format("{} bytes follow the end of the compressed data", bytes_left));
}

void StreamWindow::add_point() {
  const uint64_t window_bytes = std::min<uint64_t>(kDeflateWindowBytes, end_ - boundaries_.back().offset);
  const auto end = bytes_.begin() + ptrdiff_t(end_ - begin_);
  points_.push_back({.place = {.stored_offset = stored_end_, .offset = end_, .bits = inflater_.bits_left()},
                     .window = std::vector<std::byte>(end - ptrdiff_t(window_bytes), end)});
}

// Removes the points before `before` that no sample uses, except the last of them: the next sample may begin
// after it. Looks at no point before the last that is used, because all of those are used.
void StreamWindow::remove_unused_points(uint64_t before) {
  auto end = points_.end();
  while (end != points_.begin() && (end - 1)->place.offset > before) --end;
  if (end == points_.begin()) return;
  const auto last = end - 1;
  auto first = last;
  while (first != points_.begin() && !(first - 1)->is_used) --first;
  points_.erase(first, last);
}

Result<Extent> StreamWindow::stored_range(const SampleExtent& extent) {
  remove_unused_points(extent.offset);
  uint64_t begin = 0;
  for (auto point = points_.rbegin(); point != points_.rend(); ++point) {
    if (point->place.offset > extent.offset) continue;
    point->is_used = true;
    begin = point->place.stored_offset - (point->place.bits == 0 ? 0 : 1);
    break;
  }
  // Not by at(): the last byte may have been inflated and dropped already.
  const uint64_t end = extent.offset + extent.bytes;
  while (end_ < end) {
    if (ended_)
      return error(Errc::truncated, extent.offset,
                   fmt::format("{} bytes should be here, but they end at {}", extent.bytes, end_));
    PENSTOCK_TRY(inflate(end - 1));
    remove_unused_points(std::min(end_, end));
  }
  return Extent{stream_.begin + begin, stored_end_ - begin};
}

Result<void> StreamWindow::finish() {
  while (!ended_) PENSTOCK_TRY(inflate(end_));
  if (expected_ && (end_ != expected_->bytes || (kVerifyChecksums && crc32_ != expected_->crc32)))
    return object_.corrupt(
        stream_.begin,
        fmt::format("{} compressed bytes are damaged: the length or CRC-32 of their content is wrong",
                    stream_.stored_bytes));
  stream_.bytes = end_;
  for (Point& point : points_) {
    if (!point.is_used) continue;
    point.place.window = point.window;
    stream_.points.push_back(point.place);
  }
  *form_ = encode_form(stream_);
  return success();
}

}  // namespace penstock
