#include "datagen/format/hdf5_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format.hpp"

namespace penstock {
namespace {

class ChunkFinder {
 public:
  ChunkFinder(Hdf5Source& source, const Hdf5Object& dataset, const StoredArray& array, ArrayExtent& extent)
      : source_(source), dataset_(dataset), array_(array), extent_(extent) {}

  Result<void> find() {
    PENSTOCK_TRY(measure());
    if (dataset_.address == kHdf5Nowhere) return not_written();
    switch (dataset_.storage) {
      case Hdf5Storage::chunk_tree:
        PENSTOCK_TRY(read_tree());
        break;
      case Hdf5Storage::chunk_list:
        PENSTOCK_TRY(read_list());
        break;
      case Hdf5Storage::one_chunk:
      case Hdf5Storage::chunk_row:
      case Hdf5Storage::contiguous:
        PENSTOCK_TRY(source_.extent(dataset_.address, count_ * chunk_bytes_));
        for (std::uint64_t i = 0; i < count_; ++i)
          PENSTOCK_TRY(place(i, dataset_.address + i * chunk_bytes_));
        break;
    }
    return in_order();
  }

 private:
  Error error(Errc code, std::string_view what) const {
    return source_.error(code, dataset_.address == kHdf5Nowhere ? 0 : dataset_.address,
                         fmt::format("'{}': {}", array_.name, what));
  }
  Error not_written() const {
    return error(Errc::unsupported, "some of its chunks were never written, so its samples have no place");
  }

  // Chunks must be rows, or several of them. What is not in the file as a whole is not measured.
  Result<void> measure() {
    const auto& shape = dataset_.shape;
    const auto& chunk = dataset_.chunk;
    if (chunk.size() != shape.size() || shape.empty() || chunk[0] == 0)
      return error(Errc::corrupt, "its chunks have other dimensions than it has");
    if (!std::equal(shape.begin() + 1, shape.end(), chunk.begin() + 1))
      return error(Errc::unsupported, "its chunks cut its rows, so its samples do not lie together");
    if (array_.bytes > source_.size()) return not_written();
    const std::uint64_t row_bytes = array_.bytes / std::max<std::uint64_t>(1, shape[0]);
    if (__builtin_mul_overflow(chunk[0], row_bytes, &chunk_bytes_) || row_bytes == 0)
      return error(Errc::corrupt, "chunks of more bytes than there are");
    extent_.rows_per_chunk = chunk[0];
    count_ = (shape[0] - 1) / chunk[0] + 1;
    if (dataset_.storage == Hdf5Storage::one_chunk && count_ != 1)
      return error(Errc::corrupt, "its one chunk is too small");
    std::uint64_t all_bytes = 0;
    if (__builtin_mul_overflow(count_, chunk_bytes_, &all_bytes))
      return error(Errc::corrupt, "chunks of more bytes than there are");
    if (count_ > kMostSamplesAnObject)
      return error(Errc::unsupported, fmt::format("it claims {} chunks, and no more than {} are read", count_,
                                                  kMostSamplesAnObject));
    return success();
  }

  // Memory is taken for what the index says, and not for what the shape claims.
  Result<void> place(std::uint64_t chunk, std::uint64_t address) {
    if (address == kHdf5Nowhere) return success();
    PENSTOCK_ASSIGN(const std::uint64_t offset, source_.extent(address, chunk_bytes_));
    if (placed_.size() == count_)
      return error(Errc::corrupt, fmt::format("its index has more chunks than its {}", count_));
    ordered_ = ordered_ && chunk == placed_.size();
    placed_.emplace_back(chunk, offset);
    return success();
  }

  Result<void> in_order() {
    if (placed_.size() < count_) return not_written();
    if (!ordered_) std::sort(placed_.begin(), placed_.end());
    extent_.chunks.reserve(placed_.size());
    for (const auto& [chunk, offset] : placed_) {
      if (chunk != extent_.chunks.size())
        return error(Errc::corrupt,
                     fmt::format("its index has a chunk twice, and lacks one ({})", extent_.chunks.size()));
      extent_.chunks.push_back(offset);
    }
    return success();
  }

  Result<void> read_tree() {
    const std::uint64_t key_bytes = 8 + 8 * (dataset_.shape.size() + 1);
    return source_.walk_tree(dataset_.address, 1, key_bytes, "a tree of chunks",
                             [this](std::uint64_t at, std::span<const std::byte> entry, std::uint64_t child) {
                               return take_entry(at, entry, child);
                             });
  }

  Result<void> take_entry(std::uint64_t at, std::span<const std::byte> entry, std::uint64_t address) {
    const std::uint64_t row = number_at(entry, 8, 8);
    const std::uint64_t chunk = row / extent_.rows_per_chunk;
    if (row % extent_.rows_per_chunk != 0 || chunk >= count_)
      return source_.corrupt(at, fmt::format("a chunk of '{}' from row {} on", array_.name, row));
    if (number_at(entry, 0, 4) != chunk_bytes_)
      return source_.corrupt(
          at, fmt::format("a chunk of {} bytes, not {}", number_at(entry, 0, 4), chunk_bytes_));
    return place(chunk, address);
  }

  // A fixed array without pages.
  Result<void> read_list() {
    constexpr std::uint64_t kHeadBytes = 28;
    PENSTOCK_ASSIGN(const auto head, source_.look_checked(dataset_.address, kHeadBytes, "FAHD"));
    HeaderReader reader(head);
    const std::uint64_t filtered = reader.skip(5).u8();
    const std::uint64_t entry_bytes = reader.u8();
    const std::uint64_t page_bits = reader.u8();
    const std::uint64_t entries = reader.u64();
    const std::uint64_t block = reader.u64();
    if (filtered != 0 || entry_bytes != 8 || entries != count_)
      return source_.corrupt(dataset_.address, "a list of chunks that does not fit its dataset");
    if (page_bits >= 64 || entries > std::uint64_t{1} << page_bits)
      return error(Errc::unsupported,
                   fmt::format("the list of its {} chunks has pages, which are not read", entries));
    if (block == kHdf5Nowhere) return success();
    constexpr std::uint64_t kFront = 4 + 1 + 1 + 8;
    PENSTOCK_ASSIGN(const auto bytes, source_.look_checked(block, kFront + entries * 8 + 4, "FADB"));
    for (std::uint64_t i = 0; i < count_; ++i)
      PENSTOCK_TRY(place(i, number_at(bytes, static_cast<std::size_t>(kFront + i * 8), 8)));
    return success();
  }

  Hdf5Source& source_;
  const Hdf5Object& dataset_;
  const StoredArray& array_;
  ArrayExtent& extent_;
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t count_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> placed_;  // number and offset, as the index has them
  bool ordered_ = true;
};

}  // namespace

Result<void> find_hdf5_chunks(Hdf5Source& source, const Hdf5Object& dataset, const StoredArray& array,
                              ArrayExtent& extent) {
  return ChunkFinder(source, dataset, array, extent).find();
}

}  // namespace penstock
