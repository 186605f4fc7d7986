#include "miniapps/checkpoint/chunk_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr size_t kChunksInFlight = 4;

// Reads the chunks of one file ahead through a queue, and returns them in order.
class ChunksAhead {
 public:
  static Result<std::unique_ptr<ChunksAhead>> begin(const StoreFiles& files, ChunkReader& reader) {
    const size_t depth = std::min<size_t>(kChunksInFlight, reader.chunks());
    PENSTOCK_ASSIGN(std::unique_ptr<Queue> queue, files.named(deep_queue(files.backend(), depth)));
    return std::unique_ptr<ChunksAhead>(new ChunksAhead(reader, std::move(queue), depth));
  }

  // The next chunk. Its bytes are valid until the next call.
  Result<std::span<const std::byte>> next() {
    const uint64_t index = returned_++;
    // Submits reads until depth_ chunks are in flight. The new reads may use the slot of the chunk that the
    // previous call returned: its bytes were valid only until this call.
    while (submitted_ < reader_.chunks() && submitted_ < index + depth_) PENSTOCK_TRY(submit_next());
    Slot& slot = slots_[index % depth_];
    while (!slot.read_result) reap();
    return reader_.check_read(index, slot.buffer, *slot.read_result);
  }

 private:
  struct Slot {
    Buffer buffer;
    std::optional<Result<uint64_t>> read_result;
  };

  ChunksAhead(ChunkReader& reader, std::unique_ptr<Queue> queue, size_t depth)
      : reader_(reader), depth_(depth), queue_(std::move(queue)) {}

  Result<void> submit_next() {
    Slot& slot = slots_[submitted_ % depth_];
    slot.read_result.reset();
    PENSTOCK_ASSIGN(const ReadAt what, reader_.prepare_read(submitted_, slot.buffer));
    const Operation operation{what, submitted_ % depth_};
    while (queue_->submit(std::span(&operation, 1)) == 0) reap();
    ++submitted_;
    return success();
  }
  void reap() {
    std::array<Completion, kChunksInFlight> done;
    const size_t count = queue_->reap(done, 1);
    for (size_t i = 0; i < count; ++i) slots_[done[i].tag].read_result = std::move(done[i].bytes);
  }

  ChunkReader& reader_;
  const size_t depth_;
  std::array<Slot, kChunksInFlight> slots_;
  uint64_t submitted_ = 0;
  uint64_t returned_ = 0;
  const std::unique_ptr<Queue> queue_;  // last: its destructor waits for reads in flight into slots_
};

}  // namespace

Result<ChunkReader> ChunkReader::open(const StoreFiles& files, std::string object,
                                      const CheckpointFile& file) {
  PENSTOCK_TRY(files.named(check_checkpoint_file_name(file.name)));
  auto reader = files.named(files.backend().open(object));
  if (!reader && reader.error().code == Errc::not_found)
    return files.error(Errc::corrupt, fmt::format("'{}' is missing", object));
  if (!reader) return std::move(reader).error();
  PENSTOCK_ASSIGN(const uint64_t bytes, files.named((*reader)->size()));
  if (bytes != file.bytes)
    return files.error(bytes < file.bytes ? Errc::truncated : Errc::corrupt,
                       fmt::format("'{}' has {} bytes, and {} were saved", object, bytes, file.bytes));
  return ChunkReader(files, std::move(object), file, *std::move(reader));
}

Result<ReadAt> ChunkReader::prepare_read(uint64_t index, Buffer& buffer) {
  const uint64_t offset = index * kCheckpointChunk;
  const uint64_t bytes = std::min(kCheckpointChunk, file_->bytes - offset);
  if (!buffer.try_grow(std::min(kCheckpointChunk, whole_blocks(file_->bytes))))
    return files_.error(Errc::exhausted, fmt::format("no memory to read '{}'", object_));
  return ReadAt{reader_.get(), offset, buffer.first(bytes)};
}

Result<std::span<const std::byte>> ChunkReader::check_read(uint64_t index, const Buffer& buffer,
                                                           const Result<uint64_t>& read) const {
  if (!read) return files_.named(read.error());
  const uint64_t bytes = std::min(kCheckpointChunk, file_->bytes - index * kCheckpointChunk);
  const std::span<const std::byte> chunk = buffer.first(bytes);
  PENSTOCK_TRY(files_.named(check_chunk(*file_, index, crc32c(chunk), object_)));
  return chunk;
}

Result<std::span<const std::byte>> ChunkReader::read(uint64_t index, Buffer& buffer) {
  PENSTOCK_ASSIGN(const ReadAt what, prepare_read(index, buffer));
  const Result<void> read = reader_->read_at(what.offset, what.out);
  return check_read(index, buffer, read ? Result<uint64_t>(what.out.size()) : read.error());
}

Result<void> read_chunks(const StoreFiles& files, const std::string& object, const CheckpointFile& file,
                         bool interruptible, const TakeChunk& take) {
  PENSTOCK_ASSIGN(ChunkReader reader, ChunkReader::open(files, object, file));
  std::unique_ptr<ChunksAhead> ahead;
  if (reader.chunks() > 1) {
    // If no queue can be made (for lack of threads or descriptors), the chunks are read one by one.
    if (auto started = ChunksAhead::begin(files, reader); started) ahead = *std::move(started);
  }
  Buffer buffer;
  for (uint64_t index = 0; index < reader.chunks(); ++index) {
    if (interruptible) PENSTOCK_TRY(check_interrupt());
    PENSTOCK_ASSIGN(const auto chunk, ahead != nullptr ? ahead->next() : reader.read(index, buffer));
    if (take) PENSTOCK_TRY(take(index * kCheckpointChunk, chunk));
  }
  return success();
}

}  // namespace penstock
