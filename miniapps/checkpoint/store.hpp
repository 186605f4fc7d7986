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

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"

namespace penstock {

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

// What a look into a store's ckpt/ finds: its manifest, or why it is none.
struct Listed {
  std::string run;
  CheckpointId id;
  Result<CheckpointManifest> manifest;
};

class CheckpointStore;
class StoreFiles;
class TakenRoom;
struct CopyRequest;

// A checkpoint in the making, of one process; destroyed uncommitted, it is removed as well as it can be.
// One thread.
class Staged {
 public:
  ~Staged();
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  const std::string& folder() const { return folder_; }  // below the root, for other ranks: see join()

  // Writes one file and syncs its bytes; returns its entry of the manifest. CRCs are taken on the way.
  // `more` gives the file's bytes piece by piece, in order, each a whole kCheckpointChunk but the last; an
  // error of it ends the writing. Interrupts are looked at between pieces.
  using Pieces = std::function<Result<std::span<const std::byte>>(std::uint64_t offset)>;
  Result<CheckpointFile> write(std::string_view name, std::uint64_t rank, std::uint64_t bytes,
                               const Pieces& more);
  Result<CheckpointFile> write(std::string_view name, std::uint64_t rank, std::span<const std::byte> bytes);

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
  friend Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                                    const CheckpointManifest& manifest,
                                                    const CopyRequest& request);
  Result<CheckpointFile> write_pieces(std::string_view name, std::uint64_t rank, std::uint64_t bytes,
                                      const Pieces& more, std::vector<std::uint32_t>* chunks);
  Staged(CheckpointStore& store, std::string folder, bool owner);
  Result<void> copy_in(const StoreFiles& from, const CheckpointManifest& manifest,
                       const CopyRequest& request);
  Result<void> publish(const CheckpointManifest& manifest);
  Result<void> all_there(const CheckpointManifest& manifest) const;
  void discard();

  CheckpointStore& store_;
  const std::string folder_;
  const bool owner_;  // not of one that joined
  std::unique_ptr<TakenRoom> taken_;
  bool interruptible_ = true;
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
  const Tier& tier() const { return tier_; }

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
  CheckpointStore(const Tier& tier, StoreFacts facts) : tier_(tier), facts_(std::move(facts)) {}
  Result<std::unique_ptr<Lock>> lock_space() const;
  Result<CheckpointManifest> read_manifest(std::string_view run, const CheckpointId& id) const;
  Error or_gone(std::string_view run, const CheckpointId& id, Error error) const;
  Result<std::string> put_aside(std::string_view run, const CheckpointId& id, std::string_view where);

  const Tier& tier_;
  const StoreFacts facts_;
};

// The chunks of a copy that have been read ahead or are being written. Who copies one checkpoint after
// another keeps it: fresh memory costs the first use of a page more than reading into it.
using CopyMemory = std::array<Buffer, 4>;

struct CopyRequest {
  bool read_back = false;     // the copy is read again and checked before it is committed
  bool read_there = false;    // one that is there already is read and checked before it counts
  bool interruptible = true;  // false: a signal does not end it (who has a grace ends it by `gone_on`)
  const std::atomic<bool>* over = nullptr;  // where not: until when the thread that reads works on (WorkOn)
  std::uint64_t headroom = 0;
  CopyMemory* memory = nullptr;                                   // null: of its own
  std::function<Result<void>(std::uint64_t bytes)> gone_on = {};  // told bytes as they are written; an
                                                                  // error of it ends the copying
};

// Copies a committed checkpoint from one store to another and commits it there: reading checks every chunk,
// the copy has the same run, id and bytes. Where that checkpoint is there already: success if its manifest
// names the same bytes (and it is synced, whoever brought it there), and where `read_there`, if these are
// what it has; else already_exists. The caller holds the run's drain lock of `to`.
Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest,
                                           const CopyRequest& request = {});

}  // namespace penstock
