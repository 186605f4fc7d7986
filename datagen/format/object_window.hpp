// An object seen through a window that slides: for scans, which look at headers and skip what lies between
// them. Read in large sequential pieces where the looks are near one another, in small ones where they are
// far apart; never more than kLargest bytes of memory. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datagen/format/byte_window.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/checksums/checksums_count.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class ObjectWindow final : public ByteWindow {
 public:
  static constexpr std::size_t kLargest = std::size_t{1} << 20;

  static Result<ObjectWindow> open(Backend& backend, const Entry& object);

  std::uint64_t size() const { return size_; }  // of the object, as its entry says

  // `truncated` where the object ends before them; length at most kMost.
  static constexpr std::size_t kMost = kLargest - kBufferAlignment;
  Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t length) override;

  // "'a.tar' at byte 512: WHAT".
  Error error(Errc code, std::uint64_t offset, std::string_view what) const override;

 private:
  ObjectWindow(std::unique_ptr<Reader> reader, const Entry& object)
      : reader_(std::move(reader)), name_(object.name), size_(object.bytes) {}
  Result<void> slide(std::uint64_t offset, std::size_t length);

  std::unique_ptr<Reader> reader_;
  std::string name_;
  std::uint64_t size_;
  Buffer buffer_;
  std::uint64_t begin_ = 0;  // the window: [begin_, end_) of the object
  std::uint64_t end_ = 0;
};

}  // namespace penstock
