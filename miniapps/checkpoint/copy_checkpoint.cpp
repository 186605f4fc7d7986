// A thread reads and checks the checkpoint; the caller's thread writes it.
//
// Threads: the caller is the drainer's thread, or the main thread of `penstock checkpoint drain`. It runs
// everything but ReadAhead::read_all() and finish(), which run on the thread that ReadAhead starts.
// Locks: ReadAhead::mutex_ guards free_, read_, taken_ and failure_. No I/O happens with it held. The caller
// holds the run's drain lock of the store `to`, which keeps other processes out.
// Memory: CopyMemory holds four chunks; the first use of each allocates. A lack of memory there is an error.
// Ctrl-C: if request.interruptible, it ends the copy at the next chunk. Else only on_written() does.
// Crash: until commit() the copy is a folder in tmp/, which the next process sweeps. commit() syncs all of
// it and renames the folder, so a checkpoint that is visible is complete.
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

constexpr std::size_t kRing = std::tuple_size_v<CopyMemory>;
constexpr std::chrono::milliseconds kInterruptPoll{50};

// Reads the chunks of all files of a checkpoint ahead, in order, on its own thread. One other thread takes
// them with next(). The buffers are a ring: the reader fills a free slot, next() returns it, and the
// following next() frees it. One thread at a time uses a slot, so its bytes need no lock.
class ReadAhead {
 public:
  // `memory` may be null.
  ReadAhead(const StoreFiles& files, std::string folder, std::span<const CheckpointFile> what,
            CopyMemory* memory)
      : files_(files),
        folder_(std::move(folder)),
        what_(what),
        memory_(memory != nullptr ? *memory : own_memory_) {}

  // A signal stops the thread only after `heed_signals` is set, or at once if `heed_signals` is null.
  // `heed_signals` must outlive this.
  Result<void> start(const std::atomic<bool>* heed_signals) {
    try {
      thread_ = std::jthread([this, heed_signals](const std::stop_token& stop) {
        std::optional<IgnoreInterrupt> works_on;
        if (heed_signals != nullptr) works_on.emplace(*heed_signals);
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
    // This frees the chunk of the last call: the caller has written it.
    if (taken_ != 0) ++free_;
    changed_.notify_all();
    while (read_ == taken_ && !failure_) {
      changed_.wait_for(lock, kInterruptPoll);
      if (interruptible) PENSTOCK_TRY(check_interrupt());
    }
    // Chunks that were read before a failure come first.
    if (read_ == taken_) return *failure_;
    return chunks_[taken_++ % kRing];
  }

 private:
  // The destructor of thread_ requests a stop. Then a wait ends at once, and a read ends after its chunk.
  Result<void> read_all(const std::stop_token& stop) {
    for (const CheckpointFile& file : what_) {
      PENSTOCK_ASSIGN(ChunkReader reader, ChunkReader::open(files_, below(folder_, file.name), file));
      for (std::uint64_t index = 0; index < reader.chunks(); ++index) {
        const std::size_t slot = read_ % kRing;  // read_ is changed by this thread alone
        {
          std::unique_lock lock(mutex_);
          if (!changed_.wait(lock, stop, [&] { return free_ != 0; })) return success();
          --free_;
        }
        // No lock for the read, since the slot was free. Counting it under the lock makes the bytes visible
        // to next().
        PENSTOCK_ASSIGN(chunks_[slot], reader.read(index, memory_[slot]));
        const std::lock_guard lock(mutex_);
        ++read_;
        changed_.notify_all();
      }
    }
    return success();
  }

  // Always the last step of the thread: without a failure_, one call of next() too many would wait for ever.
  void finish(const Result<void>& done) {
    const std::lock_guard lock(mutex_);
    failure_ = done ? files_.error(Errc::internal, "more was asked for than was saved") : done.error();
    changed_.notify_all();
  }

  const StoreFiles files_;
  const std::string folder_;
  const std::span<const CheckpointFile> what_;
  CopyMemory own_memory_;
  CopyMemory& memory_;
  std::array<std::span<const std::byte>, kRing> chunks_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t free_ = kRing;
  std::uint64_t read_ = 0;
  std::uint64_t taken_ = 0;
  std::optional<Error> failure_;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

// The checkpoint that already exists at the destination; success if its manifest names the same bytes. The
// process that committed it may have been killed before it synced the name. So the folders are synced here,
// before the caller may call it durable.
Result<CheckpointManifest> same_there(const CheckpointStore& to, const CheckpointManifest& manifest) {
  auto there = to.manifest(manifest.run, manifest.id);
  if (there && there->files == manifest.files) {
    PENSTOCK_TRY(to.files().sync_dir(below(kStoreCommitted, manifest.run)));
    PENSTOCK_TRY(to.files().sync_dir(kStoreCommitted));
    return there;
  }
  if (!there && there.error().code == Errc::not_found) return there;
  const std::string why = there ? "it is of other bytes" : there.error().message();
  return to.files().error(
      Errc::already_exists,
      fmt::format("'{}' is there already: {}", CheckpointStore::folder(manifest.run, manifest.id), why));
}

// Reads the written files and checks them. If possible, drops them from the page cache first, so that the
// device is read.
Result<void> read_again(const StoreFiles& files, const std::string& folder,
                        std::span<const CheckpointFile> written, bool interruptible,
                        const TakeChunk& take = nullptr) {
  for (const CheckpointFile& file : written) {
    const std::string object = below(folder, file.name);
    const auto path = files.backend().native_path(object);
    if (path && !files.tier().facts.memory) static_cast<void>(evict(*path));
    PENSTOCK_TRY(read_chunks(files, object, file, interruptible, take));
  }
  return success();
}

// Checks that the existing checkpoint has the bytes of its manifest. If not, the error is already_exists, as
// for another checkpoint of the same name.
Result<void> prove_there(const CheckpointStore& to, const CheckpointManifest& manifest,
                         const CopyRequest& request) {
  const std::string folder = CheckpointStore::folder(manifest.run, manifest.id);
  const auto take = [&](std::uint64_t, std::span<const std::byte> bytes) -> Result<void> {
    return request.on_written ? request.on_written(bytes.size()) : success();
  };
  const auto whole = read_again(to.files(), folder, manifest.files, request.interruptible, take);
  if (whole || !is_data_error(whole.error().code)) return whole;
  return to.files().error(Errc::already_exists,
                          fmt::format("'{}' is there already: {}", folder, whole.error().message()));
}

// On the caller's thread. After an early return, the destructor of `ahead` ends its thread, and the
// destructor of PendingCheckpoint removes the folder.
Result<void> copy_files(const StoreFiles& from, PendingCheckpoint& to, const CheckpointManifest& manifest,
                        const CopyRequest& request) {
  const auto written = [&](std::uint64_t bytes) -> Result<void> {
    return request.on_written && bytes != 0 ? request.on_written(bytes) : success();
  };
  ReadAhead ahead(from, CheckpointStore::folder(manifest.run, manifest.id), manifest.files, request.memory);
  PENSTOCK_TRY(ahead.start(request.heed_signals));
  for (const CheckpointFile& file : manifest.files) {
    std::uint64_t before = 0;  // bytes of the piece that was written last
    // The reader has compared each chunk with its checksum, so the copy has the checksums of the original.
    // write_pieces() asks for a piece only after it has written the piece before.
    const auto more = [&](std::uint64_t) -> Result<std::span<const std::byte>> {
      if (request.interruptible) PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(written(before));
      PENSTOCK_ASSIGN(const auto chunk, ahead.next(request.interruptible));
      before = chunk.size();
      return chunk;
    };
    PENSTOCK_TRY(to.write_pieces(file.name, file.rank, file.bytes, more));
    PENSTOCK_TRY(written(before));
  }
  return success();
}

}  // namespace

// The order matters: the files are written and synced, then read back, then committed. A read back after the
// commit would be too late, since the checkpoint would be visible before it is checked.
Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest, const CopyRequest& request) {
  PENSTOCK_TRY(to.still_there());
  auto there = same_there(to, manifest);
  if (there && request.read_there) PENSTOCK_TRY(prove_there(to, manifest, request));
  if (there || there.error().code != Errc::not_found) return there;
  PENSTOCK_ASSIGN(const auto staged, to.stage(manifest.run, "drain", manifest.bytes(), request.headroom));
  PENSTOCK_TRY(copy_files(from.files(), *staged, manifest, request));
  if (request.read_back)
    PENSTOCK_TRY(read_again(to.files(), staged->folder(), manifest.files, request.interruptible));
  auto committed = staged->commit(manifest);
  if (!committed && committed.error().code == Errc::already_exists) return same_there(to, manifest);
  return committed;
}

}  // namespace penstock
