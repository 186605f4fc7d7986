// Copies a checkpoint: one thread reads and checks it, and the caller's thread writes the copy.
//
// Threads: the caller is the drainer's thread, or the main thread of `penstock checkpoint drain`. It runs
// everything but ReadAhead::read_all() and finish(), which run on the thread that ReadAhead starts.
// Locks: ReadAhead::mutex_ guards free_slots_, chunks_read_, chunks_taken_ and failure_. No I/O happens with
// it held. The caller holds the run's drain lock of the store `to`, which keeps other processes out.
// Memory: CopyMemory holds four chunks; the first use of each allocates. A lack of memory there is an error.
// Ctrl-C: ends the copy at the next chunk if request.interruptible is true. If it is false, an error of
// on_written() ends the copy. A signal can then end only the reading thread, once *request.heed_signals is
// true.
// Crash: until commit() the copy is a folder in tmp/, which the next process removes (sweep()). commit()
// syncs the whole folder and renames it, so a checkpoint that is visible is complete.
#include "miniapps/checkpoint/copy_checkpoint.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/files/page_cache.hpp"
#include "miniapps/checkpoint/chunk_reader.hpp"

namespace penstock {
namespace {

constexpr size_t kRingSlots = std::tuple_size_v<CopyMemory>;
constexpr std::chrono::milliseconds kInterruptPoll{50};

// Reads the chunks of all files of a checkpoint ahead, in order, on its own thread. One other thread takes
// them with next(). The buffers are a ring: the reader fills a free slot, next() returns it, and the
// following next() frees it. One thread at a time uses a slot, so its bytes need no lock.
class ReadAhead {
 public:
  // `memory`: the buffers for the chunks. If it is null, the object uses buffers of its own.
  ReadAhead(const StoreFiles& files, std::string folder, std::span<const CheckpointFile> file_list,
            CopyMemory* memory)
      : files_(files),
        folder_(std::move(folder)),
        file_list_(file_list),
        memory_(memory != nullptr ? *memory : own_memory_) {}

  // Starts the thread that reads. A signal stops it only after `heed_signals` is set, or at once if
  // `heed_signals` is null. `heed_signals` must outlive the object.
  Result<void> start(const std::atomic<bool>* heed_signals) {
    try {
      thread_ = std::jthread([this, heed_signals](const std::stop_token& stop) {
        std::optional<IgnoreInterrupt> ignore_signals;
        if (heed_signals != nullptr) ignore_signals.emplace(*heed_signals);
        finish(read_all(stop));
      });
    } catch (const std::system_error& failure) {
      return no_more_threads(failure, 1);
    }
    return success();
  }

  // Returns the next chunk, whose bytes are valid until the next call; or the error that ended the reading.
  // Waits in periods of 50 ms, to notice a signal.
  Result<std::span<const std::byte>> next(bool interruptible) {
    std::unique_lock lock(mutex_);
    // The caller has written the chunk of the previous call by now, so its slot is free again.
    if (chunks_taken_ != 0) ++free_slots_;
    changed_.notify_all();
    while (chunks_read_ == chunks_taken_ && !failure_) {
      changed_.wait_for(lock, kInterruptPoll);
      if (interruptible) PENSTOCK_TRY(check_interrupt());
    }
    // The failure is returned only after all chunks that were read before it.
    if (chunks_read_ == chunks_taken_) return *failure_;
    return chunks_[chunks_taken_++ % kRingSlots];
  }

 private:
  // Reads all chunks; this is the work of thread_. The destructor of thread_ requests a stop. This ends a
  // wait for a free slot at once. A thread that is not waiting reads on until no slot is free.
  Result<void> read_all(const std::stop_token& stop) {
    for (const CheckpointFile& file : file_list_) {
      PENSTOCK_ASSIGN(ChunkReader reader, ChunkReader::open(files_, path_in(folder_, file.name), file));
      for (uint64_t index = 0; index < reader.chunks(); ++index) {
        const size_t slot = chunks_read_ % kRingSlots;  // chunks_read_ is changed by this thread alone
        {
          std::unique_lock lock(mutex_);
          if (!changed_.wait(lock, stop, [&] { return free_slots_ != 0; })) return success();
          --free_slots_;
        }
        // The read needs no lock, since only this thread uses a free slot. The lock around ++chunks_read_
        // makes the bytes visible to next().
        PENSTOCK_ASSIGN(chunks_[slot], reader.read(index, memory_[slot]));
        const std::lock_guard lock(mutex_);
        ++chunks_read_;
        changed_.notify_all();
      }
    }
    return success();
  }

  // Tells next() that no more chunks will come; always the last step of the thread. Sets failure_ even after
  // success: otherwise a call of next() after the last chunk would wait for ever.
  void finish(const Result<void>& done) {
    const std::lock_guard lock(mutex_);
    failure_ =
        done ? files_.error(Errc::internal, "more bytes were requested than were saved") : done.error();
    changed_.notify_all();
  }

  const StoreFiles files_;
  const std::string folder_;
  const std::span<const CheckpointFile> file_list_;
  CopyMemory own_memory_;
  CopyMemory& memory_;
  std::array<std::span<const std::byte>, kRingSlots> chunks_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t free_slots_ = kRingSlots;
  uint64_t chunks_read_ = 0;
  uint64_t chunks_taken_ = 0;
  std::optional<Error> failure_;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

// Returns the manifest of this checkpoint at the destination, if it lists the same files. Errors: not_found
// if the destination has no such checkpoint; already_exists if it has one with other files, or with a
// manifest that cannot be read.
// Syncs the checkpoint's folders, because the caller will report it as durable: the process that committed it
// may have been killed before it synced them.
Result<CheckpointManifest> find_existing_copy(const CheckpointStore& to, const CheckpointManifest& manifest) {
  auto existing = to.manifest(manifest.run, manifest.id);
  if (existing && existing->files == manifest.files) {
    PENSTOCK_TRY(to.files().sync_dir(path_in(kStoreCommitted, manifest.run)));
    PENSTOCK_TRY(to.files().sync_dir(kStoreCommitted));
    return existing;
  }
  if (!existing && existing.error().code == Errc::not_found) return existing;
  const std::string why = existing ? "its bytes differ" : existing.error().message();
  return to.files().error(
      Errc::already_exists,
      fmt::format("'{}' already exists: {}", CheckpointStore::folder(manifest.run, manifest.id), why));
}

// Reads the written files again and checks them. If possible, drops them from the page cache first, so that
// their bytes come from the device.
Result<void> read_again(const StoreFiles& files, const std::string& folder,
                        std::span<const CheckpointFile> written, bool interruptible,
                        const TakeChunk& take = nullptr) {
  for (const CheckpointFile& file : written) {
    const std::string object = path_in(folder, file.name);
    const auto path = files.backend().native_path(object);
    if (path && !files.tier().facts.memory) static_cast<void>(evict(*path));
    PENSTOCK_TRY(read_chunks(files, object, file, interruptible, take));
  }
  return success();
}

// Checks that the existing checkpoint has the bytes of its manifest. If not, the error is already_exists, as
// for another checkpoint of the same name.
Result<void> check_existing_copy(const CheckpointStore& to, const CheckpointManifest& manifest,
                                 const CopyRequest& request) {
  const std::string folder = CheckpointStore::folder(manifest.run, manifest.id);
  const auto take = [&](uint64_t, std::span<const std::byte> bytes) -> Result<void> {
    return request.on_written ? request.on_written(bytes.size()) : success();
  };
  const auto checked = read_again(to.files(), folder, manifest.files, request.interruptible, take);
  if (checked || !is_data_error(checked.error().code)) return checked;
  return to.files().error(Errc::already_exists,
                          fmt::format("'{}' already exists: {}", folder, checked.error().message()));
}

// Copies all files: the thread of `ahead` reads them, and this thread writes them. After an early return, the
// destructor of `ahead` ends its thread, and the destructor of PendingCheckpoint removes the folder.
Result<void> copy_files(const StoreFiles& from, PendingCheckpoint& to, const CheckpointManifest& manifest,
                        const CopyRequest& request) {
  const auto report_written = [&](uint64_t bytes) -> Result<void> {
    return request.on_written && bytes != 0 ? request.on_written(bytes) : success();
  };
  ReadAhead ahead(from, CheckpointStore::folder(manifest.run, manifest.id), manifest.files, request.memory);
  PENSTOCK_TRY(ahead.start(request.heed_signals));
  for (const CheckpointFile& file : manifest.files) {
    uint64_t last_piece_bytes = 0;
    // Returns the next chunk, to be written. The reader has compared each chunk with its checksum, so the
    // copy has the checksums of the original. Also reports the previous piece as written: write_pieces() asks
    // for a piece only after it has written the one before.
    const auto next_piece = [&](uint64_t) -> Result<std::span<const std::byte>> {
      if (request.interruptible) PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(report_written(last_piece_bytes));
      PENSTOCK_ASSIGN(const auto chunk, ahead.next(request.interruptible));
      last_piece_bytes = chunk.size();
      return chunk;
    };
    PENSTOCK_TRY(to.write_pieces(file.name, file.rank, file.bytes, next_piece));
    PENSTOCK_TRY(report_written(last_piece_bytes));
  }
  return success();
}

}  // namespace

// The order matters: the files are written and synced, then read back, then committed. A commit before the
// read back would make the checkpoint visible before it is checked.
Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest, const CopyRequest& request) {
  PENSTOCK_TRY(to.still_there());
  auto existing = find_existing_copy(to, manifest);
  if (existing && request.read_existing) PENSTOCK_TRY(check_existing_copy(to, manifest, request));
  if (existing || existing.error().code != Errc::not_found) return existing;
  PENSTOCK_ASSIGN(const auto pending, to.stage(manifest.run, "drain", manifest.bytes(), request.headroom));
  PENSTOCK_TRY(copy_files(from.files(), *pending, manifest, request));
  if (request.read_back)
    PENSTOCK_TRY(read_again(to.files(), pending->folder(), manifest.files, request.interruptible));
  auto committed = pending->commit(manifest);
  if (!committed && committed.error().code == Errc::already_exists) return find_existing_copy(to, manifest);
  return committed;
}

}  // namespace penstock
