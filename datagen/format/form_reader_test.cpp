#include "datagen/format/form_reader.hpp"

#include <algorithm>
#include <vector>

#include "io_backends/testing/testing.hpp"

#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>
#endif

namespace penstock {
namespace {

// A window on bytes in memory that counts how often it is asked for some.
class CountingWindow final : public ByteWindow {
 public:
  explicit CountingWindow(std::span<const std::byte> bytes) : window_(bytes) {}
  Result<std::span<const std::byte>> at(uint64_t offset, size_t length) override {
    ++count;
    return window_.at(offset, length);
  }
  Error error(Errc code, uint64_t offset, std::string_view what) const override {
    return window_.error(code, offset, what);
  }
  int count = 0;

 private:
  MemoryWindow window_;
};

#ifdef PENSTOCK_HAS_ZLIB

// Of a chunk of more than 64 MiB only a part of the rows is kept. It is not unpacked for each row.
TEST(FormReader, ALargeChunkIsUnpackedOnce) {
  constexpr uint64_t kRows = 1200;
  constexpr uint64_t kRowBytes = uint64_t{64} << 10U;
  std::vector<std::byte> plain(kRows * kRowBytes);
  for (uint64_t row = 0; row < kRows; ++row) plain[row * kRowBytes + 5] = std::byte(row % 251);
  uLongf stored_bytes = ::compressBound(plain.size());
  std::vector<std::byte> stored(stored_bytes);
  ASSERT_EQ(::compress2(reinterpret_cast<Bytef*>(stored.data()), &stored_bytes,
                        reinterpret_cast<const Bytef*>(plain.data()), plain.size(), 1),
            Z_OK);
  stored.resize(stored_bytes);
  const auto chunk = ChunkedArray::Chunk::make(0, stored.size(), 0);
  ChunkedArray array{.shape = {kRows, kRowBytes},
                     .chunk_shape = {kRows, kRowBytes},
                     .filters = {{ChunkFilter::kDeflate, {1}}},
                     .chunks = {&chunk, 1}};
  FormReader reader;
  ASSERT_OK(reader.use(array));
  CountingWindow window(stored);
  for (uint64_t row = 0; row < kRows; ++row) {
    const auto bytes = reader.read(window, {row * kRowBytes, kRowBytes});
    ASSERT_OK(bytes);
    ASSERT_EQ((*bytes)[5], std::byte(row % 251)) << row;
  }
  EXPECT_EQ(window.count, 1);
  reader.forget();
  ASSERT_OK(reader.read(window, {0, kRowBytes}));
  EXPECT_EQ(window.count, 2);
}

#endif

TEST(FormReader, SizesThatAreTooLargeAreRefused) {
  FormReader reader;
  EXPECT_ERRC(Errc::unsupported,
              reader.use(ChunkedArray{.item_bytes = 8, .shape = {uint64_t{1} << 61U}, .chunk_shape = {1}}));
  EXPECT_ERRC(Errc::unsupported,
              reader.use(ChunkedArray{.item_bytes = 8, .shape = {1}, .chunk_shape = {uint64_t{1} << 30U}}));
}

}  // namespace
}  // namespace penstock
