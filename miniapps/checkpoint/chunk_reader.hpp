// Reads the files of a checkpoint chunk by chunk, and compares each chunk with its CRC32C in the manifest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Reads one file of a checkpoint, on one thread. The `file` that open() gets must outlive the reader.
class ChunkReader {
 public:
  // Opens `object` and compares its length with that in `file`, which is the object's entry in the manifest.
  // corrupt if the object is missing; corrupt or truncated if its length differs.
  static Result<ChunkReader> open(const StoreFiles& files, std::string object, const CheckpointFile& file);

  uint64_t chunks() const { return chunk_count(file_->bytes); }
  // Reads one chunk into the buffer, which grows if necessary, and checks it. Returns the chunk's bytes in
  // the buffer.
  Result<std::span<const std::byte>> read(uint64_t index, Buffer& buffer);

  // The two halves of read(), for a caller that reads through a queue of the same back end. prepare_read()
  // returns which bytes to read into which memory. check_read() checks the bytes that were read, and returns
  // them.
  Result<ReadAt> prepare_read(uint64_t index, Buffer& buffer);
  Result<std::span<const std::byte>> check_read(uint64_t index, const Buffer& buffer,
                                                const Result<uint64_t>& read) const;

 private:
  ChunkReader(const StoreFiles& files, std::string object, const CheckpointFile& file,
              std::unique_ptr<Reader> reader)
      : files_(files), object_(std::move(object)), file_(&file), reader_(std::move(reader)) {}

  StoreFiles files_;
  std::string object_;
  const CheckpointFile* file_;
  std::unique_ptr<Reader> reader_;
};

// Reads the whole file, with several chunks in flight if a queue for the back end can be made. Passes the
// chunks in order to `take`, which may be null. If `interruptible`, Ctrl-C ends the reading between two
// chunks.
using TakeChunk = std::function<Result<void>(uint64_t offset, std::span<const std::byte> bytes)>;
Result<void> read_chunks(const StoreFiles& files, const std::string& object, const CheckpointFile& file,
                         bool interruptible, const TakeChunk& take);

}  // namespace penstock
