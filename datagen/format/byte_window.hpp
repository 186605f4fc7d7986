// Gives a parser the few bytes that it needs next from a large source. The source may be an object, memory or
// a compressed stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT(*-reinterpret-cast)
}

// A range of bytes of an object.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// A file in an archive.
struct ArchiveMember {
  std::string name;
  Extent content;
  // Whether the content is compressed with deflate. Then these are its size and CRC-32 when it is inflated.
  bool is_deflated = false;
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};

class ByteWindow {
 public:
  virtual ~ByteWindow() = default;

  // The `length` bytes from `offset` on. They are valid until the next call. Fails with `truncated` if the
  // source does not contain all of them.
  virtual Result<std::span<const std::byte>> at(uint64_t offset, size_t length) = 0;
  // The most bytes that at() can return, and the offset after the last byte of the source, if it is known.
  virtual size_t most_bytes() const { return SIZE_MAX; }
  virtual uint64_t end() const { return UINT64_MAX; }

  // Makes an error with the code `code`. Its message names the object and the offset, and contains `what`,
  // which says what is wrong there.
  virtual Error error(Errc code, uint64_t offset, std::string_view what) const = 0;
  Error corrupt(uint64_t offset, std::string_view what) const { return error(Errc::corrupt, offset, what); }

 protected:
  ByteWindow() = default;
  ByteWindow(const ByteWindow&) = default;
  ByteWindow(ByteWindow&&) = default;
  ByteWindow& operator=(const ByteWindow&) = default;
  ByteWindow& operator=(ByteWindow&&) = default;
};

// A window on bytes in memory, which are those from offset `begin` on. They must live as long as the window.
// Its errors name only the offset, because it does not know the object's name; the caller adds the name.
class MemoryWindow final : public ByteWindow {
 public:
  explicit MemoryWindow(std::span<const std::byte> bytes, uint64_t begin = 0)
      : bytes_(bytes), begin_(begin) {}

  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override {
    if (offset < begin_ || offset - begin_ > bytes_.size() || length > bytes_.size() - (offset - begin_))
      return error(Errc::truncated, offset, std::to_string(length) + " bytes should be here");
    return bytes_.subspan(size_t(offset - begin_), length);
  }
  uint64_t end() const override { return begin_ + bytes_.size(); }
  Error error(Errc code, uint64_t offset, std::string_view what) const override {
    return make_error(code, std::string(what) + " (at byte " + std::to_string(offset) + ")");
  }

 private:
  const std::span<const std::byte> bytes_;
  const uint64_t begin_;
};

}  // namespace penstock
