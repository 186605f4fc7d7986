// The bytes of an HDF5 file, by its own addresses and within bounds. Looking costs: who looks at far more
// than the file has, follows a file that leads in circles.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "datagen/format/byte_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr std::uint64_t kHdf5Nowhere = UINT64_MAX;  // the address of what is not there

class Hdf5Source {
 public:
  Hdf5Source(ByteWindow& window, std::uint64_t size)
      : window_(window), size_(size), budget_(4 * size + (1U << 20U)) {}

  // Addresses count from here.
  void set_base(std::uint64_t base) { base_ = base; }
  std::uint64_t size() const { return size_; }

  // The bytes at an address, valid until the next look. At most kMaxInspected.
  static constexpr std::size_t kMaxInspected = std::size_t{512} << 10;
  Result<std::span<const std::byte>> look(std::uint64_t address, std::uint64_t length);
  // As look, of metadata that ends in a checksum of all before it; the signature is checked too.
  Result<std::span<const std::byte>> look_checked(std::uint64_t address, std::uint64_t length,
                                                  std::string_view signature);

  // Walks over a version 1 B-tree of that kind (0: of a group, 1: of chunks): visits the entries of its
  // leaves, each a key of `key_bytes` and the address of a child. `what` is the tree in errors.
  Result<void> walk_tree(std::uint64_t root, std::uint64_t kind, std::uint64_t key_bytes,
                         std::string_view what,
                         const std::function<Result<void>(std::uint64_t at, std::span<const std::byte> entry,
                                                          std::uint64_t child)>& visit);
  // The offset in the file of `length` bytes at an address, all of which are there.
  Result<std::uint64_t> extent(std::uint64_t address, std::uint64_t length) const;

  Error error(Errc code, std::uint64_t address, std::string_view what) const;
  Error corrupt(std::uint64_t address, std::string_view what) const {
    return error(Errc::corrupt, address, what);
  }

 private:
  ByteWindow& window_;
  const std::uint64_t size_;  // of the object
  std::uint64_t base_ = 0;
  std::uint64_t budget_;
};

}  // namespace penstock
