// A checkpoint store: a folder of a tier that holds checkpoints. A checkpoint becomes complete and durable in
// one step, or does not appear at all. The files in the store are its whole state; no index exists.
//
//   STORE.json                              uuid, format, role, durability
//   lock                                    held while free space is counted and reserved
//   pairs/<run>                             in a fast store: uuid of the slow store that the run drains to
//   locks/<run>.<purpose>                   held by the process that saves (or drains) the run
//   reserved/<run>.<purpose>.<uuid>         bytes reserved for the folder of the same name in tmp/
//   taken/<run>.<purpose>.<uuid>.<rank>     how many of these bytes the rank has allocated on the tier
//   tmp/<run>.<purpose>.<uuid>/             a pending checkpoint; purpose = save, drain
//   ckpt/<run>/<step>.<generation>/         a committed checkpoint: files and MANIFEST
//   trash/                                  checkpoints that are being removed
//   quarantine/                             checkpoints that were found wrong, for people to inspect
//   penstock-ceiling/                       files of the ceiling's measurement (kCeilingFolder)
//   LATEST                                  a hint for people; never read
//
// To commit: each file is synced and published, then MANIFEST, then the folder in tmp/ is synced. The folder
// ckpt/<run> is made if it does not exist, and ckpt/ is synced. The folder in tmp/ is renamed into it, where
// the name must be free. Then both parent folders are synced, and only then is the checkpoint acknowledged.
// To remove: the folder is renamed into trash/, its old parent folder is synced. Then it is removed with its
// files.
//
// Errors name the tier and the object. A store that cannot be read is an error, never an empty store.
// Threads: any thread may use a CheckpointStore; only one thread may use a PendingCheckpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"

namespace penstock {

// The names of a store's files and folders.
inline constexpr std::string_view kStoreFile = "STORE.json";
inline constexpr std::string_view kStoreLock = "lock";
inline constexpr std::string_view kStoreLatest = "LATEST";
inline constexpr std::string_view kStoreLocks = "locks";
inline constexpr std::string_view kStoreReserved = "reserved";
inline constexpr std::string_view kStoreTaken = "taken";
inline constexpr std::string_view kStoreTmp = "tmp";
inline constexpr std::string_view kStoreCommitted = "ckpt";
inline constexpr std::string_view kStoreTrash = "trash";
inline constexpr std::string_view kStoreQuarantine = "quarantine";
// A folder at the store's root, which `penstock checkpoint bench` makes while it measures the tier's ceiling.
// A killed bench leaves it behind.
inline constexpr std::string_view kCeilingFolder = "penstock-ceiling";
inline constexpr std::string_view kStoreFolders[] = {
    kStoreLocks, kStoreReserved, kStoreTaken, kStoreTmp, kStoreCommitted, kStoreTrash, kStoreQuarantine};

inline constexpr size_t kUuidDigits = 32;
// The most bytes of STORE.json and of a file in reserved/ or taken/.
inline constexpr uint64_t kMostSmallText = 64U << 10;

// Returns "a/b" for "a" and "b".
std::string path_in(std::string_view folder, std::string_view name);
// Returns "b" for "a/b".
std::string_view last_part(std::string_view name);

// Checks that `purpose` is 1 to 20 small letters; else invalid_argument. Such a purpose has no dot, so
// "<run>.<purpose>" can be split in one way only.
Result<void> check_purpose(std::string_view purpose);
// new_pending_name(): makes a name for a pending checkpoint, "<run>.<purpose>.<uuid>" with a new uuid.
// is_pending_name(): whether `name` has this form, with this run and purpose.
std::string new_pending_name(std::string_view run, std::string_view purpose);
bool is_pending_name(std::string_view name, std::string_view run, std::string_view purpose);

// The operations of a store on the files and folders of its tier. Each error names the store. Any thread may
// use it. The tier must outlive the object.
class StoreFiles {
 public:
  explicit StoreFiles(const Tier& tier) : tier_(&tier) {}

  // Puts "store 'fast': " in front of the error's text.
  Error named(Error error) const;
  Error error(Errc code, std::string_view what) const;
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result.ok()) return named(std::move(result).error());
    return result;
  }

  Backend& backend() const { return *tier_->backend; }
  const Tier& tier() const { return *tier_; }

  // Reads an object of at most `most` bytes; a larger one is corrupt.
  Result<std::string> read_text(std::string_view name, uint64_t most) const;
  Result<void> write_text(std::string_view name, std::string_view text, Durability wanted,
                          IfExists if_exists) const;

  // All entries of the folder, sorted by name.
  Result<std::vector<Entry>> list(std::string_view folder) const;
  // As list(), but empty if the folder does not exist.
  Result<std::vector<Entry>> list_if_there(std::string_view folder) const;
  Result<bool> is_there(std::string_view name) const;

  Result<void> make_folders(std::string_view folder) const {
    return named(backend().names().make_folders(folder));
  }
  Result<void> rename(std::string_view from, std::string_view to) const {
    return named(backend().names().rename_noreplace(from, to));
  }
  Result<void> sync_dir(std::string_view folder) const { return named(backend().names().sync_dir(folder)); }
  // Removes an object or an empty folder. Success if it does not exist.
  Result<void> remove(std::string_view name) const;
  // Removes a folder with all its contents. Other processes may remove it at the same time; none may write to
  // it. A symbolic link is removed, its target stays. Success if the folder does not exist.
  Result<void> remove_tree(const Entry& entry) const;
  Result<void> remove_tree(std::string_view name) const;

 private:
  const Tier* tier_;
};

enum class StoreRole : uint8_t { fast, slow };
// The text in STORE.json: "fast" or "slow".
std::string_view role_name(StoreRole role);
// The durability of a store whose bytes survive the end of the process, but no power failure.
inline constexpr std::string_view kVolatile = "volatile";

class CheckpointStore;

// A checkpoint that is being written, in a folder in tmp/. The destructor removes the folder unless it was
// committed, and ignores errors; the next sweep() removes what remains. Only one thread may use it.
class PendingCheckpoint {
 public:
  ~PendingCheckpoint();
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  const std::string& folder() const { return folder_; }  // below the root; other ranks pass it to join()

  // Writes one file and syncs its bytes; returns its entry for the manifest, with the CRC32C of each chunk.
  // Ctrl-C ends it between two chunks.
  Result<CheckpointFile> write(std::string_view name, uint64_t rank, std::span<const std::byte> bytes);
  // Like write(), but the entry has no CRCs, and Ctrl-C does not end it. `more` returns the file's bytes
  // piece by piece, in order. Each piece has kCheckpointChunk bytes; only the last piece may be shorter. An
  // error of `more` ends the writing.
  using Pieces = std::function<Result<std::span<const std::byte>>(uint64_t offset)>;
  Result<CheckpointFile> write_pieces(std::string_view name, uint64_t rank, uint64_t bytes,
                                      const Pieces& more);

  // Writes MANIFEST, syncs, and renames the folder into ckpt/. Sets `store_uuid` and `commit_time`.
  // already_exists if that checkpoint exists. Call it once: the PendingCheckpoint cannot be used afterwards,
  // even after an error. After an error that comes later than the rename, the checkpoint exists and may or
  // may not be durable; it must not be acknowledged.
  Result<CheckpointManifest> commit(CheckpointManifest manifest);

  // Returns a PendingCheckpoint for a rank that did not call stage(). It writes into the folder of the rank
  // that did, and only that rank commits or removes the folder. not_found, with advice, if this rank does not
  // see the folder.
  static Result<std::unique_ptr<PendingCheckpoint>> join(CheckpointStore& store, std::string folder);
  // With these functions the ranks tell the rank that commits which files they wrote. report_files(): writes
  // the list of this rank's files into the folder and syncs it. collect_files(): reads the lists of all ranks
  // and then removes them. not_found if the list of a rank is missing.
  Result<void> report_files(uint64_t rank, std::span<const CheckpointFile> files);
  Result<std::vector<CheckpointFile>> collect_files(uint64_t ranks);

 private:
  friend class CheckpointStore;
  PendingCheckpoint(CheckpointStore& store, std::string folder, bool is_owner);
  Result<void> publish(const CheckpointManifest& manifest);
  Result<void> check_all_written(const CheckpointManifest& manifest) const;
  void discard();

  // These functions note in taken/ how many bytes this rank has allocated (room.hpp). before_create() is
  // called before a file is created, after_create() once its writer exists, and after_write() after each
  // write. If a caller writes the files of several ranks, the names of all notes have the first of these
  // ranks. If a note cannot be written, its bytes count twice (as allocated and as reserved) until the next
  // note: free space is then underestimated.
  void before_create(uint64_t rank, uint64_t bytes);
  void after_create();
  void after_write(uint64_t bytes);
  void write_note();

  CheckpointStore& store_;
  const StoreFiles files_;
  const std::string folder_;
  const bool is_owner_;  // false after join(): then the destructor removes nothing
  bool finished_ = false;

  std::optional<uint64_t> note_rank_;  // the rank in the names of the notes
  uint64_t file_bytes_ = 0;
  uint64_t free_before_ = 0;      // free bytes before the file was created; 0: unknown
  bool allocated_whole_ = false;  // the tier allocated the whole file when it was created
  uint64_t allocated_bytes_ = 0;
  uint64_t noted_bytes_ = 0;
};

class CheckpointStore {
 public:
  // Opens the store at the tier's root. Without a STORE.json: corrupt if checkpoints exist, else not_found.
  // With one: corrupt if its content is not that of a checkpoint store; unsupported if it has another format.
  // unsupported, too, if the back end cannot rename folders. The tier must outlive the store.
  static Result<std::unique_ptr<CheckpointStore>> open(const Tier& tier);
  // As open(), but first makes a store if none exists: its folders, then STORE.json, synced. invalid_argument
  // if the folder has other files, or if the existing store has another role. The tier determines the
  // durability: "volatile" in memory, "shared" on a network, otherwise "node".
  static Result<std::unique_ptr<CheckpointStore>> open_or_make(const Tier& tier, StoreRole role);

  const std::string& uuid() const { return uuid_; }
  StoreRole role() const { return role_; }
  // What the bytes survive, as in STORE.json. kVolatile: the end of the processes only. "node": a power
  // failure, but not the loss of this machine. "shared": the loss of any one machine.
  const std::string& durability() const { return durability_; }
  const Tier& tier() const { return files_.tier(); }
  const StoreFiles& files() const { return files_; }

  // Checks that the store at the root is still the one that was opened; if not, the error is `io`. Called at
  // the start of stage(), commit() and most other operations that write. So nothing is written below the
  // mount point of a tier that was unmounted.
  Result<void> still_there() const;

  // Takes the lock of the run for `purpose` ("save" or "drain"), which only one process can hold. Does not
  // wait: `busy`, naming run and store, if another process holds it.
  Result<std::unique_ptr<Lock>> lock_run(std::string_view run, std::string_view purpose);

  // recorded_slow_store(): the uuid of the slow store that this run drains to from this store; nothing if
  // none is recorded. record_slow_store(): records it; only forget_run() removes the record. The uuid
  // prevents that an empty folder is mistaken for the slow tier that should be mounted there.
  Result<std::optional<std::string>> recorded_slow_store(std::string_view run) const;
  Result<void> record_slow_store(std::string_view run, const CheckpointStore& slow);

  // Reserves `bytes` and makes an empty folder in tmp/. no_space if less than bytes + headroom is free after
  // all other reservations are subtracted. The caller holds the run's lock for `purpose`. Takes the store's
  // lock during the count: waits for it up to 5 s, then `busy`.
  Result<std::unique_ptr<PendingCheckpoint>> stage(std::string_view run, std::string_view purpose,
                                                   uint64_t bytes, uint64_t headroom);
  // The bytes that stage() would find free if its headroom were 0. A byte of a pending checkpoint counts as
  // used if it is allocated on the tier, else as reserved; it counts as both until a note covers it
  // (room.hpp). UINT64_MAX if the back end does not know its free bytes.
  Result<uint64_t> free_space() const;
  // As free_space(), but as if all committed and pending checkpoints were removed.
  Result<uint64_t> space_if_emptied() const;

  // Removes the files that dead processes left in tmp/, reserved/ and taken/ for this run and `purpose`, and
  // all of trash/. The caller holds the run's lock for `purpose`. Returns the number of folders that it
  // removed. It also syncs ckpt/: a process may have been killed between its rename and its sync.
  Result<uint64_t> sweep(std::string_view run, std::string_view purpose);

  // Removes the folder of a ceiling measurement if nothing in it has changed for an hour; returns whether it
  // removed one. sweep() calls it too.
  Result<bool> remove_ceiling_leftovers();

  Result<std::vector<std::string>> runs() const;
  // Reads the manifest, and compares the files in the folder with it. corrupt or truncated: no MANIFEST, one
  // of another checkpoint, symbolic links, files that are missing or have another size. unsupported: another
  // version of the format. not_found if the checkpoint does not exist, or if another process removed it
  // during the read.
  Result<CheckpointManifest> manifest(std::string_view run, const CheckpointId& id) const;
  Result<bool> has(std::string_view run, const CheckpointId& id) const;
  static std::string folder(std::string_view run, const CheckpointId& id);

  // Reads a file of a committed checkpoint from its beginning to its end. Checks each chunk before it passes
  // the chunk to `take` (which may be null). Errors: corrupt (names the file and the wrong chunk's first
  // byte), truncated (names the file), or not_found if another process removed the checkpoint meanwhile.
  using TakeChunk = std::function<Result<void>(uint64_t offset, std::span<const std::byte> bytes)>;
  Result<void> read_file(std::string_view run, const CheckpointId& id, const CheckpointFile& file,
                         const TakeChunk& take) const;
  // Reads and checks all files of the checkpoint, as read_file() does.
  Result<void> verify(std::string_view run, const CheckpointManifest& manifest) const;

  // Removes what is left of a run without checkpoints: its folder in ckpt/ and its files in pairs/ and
  // locks/. The run's name must not be used again, and no process may hold a lock of it.
  Result<void> forget_run(std::string_view run);

  // Both functions move a checkpoint out of ckpt/. remove(): into trash/, where its files are unlinked.
  // quarantine(): into quarantine/, and writes `why` into a text file next to it.
  Result<void> remove(std::string_view run, const CheckpointId& id);
  Result<void> quarantine(std::string_view run, const CheckpointId& id, std::string_view why);

  // Writes LATEST; errors are ignored, since it is only a hint.
  void hint_latest(std::string_view run, const CheckpointId& id) noexcept;

 private:
  friend class PendingCheckpoint;
  CheckpointStore(const StoreFiles& files, std::string uuid, StoreRole role, std::string durability)
      : files_(files), uuid_(std::move(uuid)), role_(role), durability_(std::move(durability)) {}
  Result<std::unique_ptr<Lock>> lock_space() const;
  Result<CheckpointManifest> read_manifest(std::string_view run, const CheckpointId& id) const;
  Error not_found_if_gone(std::string_view run, const CheckpointId& id, Error error) const;
  Result<std::string> put_aside(std::string_view run, const CheckpointId& id, std::string_view where);

  const StoreFiles files_;
  const std::string uuid_;
  const StoreRole role_;
  const std::string durability_;
};

}  // namespace penstock
