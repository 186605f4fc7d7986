// A checkpoint's way from one store to another: a thread reads and proves, the caller's writes.
#include <fmt/format.h>

#include <array>
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
#include "miniapps/checkpoint/store.hpp"
#include "miniapps/checkpoint/store_files.hpp"

namespace penstock {
namespace {

constexpr std::size_t kRing = std::tuple_size_v<CopyMemory>;
constexpr std::chrono::milliseconds kLookAround{50};

// The chunks of all files of a checkpoint, in order, read ahead by a thread of its own. One thread takes
// them.
class ReadAhead {
 public:
  // `memory` may be null.
  ReadAhead(const StoreFiles& files, std::string folder, std::span<const CheckpointFile> what,
            CopyMemory* memory)
      : files_(files),
        folder_(std::move(folder)),
        what_(what),
        memory_(memory != nullptr ? *memory : own_memory_) {}

  // `over`: the thread works on until then though we were asked to stop; null where it does not.
  Result<void> start(const std::atomic<bool>* over) {
    try {
      thread_ = std::jthread([this, over](const std::stop_token& stop) {
        std::optional<WorkOn> works_on;
        if (over != nullptr) works_on.emplace(*over);
        finish(read_all(stop));
      });
    } catch (const std::system_error& failure) {
      return no_more_threads(failure, 1);
    }
    return success();
  }

  // The next chunk, which stays until the call after this one; or what went wrong on the way to it.
  Result<std::span<const std::byte>> next(bool interruptible) {
    std::unique_lock lock(mutex_);
    if (taken_ != 0) ++free_;
    changed_.notify_all();
    while (read_ == taken_ && !failure_) {
      changed_.wait_for(lock, kLookAround);
      if (interruptible) PENSTOCK_TRY(check_interrupt());
    }
    if (read_ == taken_) return *failure_;
    return chunks_[taken_++ % kRing];
  }

 private:
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
        PENSTOCK_ASSIGN(chunks_[slot], reader.read(index, memory_[slot]));
        const std::lock_guard lock(mutex_);
        ++read_;
        changed_.notify_all();
      }
    }
    return success();
  }

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
  std::jthread thread_;  // last: it ends before what it uses
};

// That checkpoint where it was to go: success where its manifest names the same bytes. Who brought it there
// may have been killed before its name was on the disk.
Result<CheckpointManifest> same_there(const CheckpointStore& to, const CheckpointManifest& manifest) {
  auto there = to.manifest(manifest.run, manifest.id);
  if (there && there->files == manifest.files) {
    const StoreFiles files(to.tier());
    PENSTOCK_TRY(files.sync_dir(below(kStoreCommitted, manifest.run)));
    PENSTOCK_TRY(files.sync_dir(kStoreCommitted));
    return there;
  }
  if (!there && there.error().code == Errc::not_found) return there;
  const std::string why = there ? "it is of other bytes" : there.error().message();
  return StoreFiles(to.tier()).error(
      Errc::already_exists,
      fmt::format("'{}' is there already: {}", CheckpointStore::folder(manifest.run, manifest.id), why));
}

// From the device, where the system can be made to forget.
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

// Whether what is there is what its manifest says: already_exists where it is not, so that it stands in
// the way as another checkpoint would.
Result<void> prove_there(const CheckpointStore& to, const CheckpointManifest& manifest,
                         const CopyRequest& request) {
  const StoreFiles files(to.tier());
  const std::string folder = CheckpointStore::folder(manifest.run, manifest.id);
  const auto take = [&](std::uint64_t, std::span<const std::byte> bytes) -> Result<void> {
    return request.gone_on ? request.gone_on(bytes.size()) : success();
  };
  const auto whole = read_again(files, folder, manifest.files, request.interruptible, take);
  if (whole || !found_wrong(whole.error().code)) return whole;
  return files.error(Errc::already_exists,
                     fmt::format("'{}' is there already: {}", folder, whole.error().message()));
}

}  // namespace

Result<void> Staged::copy_in(const StoreFiles& from, const CheckpointManifest& manifest,
                             const CopyRequest& request) {
  interruptible_ = request.interruptible;
  const auto written = [&](std::uint64_t bytes) -> Result<void> {
    return request.gone_on && bytes != 0 ? request.gone_on(bytes) : success();
  };
  ReadAhead ahead(from, CheckpointStore::folder(manifest.run, manifest.id), manifest.files, request.memory);
  PENSTOCK_TRY(ahead.start(request.over));
  for (const CheckpointFile& file : manifest.files) {
    std::uint64_t before = 0;  // bytes of the piece that has just been written
    // The reader has held each chunk against its checksum: those of the copy are the original's.
    const auto more = [&](std::uint64_t) -> Result<std::span<const std::byte>> {
      PENSTOCK_TRY(written(before));
      PENSTOCK_ASSIGN(const auto chunk, ahead.next(request.interruptible));
      before = chunk.size();
      return chunk;
    };
    PENSTOCK_TRY(write_pieces(file.name, file.rank, file.bytes, more, nullptr));
    PENSTOCK_TRY(written(before));
  }
  return success();
}

Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest, const CopyRequest& request) {
  PENSTOCK_TRY(to.still_there());
  auto there = same_there(to, manifest);
  if (there && request.read_there) PENSTOCK_TRY(prove_there(to, manifest, request));
  if (there || there.error().code != Errc::not_found) return there;
  PENSTOCK_ASSIGN(const auto staged, to.stage(manifest.run, "drain", manifest.bytes(), request.headroom));
  PENSTOCK_TRY(staged->copy_in(StoreFiles(from.tier()), manifest, request));
  if (request.read_back)
    PENSTOCK_TRY(read_again(StoreFiles(to.tier()), staged->folder(), manifest.files, request.interruptible));
  auto committed = staged->commit(manifest);
  if (!committed && committed.error().code == Errc::already_exists) return same_there(to, manifest);
  return committed;
}

}  // namespace penstock
