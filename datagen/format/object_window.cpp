#include "datagen/format/object_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

namespace {

// Number of bytes to read if the requested offset is before the window or far after it.
constexpr uint64_t kDistantReadBytes = 64 << 10;

}  // namespace

Result<ObjectWindow> ObjectWindow::open(Backend& backend, const Entry& object) {
  PENSTOCK_ASSIGN(auto reader, backend.open(object.name));
  return ObjectWindow(std::move(reader), object);
}

Error ObjectWindow::error(Errc code, uint64_t offset, std::string_view what) const {
  return make_error(code, "'{}' at byte {}: {}", name_, offset, what);
}

Result<std::span<const std::byte>> ObjectWindow::at(uint64_t offset, size_t length) {
  if (offset > size_ || length > size_ - offset)
    return error(Errc::truncated, offset,
                 fmt::format("{} bytes should be here, but the object ends at {}", length, size_));
  if (offset < begin_ || offset + length > end_) PENSTOCK_TRY(slide(offset, length));
  return std::span<const std::byte>(buffer_.first(buffer_.capacity()))
      .subspan(size_t(offset - begin_), length);
}

Result<void> ObjectWindow::slide(uint64_t offset, size_t length) {
  PENSTOCK_TRY(check_interrupt());
  if (length > kMostReadBytes)
    return make_error(Errc::internal, "a read of {} bytes of '{}' exceeds the limit of one read", length,
                      name_);
  if (buffer_.capacity() == 0) buffer_.grow(size_t(std::min<uint64_t>(size_, kWindowBytes)));
  const bool is_near = offset >= begin_ && offset - begin_ < 2 * kWindowBytes;
  const uint64_t begin = offset / kBufferAlignment * kBufferAlignment;
  const uint64_t wanted_bytes =
      std::max<uint64_t>(offset - begin + length, is_near ? kWindowBytes : kDistantReadBytes);
  const auto bytes = size_t(std::min<uint64_t>({wanted_bytes, size_ - begin, kWindowBytes}));
  begin_ = end_ = begin;
  Result<void> read = reader_->read_at(begin, buffer_.first(bytes));
  has_read_error_ = has_read_error_ || !read.ok();
  PENSTOCK_TRY(std::move(read));
  end_ = begin + bytes;
  return success();
}

}  // namespace penstock
