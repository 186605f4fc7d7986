#include "profiling/exporters/zlib_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>
#endif

namespace penstock {

struct ZlibStream::Packer {
  Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  virtual ~Packer() = default;
  virtual Result<void> add(std::span<const std::byte> bytes) = 0;
  virtual Result<void> end() = 0;
};

namespace {

constexpr size_t kMostStoredBytes = 65535;  // the largest size of a stored block, in bytes
constexpr uint32_t kAdlerPrime = 65521;

uint8_t low_byte(uint32_t value) {
  return uint8_t(value & 0xffU);
}

}  // namespace

struct ZlibStream::StoredPacker : ZlibStream::Packer {
  explicit StoredPacker(Sink to) : sink(std::move(to)) { block.reserve(kMostStoredBytes); }

  Result<void> add(std::span<const std::byte> bytes) override {
    PENSTOCK_TRY(begin());
    for (const std::byte byte : bytes) {
      if (block.size() == kMostStoredBytes) PENSTOCK_TRY(put_block(false));
      block.push_back(std::to_integer<uint8_t>(byte));
      sum_a = (sum_a + block.back()) % kAdlerPrime;
      sum_b = (sum_b + sum_a) % kAdlerPrime;
    }
    return success();
  }

  Result<void> end() override {
    PENSTOCK_TRY(begin());
    PENSTOCK_TRY(put_block(true));
    is_open = false;
    return put(std::array{low_byte(sum_b >> 8U), low_byte(sum_b), low_byte(sum_a >> 8U), low_byte(sum_a)});
  }

  Result<void> begin() {
    if (is_open) return success();
    is_open = true;
    sum_a = 1;
    sum_b = 0;
    return put(std::array<uint8_t, 2>{0x78, 0x01});
  }

  Result<void> put_block(bool last) {
    const auto length = uint32_t(block.size());
    PENSTOCK_TRY(put(std::array{low_byte(last ? 1U : 0U), low_byte(length), low_byte(length >> 8U),
                                low_byte(~length), low_byte(~length >> 8U)}));
    PENSTOCK_TRY(put(block));
    block.clear();
    return success();
  }

  Result<void> put(std::span<const uint8_t> bytes) { return sink(std::as_bytes(bytes)); }

  Sink sink;
  std::vector<uint8_t> block;
  uint32_t sum_a = 1;
  uint32_t sum_b = 0;
  bool is_open = false;
};

#ifdef PENSTOCK_HAS_ZLIB

struct ZlibStream::ZlibPacker : ZlibStream::Packer {
  explicit ZlibPacker(Sink to) : sink(std::move(to)) {
    is_ready = deflateInit(&stream, Z_DEFAULT_COMPRESSION) == Z_OK;
  }
  ~ZlibPacker() override { deflateEnd(&stream); }

  Result<void> add(std::span<const std::byte> bytes) override {
    // zlib gets at most this many bytes at once, because it counts them in 32 bits
    constexpr size_t kMostInputBytes = size_t{1} << 30U;
    while (!bytes.empty()) {
      const size_t input_bytes = std::min(bytes.size(), kMostInputBytes);
      // zlib's pointer to the input is not const, but zlib only reads it.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));  // NOLINT(*-cast)
      stream.avail_in = static_cast<uInt>(input_bytes);
      PENSTOCK_TRY(compress_pending(Z_NO_FLUSH));
      bytes = bytes.subspan(input_bytes);
    }
    return success();
  }

  Result<void> end() override {
    PENSTOCK_TRY(compress_pending(Z_FINISH));
    deflateReset(&stream);
    return success();
  }

  Result<void> compress_pending(int flush) {
    if (!is_ready) return make_error(Errc::exhausted, "no memory to compress with");
    do {
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      deflate(&stream, flush);  // cannot fail: the stream is valid and the output has space
      PENSTOCK_TRY(sink(std::as_bytes(std::span(out).first(out.size() - stream.avail_out))));
    } while (stream.avail_out == 0);
    return success();
  }

  Sink sink;
  z_stream stream{};
  bool is_ready = false;
  std::vector<Bytef> out = std::vector<Bytef>(size_t{64} << 10U);
};

#endif

ZlibStream::ZlibStream(Sink sink, Packing packing) {
#ifdef PENSTOCK_HAS_ZLIB
  if (packing == Packing::smallest) {
    packer_ = std::make_unique<ZlibPacker>(std::move(sink));
    return;
  }
#else
  static_cast<void>(packing);
#endif
  packer_ = std::make_unique<StoredPacker>(std::move(sink));
}

ZlibStream::~ZlibStream() = default;

Result<void> ZlibStream::add(std::span<const std::byte> bytes) {
  return packer_->add(bytes);
}

Result<void> ZlibStream::end() {
  return packer_->end();
}

}  // namespace penstock
