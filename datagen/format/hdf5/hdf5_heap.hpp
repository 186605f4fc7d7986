// Reads objects of a fractal heap of an HDF5 file. Groups with many links keep their links in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datagen/format/hdf5/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class Hdf5Heap {
 public:
  // Reads the header at `address`. `unsupported` if the heap's blocks are filtered.
  static Result<Hdf5Heap> open(Hdf5Source& source, uint64_t address);

  // The bytes of the object with this identifier. `unsupported` if it is too large for a block of the heap.
  Result<std::vector<std::byte>> object(std::span<const std::byte> identifier);

 private:
  // A direct block has objects, an indirect one has addresses of blocks. A block of the heap begins at
  // `offset` of the heap's own address range.
  struct Block {
    uint64_t address = 0;
    uint64_t offset = 0;
    uint64_t rows = 0;  // of an indirect block
  };

  Hdf5Heap(Hdf5Source& source, uint64_t address) : source_(source), address_(address) {}
  Result<void> read_header();
  uint64_t row_bytes(uint64_t row) const;  // of one block in the row of an indirect block
  Result<Block> direct_block(uint64_t offset);
  Result<std::span<const std::byte>> indirect_block(size_t depth, uint64_t address, uint64_t length);
  Error damaged() const { return source_.corrupt(address_, "a damaged heap"); }

  Hdf5Source& source_;
  const uint64_t address_;  // of the header
  uint64_t width_ = 0;      // blocks in a row of an indirect block
  uint64_t first_row_bytes_ = 0;
  uint64_t direct_rows_ = 0;  // the rows of an indirect block that have direct blocks
  uint64_t offset_bytes_ = 0;
  uint64_t length_bytes_ = 0;
  Block root_;
  struct LoadedBlock {
    uint64_t address = 0;
    std::vector<std::byte> bytes{};
  };
  std::vector<LoadedBlock> blocks_;  // indirect blocks by depth
};

}  // namespace penstock
