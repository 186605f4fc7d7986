// Reads bytes of an HDF5 file at the addresses that the file itself uses, and checks bounds. It limits the
// number of bytes that all reads take together. Without the limit, circular references in a damaged file
// would make the parser read for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "datagen/format/byte_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr uint64_t kHdf5ChecksumBytes = 4;       // at the end of blocks with a signature
inline constexpr uint64_t kHdf5NoAddress = UINT64_MAX;  // the address that means "none"

class Hdf5Source {
 public:
  Hdf5Source(ByteWindow& window, uint64_t size)
      : window_(window), size_(size), byte_budget_(4 * size + (1U << 20U)) {}

  // Sets the offset in the file to which address 0 refers.
  void set_base(uint64_t base) { base_ = base; }
  uint64_t size() const { return size_; }

  // The `length` bytes at an address. `length` is at most kMaxReadBytes. The bytes are valid until the next
  // call.
  static constexpr size_t kMaxReadBytes = size_t{512} << 10;
  Result<std::span<const std::byte>> read_bytes(uint64_t address, uint64_t length);
  // Like read_bytes(), for metadata that begins with `signature` and ends with a checksum of all bytes before
  // it. Fails if the signature or the checksum is wrong. Returns the bytes without the checksum.
  Result<std::span<const std::byte>> read_checked_bytes(uint64_t address, uint64_t length,
                                                        std::string_view signature);

  // Walks through a version 1 B-tree whose node type is `kind` (0: group, 1: chunks). Calls `visit` for each
  // entry of its leaves. An entry consists of a key of `key_bytes` bytes and the address of a child. Error
  // messages call the tree `what`.
  Result<void> walk_tree(uint64_t root, uint64_t kind, uint64_t key_bytes, std::string_view what,
                         const std::function<Result<void>(uint64_t at, std::span<const std::byte> entry,
                                                          uint64_t child)>& visit);
  // Walks through a version 2 B-tree whose records are of the type `type`. Calls `visit` for each record.
  // Error messages call the tree `what`.
  Result<void> walk_second_tree(uint64_t address, uint64_t type, std::string_view what,
                                const std::function<Result<void>(std::span<const std::byte> record)>& visit);
  // Converts an address to an offset in the file. `truncated` unless the file contains all `length` bytes
  // from there on.
  Result<uint64_t> file_offset(uint64_t address, uint64_t length) const;

  Error error(Errc code, uint64_t address, std::string_view what) const;
  Error corrupt(uint64_t address, std::string_view what) const { return error(Errc::corrupt, address, what); }

 private:
  ByteWindow& window_;
  const uint64_t size_;  // bytes of the object
  uint64_t base_ = 0;
  uint64_t byte_budget_;
};

}  // namespace penstock
