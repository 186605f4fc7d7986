// Makes, opens and locks a store, and writes and commits checkpoints.
//
// Threads: only one thread uses a PendingCheckpoint. Any thread may use a CheckpointStore, since its members
// do not change. PendingCheckpoint::write() computes checksums on an extra thread, which reads the caller's
// bytes and ends before write() returns.
// Locks: stage() holds the lock of the store while it counts and reserves bytes; other processes wait for it.
// The caller holds the run's lock.
// Memory: write() allocates a checksum for each chunk. Names, texts and errors allocate.
// Ctrl-C: ends a write() between two chunks. write_pieces() does not check for a signal; its caller does.
// Crash: the order in publish() is what makes a checkpoint complete. Bytes, MANIFEST and folder are durable
// before the rename, and the rename is durable before commit() returns.
#include "miniapps/checkpoint/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/core/utc_time.hpp"
#include "io_backends/files/posix_root.hpp"
#include "miniapps/checkpoint/room.hpp"
#include "miniapps/checkpoint/sealed_json.hpp"

namespace penstock {
namespace {

constexpr uint64_t kStoreFormat = 1;
constexpr std::string_view kStoreKind = "checkpoint store";
constexpr size_t kLongestPurpose = 20;

constexpr std::string_view kRoleNames[] = {"fast", "slow"};  // indexed by the values of StoreRole
constexpr std::string_view kNodeDurability = "node";
constexpr std::string_view kSharedDurability = "shared";

std::string_view durability_of(const Tier& tier) {
  if (tier.backend->caps().volatile_memory || tier.facts.memory) return kVolatile;
  if (tier.backend->caps().on_network || tier.facts.network) return kSharedDurability;
  return kNodeDurability;
}

// The content of STORE.json.
struct StoreFacts {
  std::string uuid;
  StoreRole role = StoreRole::slow;
  std::string durability;
};

std::string text_of(const StoreFacts& facts) {
  return Json{{"penstock", kStoreKind},
              {"format", kStoreFormat},
              {"uuid", facts.uuid},
              {"role", role_name(facts.role)},
              {"durability", facts.durability}}
             .dump(2) +
         "\n";
}

Result<StoreFacts> parse_facts(std::string_view text) {
  const Json json = Json::try_parse(text).value_or(nullptr);
  const auto not_a_store = [](std::string_view why) {
    return make_error(Errc::corrupt, "'{}' does not belong to a checkpoint store: {}", kStoreFile, why);
  };
  if (!json.is_object()) return not_a_store("not a JSON object");
  try {
    if (json.at("penstock").get<std::string>() != kStoreKind)
      return not_a_store("it is another kind of penstock file");
    const Json& format = json.at("format");
    if (!format.is_number_unsigned()) return not_a_store("no format version");
    if (format.get<uint64_t>() != kStoreFormat)
      return make_error(Errc::unsupported,
                        "'{}' has format {}, and this penstock reads {}: use the version that wrote it",
                        kStoreFile, format.dump(), kStoreFormat);
    StoreFacts facts{.uuid = json.at("uuid").get<std::string>(), .durability = {}};
    if (facts.uuid.size() != kUuidDigits) return not_a_store("no uuid");
    const auto role =
        std::find(std::begin(kRoleNames), std::end(kRoleNames), json.at("role").get<std::string>());
    if (role == std::end(kRoleNames)) return not_a_store("an unknown role");
    facts.role = static_cast<StoreRole>(role - std::begin(kRoleNames));
    facts.durability = json.at("durability").get<std::string>();
    if (facts.durability != kVolatile && facts.durability != kNodeDurability &&
        facts.durability != kSharedDurability)
      return not_a_store("an unknown durability");
    return facts;
  } catch (const JsonError& problem) {
    return not_a_store(problem.what());
  }
}

Result<StoreFacts> read_facts(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::string text, files.read_text(kStoreFile, kMostSmallText));
  return files.named(parse_facts(text));
}

Result<void> check_tier(const StoreFiles& files) {
  if (files.backend().caps().atomic_rename) return success();
  return files.error(Errc::unsupported,
                     fmt::format("the back end '{}' cannot rename folders, so it cannot publish a checkpoint "
                                 "atomically: use a folder of a file system",
                                 files.tier().backend_name));
}

// Called if STORE.json is missing: checks that the tier has no checkpoints either. corrupt if it has, since a
// new store must not be made on top of them.
Result<void> check_lost_facts(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::vector<Entry> committed, files.list_if_there(kStoreCommitted));
  if (committed.empty()) return success();
  return files.error(
      Errc::corrupt,
      fmt::format("'{}' contains checkpoints but no {}: restore that file, or choose another folder",
                  files.tier().root, kStoreFile));
}

// Checks that a store may be made at the root. Only lost+found, the folders of an unfinished store and the
// folder of a ceiling measurement may exist there.
Result<void> check_empty(const StoreFiles& files) {
  PENSTOCK_TRY(check_lost_facts(files));
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list_if_there(""));
  for (const Entry& entry : entries) {
    const bool made_by_us =
        entry.name == kCeilingFolder ||
        std::find(std::begin(kStoreFolders), std::end(kStoreFolders), entry.name) != std::end(kStoreFolders);
    if ((made_by_us || entry.name == "lost+found") && entry.folder && !entry.link) continue;
    return files.error(Errc::invalid_argument,
                       fmt::format("'{}' contains other files ('{}'): choose an empty folder for the store",
                                   files.tier().root, entry.name));
  }
  return success();
}

Result<void> make_store_folders(const StoreFiles& files) {
  for (const std::string_view folder : kStoreFolders) PENSTOCK_TRY(files.make_folders(folder));
  return success();
}

}  // namespace

std::string_view role_name(StoreRole role) {
  return kRoleNames[size_t(role)];
}

Result<std::unique_ptr<CheckpointStore>> CheckpointStore::open(const Tier& tier) {
  const StoreFiles files(tier);
  PENSTOCK_TRY(check_tier(files));
  auto facts = read_facts(files);
  if (!facts && facts.error().code == Errc::not_found) {
    PENSTOCK_TRY(check_lost_facts(files));
    return files.error(
        Errc::not_found,
        fmt::format(
            "'{}' is not a checkpoint store: it has no {}; correct the path, or save a checkpoint there",
            tier.root, kStoreFile));
  }
  if (!facts) return std::move(facts).error();
  return std::unique_ptr<CheckpointStore>(
      new CheckpointStore(files, std::move(facts->uuid), facts->role, std::move(facts->durability)));
}

Result<std::unique_ptr<CheckpointStore>> CheckpointStore::open_or_make(const Tier& tier, StoreRole role) {
  const StoreFiles files(tier);
  PENSTOCK_TRY(check_tier(files));
  PENSTOCK_ASSIGN(const bool exists, files.is_there(kStoreFile));
  if (!exists) {
    const auto checked = check_empty(files);
    if (!checked) {
      // The files may be those of a store that another process has just made. Then this is no error.
      PENSTOCK_ASSIGN(const bool made_meanwhile, files.is_there(kStoreFile));
      if (!made_meanwhile) return checked.error();
    }
    PENSTOCK_TRY(make_store_folders(files));
    const StoreFacts facts{random_id(kUuidDigits), role, std::string(durability_of(tier))};
    const auto written =
        files.write_text(kStoreFile, text_of(facts), Durability::file_and_name, IfExists::fail);
    // already_exists means that another process has made the store meanwhile: this process then opens that
    // store.
    if (!written && written.error().code != Errc::already_exists) return written.error();
  }
  PENSTOCK_ASSIGN(auto store, open(tier));
  if (store->role() != role)
    return files.error(Errc::invalid_argument,
                       fmt::format("'{}' is a {} store, not a {} one: choose another folder", tier.root,
                                   role_name(store->role()), role_name(role)));
  // Every open_or_make() makes missing folders and syncs again: a program that copied the store here may have
  // omitted empty folders, and the process that made the store may have died before its sync.
  PENSTOCK_TRY(make_store_folders(files));
  PENSTOCK_TRY(files.sync_dir(""));
  return store;
}

Result<void> CheckpointStore::still_there() const {
  const auto facts = read_facts(files_);
  if (facts && facts->uuid == uuid_) return success();
  if (!facts && (facts.error().code == Errc::exhausted || facts.error().code == Errc::interrupted))
    return facts.error();
  const std::string why = facts ? "another store has replaced it" : facts.error().message();
  return make_error(Errc::io, "store '{}' is no longer at '{}' ({}): mount it there again", tier().name,
                    tier().root, why);
}

Result<std::unique_ptr<Lock>> CheckpointStore::lock_run(std::string_view run, std::string_view purpose) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(check_purpose(purpose));
  PENSTOCK_TRY(still_there());
  auto lock = files_.backend().names().lock(path_in(kStoreLocks, fmt::format("{}.{}", run, purpose)));
  if (!lock && lock.error().code == Errc::busy)
    return make_error(Errc::busy, "another process runs the {1} of run '{0}' in store '{2}': {3}", run,
                      purpose, tier().name, lock.error().message());
  return files_.named(std::move(lock));
}

Result<std::unique_ptr<PendingCheckpoint>> CheckpointStore::stage(std::string_view run,
                                                                  std::string_view purpose, uint64_t bytes,
                                                                  uint64_t headroom) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(check_purpose(purpose));
  PENSTOCK_TRY(still_there());
  const std::string name = new_pending_name(run, purpose);
  std::unique_ptr<PendingCheckpoint> pending(new PendingCheckpoint(*this, path_in(kStoreTmp, name), true));
  {
    PENSTOCK_ASSIGN(const auto lock, lock_space());
    PENSTOCK_ASSIGN(const uint64_t free, free_space());
    if (headroom > free || bytes > free - headroom)
      return files_.error(
          Errc::no_space,
          fmt::format("not enough space for a checkpoint of {} of run '{}': {} free{}", format_size(bytes),
                      run, format_size(free),
                      headroom == 0 ? "" : fmt::format(", {} reserved", format_size(headroom))));
    PENSTOCK_TRY(files_.write_text(path_in(kStoreReserved, name), fmt::format("{}\n", bytes),
                                   Durability::visible, IfExists::fail));
  }
  PENSTOCK_TRY(files_.make_folders(pending->folder()));
  return pending;
}

PendingCheckpoint::PendingCheckpoint(CheckpointStore& store, std::string folder, bool is_owner)
    : store_(store), files_(store.files()), folder_(std::move(folder)), is_owner_(is_owner) {}

PendingCheckpoint::~PendingCheckpoint() {
  if (!finished_) discard();
}

// Removes the folder in tmp/ and the reservation. Ignores errors: the next process that saves or drains
// removes what is left (sweep()).
void PendingCheckpoint::discard() {
  finished_ = true;
  if (!is_owner_) return;
  static_cast<void>(files_.remove_tree(folder_));
  remove_reservation(files_, last_part(folder_));
}

Result<CheckpointFile> PendingCheckpoint::write_pieces(std::string_view name, uint64_t rank, uint64_t bytes,
                                                       const Pieces& next_piece) {
  PENSTOCK_TRY(files_.named(check_checkpoint_file_name(name)));
  CheckpointFile file{.name = std::string(name), .rank = rank, .bytes = bytes, .chunks = {}};
  const std::string object = path_in(folder_, name);
  before_create(rank, bytes);
  PENSTOCK_ASSIGN(const auto writer, files_.named(files_.backend().create(object, bytes)));
  after_create();
  for (uint64_t offset = 0; offset < bytes; offset += kCheckpointChunk) {
    PENSTOCK_ASSIGN(const auto piece, next_piece(offset));
    if (piece.size() != std::min(kCheckpointChunk, bytes - offset))
      return files_.error(Errc::internal, fmt::format("'{}' was passed in pieces of other sizes", object));
    PENSTOCK_TRY(files_.named(writer->append(piece)));
    after_write(piece.size());
  }
  PENSTOCK_TRY(files_.named(writer->publish(Durability::file, IfExists::fail)));
  return file;
}

// Writes one file, and computes its checksums on another thread meanwhile. On a tier in memory the checksums
// take a quarter of the time that the writing takes.
Result<CheckpointFile> PendingCheckpoint::write(std::string_view name, uint64_t rank,
                                                std::span<const std::byte> bytes) {
  std::vector<uint32_t> chunks(chunk_count(bytes.size()));
  const auto piece = [&](uint64_t offset) {
    return bytes.subspan(offset, std::min(kCheckpointChunk, bytes.size() - offset));
  };
  std::atomic<bool> given_up = false;
  const auto compute_checksums = [&] {
    for (size_t i = 0; i < chunks.size() && !given_up.load(std::memory_order_relaxed); ++i)
      chunks[i] = crc32c(piece(i * kCheckpointChunk));
  };
  // If the writing fails, given_up makes this thread end after its current chunk, and its destructor joins
  // it.
  std::jthread checksum_thread;
  try {
    if (chunks.size() > 1) checksum_thread = std::jthread(compute_checksums);
  } catch (const std::system_error&) {
    // no thread: the checksums are computed after the writing
  }
  const auto next_piece = [&](uint64_t offset) -> Result<std::span<const std::byte>> {
    PENSTOCK_TRY(check_interrupt());
    return piece(offset);
  };
  Result<CheckpointFile> file = write_pieces(name, rank, bytes.size(), next_piece);
  given_up = !file.ok();
  if (!file.ok()) return file;
  if (checksum_thread.joinable())
    checksum_thread.join();
  else
    compute_checksums();
  file->chunks = std::move(chunks);
  return file;
}

// Checks that the folder has all files of the manifest with their sizes. Called before the commit: otherwise
// a rank that died, or wrote to another folder, would leave a committed checkpoint that cannot be read.
Result<void> PendingCheckpoint::check_all_written(const CheckpointManifest& manifest) const {
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files_.list(folder_));
  std::map<std::string_view, uint64_t> sizes;
  for (const Entry& entry : entries) {
    if (entry.folder || entry.link) continue;
    sizes.emplace(last_part(entry.name), entry.bytes);
  }
  for (const CheckpointFile& file : manifest.files) {
    const auto found = sizes.find(file.name);
    if (found == sizes.end())
      return files_.error(Errc::not_found,
                          fmt::format("'{}' of rank {} is missing", path_in(folder_, file.name), file.rank));
    if (found->second != file.bytes)
      return files_.error(Errc::corrupt,
                          fmt::format("'{}' has {} bytes, and rank {} wrote {}", path_in(folder_, file.name),
                                      found->second, file.rank, file.bytes));
  }
  return success();
}

// Makes the pending checkpoint a committed one. The order matters. write() has already synced the files. Then
// these become durable:
// 1. MANIFEST, and the names in the folder;
// 2. the name of the run's folder in ckpt/;
// 3. after the rename, the new name in ckpt/ and the removal of the old one from tmp/.
// Until the rename, discard() can undo everything. After it, finished_ keeps the destructor from removing the
// committed checkpoint.
Result<void> PendingCheckpoint::publish(const CheckpointManifest& manifest) {
  PENSTOCK_TRY(store_.still_there());
  PENSTOCK_TRY(check_all_written(manifest));
  const std::string text = serialize(manifest);
  if (text.size() > kMostSealedBytes)
    return files_.error(Errc::unsupported,
                        fmt::format("a manifest of {} bytes exceeds the limit", text.size()));
  PENSTOCK_TRY(
      files_.write_text(path_in(folder_, kCheckpointManifest), text, Durability::file, IfExists::fail));
  PENSTOCK_TRY(files_.sync_dir(folder_));
  const std::string run = path_in(kStoreCommitted, manifest.run);
  PENSTOCK_TRY(files_.make_folders(run));
  PENSTOCK_TRY(files_.sync_dir(kStoreCommitted));
  PENSTOCK_TRY(files_.rename(folder_, CheckpointStore::folder(manifest.run, manifest.id)));
  finished_ = true;
  PENSTOCK_TRY(files_.sync_dir(run));
  return files_.sync_dir(kStoreTmp);
}

Result<CheckpointManifest> PendingCheckpoint::commit(CheckpointManifest manifest) {
  if (finished_ || !is_owner_)
    return files_.error(Errc::internal,
                        fmt::format("'{}' was already committed, or belongs to another process", folder_));
  manifest.store_uuid = store_.uuid();
  manifest.commit_time = utc_now();
  std::sort(manifest.files.begin(), manifest.files.end(), by_rank_and_name);
  Result<void> done = files_.named(check_manifest(manifest, path_in(folder_, kCheckpointManifest)));
  if (done && !last_part(folder_).starts_with(manifest.run + "."))
    done =
        files_.error(Errc::internal, fmt::format("'{}' does not belong to run '{}'", folder_, manifest.run));
  if (done) done = publish(manifest);
  if (!finished_) discard();
  remove_reservation(files_, last_part(folder_));
  PENSTOCK_TRY(std::move(done));
  return manifest;
}

std::string path_in(std::string_view folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

Result<void> check_purpose(std::string_view purpose) {
  const bool is_valid =
      !purpose.empty() && purpose.size() <= kLongestPurpose &&
      std::all_of(purpose.begin(), purpose.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (is_valid) return success();
  return make_error(Errc::invalid_argument, "'{}' is not an operation on a run", purpose);
}

std::string new_pending_name(std::string_view run, std::string_view purpose) {
  return fmt::format("{}.{}.{}", run, purpose, random_id(kUuidDigits));
}

bool is_pending_name(std::string_view name, std::string_view run, std::string_view purpose) {
  const std::string prefix = fmt::format("{}.{}.", run, purpose);
  return name.size() == prefix.size() + kUuidDigits && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

Error StoreFiles::named(Error error) const {
  error.what = fmt::format("store '{}': {}", tier_->name, error.what);
  return error;
}

Error StoreFiles::error(Errc code, std::string_view what) const {
  return named(make_error(code, std::string(what)));
}

Result<std::string> StoreFiles::read_text(std::string_view name, uint64_t most) const {
  PENSTOCK_ASSIGN(const auto reader, named(backend().open(name)));
  PENSTOCK_ASSIGN(const uint64_t bytes, named(reader->size()));
  if (bytes > most)
    return error(Errc::corrupt, fmt::format("'{}' has {} bytes, too many for a penstock file", name, bytes));
  std::string text(bytes, '\0');
  PENSTOCK_TRY(named(reader->read_at(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

Result<void> StoreFiles::write_text(std::string_view name, std::string_view text, Durability wanted,
                                    IfExists if_exists) const {
  PENSTOCK_ASSIGN(const auto writer, named(backend().create(name, text.size())));
  PENSTOCK_TRY(named(writer->append(std::as_bytes(std::span(text)))));
  return named(writer->publish(wanted, if_exists));
}

Result<std::vector<Entry>> StoreFiles::list(std::string_view folder) const {
  std::vector<Entry> entries;
  PENSTOCK_TRY(named(backend().names().list(folder, [&](const Entry& entry) {
    entries.push_back(entry);
    return true;
  })));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

Result<std::vector<Entry>> StoreFiles::list_if_there(std::string_view folder) const {
  auto entries = list(folder);
  if (!entries && entries.error().code == Errc::not_found) return std::vector<Entry>();
  return entries;
}

Result<bool> StoreFiles::is_there(std::string_view name) const {
  const auto entry = named(backend().names().stat(name));
  if (!entry && entry.error().code != Errc::not_found) return entry.error();
  return entry.ok();
}

Result<void> StoreFiles::remove(std::string_view name) const {
  auto removed = named(backend().names().remove(name));
  if (!removed && removed.error().code == Errc::not_found) return success();
  return removed;
}

Result<void> StoreFiles::remove_tree(const Entry& entry) const {
  if (!entry.folder || entry.link) return remove(entry.name);
  PENSTOCK_ASSIGN(const std::vector<Entry> inside, list_if_there(entry.name));
  // A killed process may have left temporary files, which list() does not show.
  remove_temporary_files(backend(), entry.name);
  for (const Entry& one : inside) PENSTOCK_TRY(remove_tree(one));
  return remove(entry.name);
}

// Finds the entry with list(), since stat() does not distinguish a symbolic link from a folder.
Result<void> StoreFiles::remove_tree(std::string_view name) const {
  PENSTOCK_ASSIGN(const std::vector<Entry> siblings, list_if_there(parent_of(name)));
  for (const Entry& entry : siblings)
    if (entry.name == name) return remove_tree(entry);
  return success();
}

}  // namespace penstock
