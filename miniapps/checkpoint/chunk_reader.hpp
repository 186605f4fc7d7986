// Reads a checkpoint's files chunk by chunk, and proves each.
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

// A file of a checkpoint. One thread.
class ChunkReader {
 public:
  // corrupt or truncated where the object is not as long as the manifest says, or missing.
  static Result<ChunkReader> open(const StoreFiles& files, std::string object, const CheckpointFile& file);

  std::uint64_t chunks() const { return whole_chunks(file_->bytes); }
  // Grows the buffer as need be; what is returned is in it.
  Result<std::span<const std::byte>> read(std::uint64_t index, Buffer& buffer);

  // The two halves of it, with the reading left to a queue of the same back end: where the chunk's bytes are
  // to go, and whether those that lie there are the file's.
  Result<ReadAt> to_read(std::uint64_t index, Buffer& buffer);
  Result<std::span<const std::byte>> prove(std::uint64_t index, const Buffer& buffer,
                                           const Result<std::uint64_t>& read) const;

 private:
  ChunkReader(const StoreFiles& files, std::string object, const CheckpointFile& file,
              std::unique_ptr<Reader> reader)
      : files_(files), object_(std::move(object)), file_(&file), reader_(std::move(reader)) {}

  StoreFiles files_;
  std::string object_;
  const CheckpointFile* file_;
  std::unique_ptr<Reader> reader_;
};

// The whole file, with several chunks on their way at once where the machine has threads or the back end a
// queue for that; `take`, which may be null, gets them in order. Interrupts are looked at between chunks
// where wanted.
using TakeChunk = std::function<Result<void>(std::uint64_t offset, std::span<const std::byte> bytes)>;
Result<void> read_chunks(const StoreFiles& files, const std::string& object, const CheckpointFile& file,
                         bool interruptible, const TakeChunk& take);

}  // namespace penstock
