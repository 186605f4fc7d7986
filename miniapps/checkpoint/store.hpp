// A checkpoint store: a folder of a tier in which checkpoints become whole and durable all at once, or not at
// all. What state a checkpoint is in is what lies there; nothing else is kept of it.
//
//   STORE.json                              uuid, format, role, durability
//   lock                                    held while space is counted and taken
//   pairs/<run>                             of a fast one: the uuid of the slow store that the run drains to
//   locks/<run>.<what>                      held by who saves to a run, or drains it
//   reserved/<run>.<what>.<uuid>            bytes promised to the folder of that name in tmp/
//   taken/<run>.<what>.<uuid>.<rank>        how many of these the rank has taken from the tier
//   tmp/<run>.<what>.<uuid>/                in the making; what = save, drain
//   ckpt/<run>/<step>.<generation>/         committed: files and MANIFEST
//   trash/ quarantine/                      on the way out; found wrong, kept for people
//   LATEST                                  a hint for people; never read
//
// To commit: files are published with their bytes synced, then MANIFEST, then the folder in tmp/ is synced,
// renamed into ckpt/ where nothing stands, and both parents are synced. Only then it is there. To remove:
// renamed into trash/, the parent synced, unlinked.
//
// Errors name the tier and the object. A store that cannot be read is an error, never an empty one. Threads:
// any, for what is const or takes names; a Staged is one thread's.
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
// Next to them, while `penstock checkpoint bench` measures the tier's ceiling.
inline constexpr std::string_view kCeilingFolder = "penstock-ceiling";
inline constexpr std::string_view kStoreFolders[] = {
    kStoreLocks, kStoreReserved, kStoreTaken, kStoreTmp, kStoreCommitted, kStoreTrash, kStoreQuarantine};

inline constexpr std::size_t kUuidDigits = 32;
inline constexpr std::uint64_t kMostSmallText = 64U << 10;  // bytes of STORE.json, a promise or a note

// "a/b".
std::string below(std::string_view folder, std::string_view name);
// "b" of "a/b".
std::string_view last_part(std::string_view name);

// invalid_argument unless `what` is 1 to 20 small letters: so that "<run>.<what>" is never two things.
Result<void> check_what(std::string_view what);
// "<run>.<what>.<uuid>", of a new uuid; and whether a name is one of those of run and what.
std::string new_making(std::string_view run, std::string_view what);
bool is_making(std::string_view name, std::string_view run, std::string_view what);

// The operations of a store on the files and folders of its tier: each error names the store. Any thread, as
// the Backend. The tier outlives it.
class StoreFiles {
 public:
  explicit StoreFiles(const Tier& tier) : tier_(&tier) {}

  // "store 'fast': ..." in front of what went wrong.
  Error named(Error error) const;
  Error error(Errc code, std::string_view what) const;
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result.ok()) return named(std::move(result).error());
    return result;
  }

  Backend& backend() const { return *tier_->backend; }
  const Tier& tier() const { return *tier_; }

  // Of at most `most` bytes: larger is corrupt.
  Result<std::string> read_text(std::string_view name, std::uint64_t most) const;
  Result<void> write_text(std::string_view name, std::string_view text, Durability wanted,
                          IfExists if_exists) const;

  // All at once, by name.
  Result<std::vector<Entry>> list(std::string_view folder) const;
  // As list(); nothing where the folder is not there.
  Result<std::vector<Entry>> list_if_there(std::string_view folder) const;
  Result<bool> is_there(std::string_view name) const;

  Result<void> make_folders(std::string_view folder) const {
    return named(backend().names().make_folders(folder));
  }
  Result<void> rename(std::string_view from, std::string_view to) const {
    return named(backend().names().rename_noreplace(from, to));
  }
  Result<void> sync_dir(std::string_view folder) const { return named(backend().names().sync_dir(folder)); }
  // An object or an empty folder; gone already is fine.
  Result<void> remove(std::string_view name) const;
  // With all that it holds. Other processes may remove it at the same time, and none may write to it. What
  // links lead to stays. Gone already is fine.
  Result<void> remove_tree(const Entry& entry) const;
  Result<void> remove_tree(std::string_view name) const;

 private:
  const Tier* tier_;
};

enum class StoreRole : std::uint8_t { fast, slow };
// What its bytes outlive: nothing but the process, this machine's failure not, or any one machine's.
enum class StoreDurability : std::uint8_t { volatile_memory, node, shared };

struct StoreFacts {
  std::string uuid;
  StoreRole role = StoreRole::slow;
  StoreDurability durability = StoreDurability::node;

  friend bool operator==(const StoreFacts&, const StoreFacts&) = default;
};

// "fast", "volatile" ... as STORE.json has them.
std::string_view role_name(StoreRole role);
std::string_view durability_name(StoreDurability durability);

class CheckpointStore;

// What a look into a store's ckpt/ finds: its manifest, or why it is none.
struct Listed {
  CheckpointId id;
  Result<CheckpointManifest> manifest;
  CheckpointStore* store = nullptr;  // set by find_checkpoints(), which looks into several
};

class TakenRoom;

// A checkpoint in the making, of one process; destroyed uncommitted, it is removed as well as it can be.
// One thread.
class Staged {
 public:
  ~Staged();
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  const std::string& folder() const { return folder_; }  // below the root, for other ranks: see join()

  // Writes one file and syncs its bytes; returns its entry of the manifest. CRCs are taken on the way.
  // Interrupts are looked at between chunks.
  Result<CheckpointFile> write(std::string_view name, std::uint64_t rank, std::span<const std::byte> bytes);
  // The same without CRCs and interrupts. `more` gives the file's bytes piece by piece, in order, each a
  // whole kCheckpointChunk but the last; an error of it ends the writing.
  using Pieces = std::function<Result<std::span<const std::byte>>(std::uint64_t offset)>;
  Result<CheckpointFile> write_pieces(std::string_view name, std::uint64_t rank, std::uint64_t bytes,
                                      const Pieces& more);

  // MANIFEST, the syncs and the rename. Fills in store and commit_time. already_exists where that
  // checkpoint is there already. After it, whatever it returns, the Staged is spent; an error that comes
  // behind the rename leaves a checkpoint that may or may not be durable, and is not acknowledged.
  Result<CheckpointManifest> commit(CheckpointManifest manifest);

  // Of ranks that did not make it: they write into the folder of the one that did, and leave the rest to it.
  // not_found, with what to look at, where the folder is not there for this rank.
  static Result<std::unique_ptr<Staged>> join(CheckpointStore& store, std::string folder);
  // What a rank has written, for the one that commits: an object of the folder, synced; and all of them, read
  // and removed again by that one. not_found where a rank's is missing.
  Result<void> leave_part(std::uint64_t rank, std::span<const CheckpointFile> files);
  Result<std::vector<CheckpointFile>> take_parts(std::uint64_t ranks);

 private:
  friend class CheckpointStore;
  Staged(CheckpointStore& store, std::string folder, bool owner);
  Result<void> publish(const CheckpointManifest& manifest);
  Result<void> all_there(const CheckpointManifest& manifest) const;
  void discard();

  CheckpointStore& store_;
  const StoreFiles files_;
  const std::string folder_;
  const bool owner_;  // not of one that joined
  std::unique_ptr<TakenRoom> taken_;
  bool spent_ = false;
};

class CheckpointStore {
 public:
  // What is at the tier's root. not_found where there is no STORE.json; corrupt or unsupported where it is
  // not one of ours, and corrupt where it is missing next to checkpoints. Keeps the tier, which outlives it.
  static Result<std::unique_ptr<CheckpointStore>> open(const Tier& tier);
  // As open(), made first where nothing of a store is there: its folders, then STORE.json, synced. A folder
  // that holds other things is invalid_argument; the role of one that is there must be `role`. Durability
  // follows from the tier: memory is volatile, a network's shared, anything else the node's.
  static Result<std::unique_ptr<CheckpointStore>> open_or_make(const Tier& tier, StoreRole role);

  const StoreFacts& facts() const { return facts_; }
  const Tier& tier() const { return files_.tier(); }
  const StoreFiles& files() const { return files_; }

  // That this is still the store that was opened: asked before anything is written, so that nothing ever
  // lands below the mount point of a tier that is gone. `io`, saying so.
  Result<void> still_there() const;

  // Held by the one process that does `what` ("save", "drain") for the run; `busy`, naming run and store.
  Result<std::unique_ptr<Lock>> lock_run(std::string_view run, std::string_view what);

  // To which store this run drains from here, by its uuid; nothing where none was noted. And notes it, for
  // ever: so that an empty folder where the slow tier should be mounted is not taken for it.
  Result<std::optional<std::string>> paired(std::string_view run) const;
  Result<void> pair(std::string_view run, const CheckpointStore& slow);

  // Takes room for `bytes` and makes an empty folder in tmp/. no_space where less than bytes + headroom is
  // left when all that is promised to others is taken off. The caller holds the run's lock for `what`.
  Result<std::unique_ptr<Staged>> stage(std::string_view run, std::string_view what, std::uint64_t bytes,
                                        std::uint64_t headroom);
  // What stage() would find left, without headroom. What is in the making counts once: as taken from the tier
  // as far as it is, as promised for the rest.
  Result<std::uint64_t> room() const;
  // What it would find if all went that is committed or in the making.
  Result<std::uint64_t> room_if_all_went() const;

  // Removes what processes that are no more left in tmp/, reserved/ and taken/ of this run, for `what`,
  // whose lock the caller holds; and all that is in trash/. Returns how many folders went. What is in ckpt/
  // then survives a power cut, also where its maker was killed before it could say so.
  Result<std::uint64_t> sweep(std::string_view run, std::string_view what);

  // Removes what a measurement of the tier's ceiling left that was killed, an hour ago at least; sweep() does
  // so, too. Whether there was any.
  Result<bool> sweep_ceiling();

  Result<std::vector<std::string>> runs() const;
  // Those of the run, oldest first, each with its manifest read anew or with what is wrong with it: corrupt
  // or truncated (no MANIFEST, another place's, symbolic links, files that are missing or of other sizes),
  // unsupported, or why it cannot be read. Names that are none of ours are left out, and so is what somebody
  // takes away meanwhile.
  Result<std::vector<Listed>> list(std::string_view run) const;
  // not_found where it is not there, or was taken away while it was looked at; as are the next two.
  Result<CheckpointManifest> manifest(std::string_view run, const CheckpointId& id) const;
  Result<bool> has(std::string_view run, const CheckpointId& id) const;
  static std::string folder(std::string_view run, const CheckpointId& id);

  // Reads a file of a committed checkpoint from front to back and checks each chunk before `take` sees it
  // (`take` may be null). corrupt or truncated, naming the file and the byte; not_found where the checkpoint
  // was taken away meanwhile.
  using Take = std::function<Result<void>(std::uint64_t offset, std::span<const std::byte> bytes)>;
  Result<void> read_file(std::string_view run, const CheckpointId& id, const CheckpointFile& file,
                         const Take& take) const;
  // All of them.
  Result<void> verify(std::string_view run, const CheckpointManifest& manifest) const;

  // Removes what is left of a run that has no checkpoints any more: folder, pair, locks. The name must not be
  // used again, and no lock of it may be held.
  Result<void> forget(std::string_view run);

  // Out of ckpt/: into trash/ and gone, or into quarantine/ with `why` next to it.
  Result<void> remove(std::string_view run, const CheckpointId& id);
  Result<void> quarantine(std::string_view run, const CheckpointId& id, std::string_view why);

  // Writes LATEST; errors are ignored, since it is only a hint.
  void hint_latest(std::string_view run, const CheckpointId& id) noexcept;

 private:
  friend class Staged;
  CheckpointStore(const StoreFiles& files, StoreFacts facts) : files_(files), facts_(std::move(facts)) {}
  Result<std::unique_ptr<Lock>> lock_space() const;
  Result<CheckpointManifest> read_manifest(std::string_view run, const CheckpointId& id) const;
  Error or_gone(std::string_view run, const CheckpointId& id, Error error) const;
  Result<std::string> put_aside(std::string_view run, const CheckpointId& id, std::string_view where);

  const StoreFiles files_;
  const StoreFacts facts_;
};

}  // namespace penstock
