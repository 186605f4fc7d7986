// A checkpoint in the making.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>
#include <tuple>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/room.hpp"
#include "miniapps/checkpoint/sealed_json.hpp"
#include "miniapps/checkpoint/store.hpp"
#include "miniapps/checkpoint/store_files.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

std::string part_name(std::uint64_t rank) {
  return fmt::format("part-{}.json", rank);
}

bool by_rank_and_name(const CheckpointFile& a, const CheckpointFile& b) {
  return std::tie(a.rank, a.name) < std::tie(b.rank, b.name);
}

}  // namespace

Staged::Staged(CheckpointStore& store, std::string folder, bool owner)
    : store_(store),
      folder_(std::move(folder)),
      owner_(owner),
      taken_(std::make_unique<TakenRoom>(StoreFiles(store.tier()), last_part(folder_))) {}

Staged::~Staged() {
  if (!spent_) discard();
}

// As well as can be: what stays is swept by the next one that saves or drains.
void Staged::discard() {
  spent_ = true;
  if (!owner_) return;
  const StoreFiles files(store_.tier());
  static_cast<void>(files.remove_tree(folder_));
  forget_promise(files, last_part(folder_));
}

Result<CheckpointFile> Staged::write(std::string_view name, std::uint64_t rank, std::uint64_t bytes,
                                     const Pieces& more) {
  std::vector<std::uint32_t> chunks;
  chunks.reserve(whole_chunks(bytes));
  PENSTOCK_ASSIGN(CheckpointFile file, write_pieces(name, rank, bytes, more, &chunks));
  file.chunks = std::move(chunks);
  return file;
}

// All of an entry but the checksums, which go to `chunks` where there is one.
Result<CheckpointFile> Staged::write_pieces(std::string_view name, std::uint64_t rank, std::uint64_t bytes,
                                            const Pieces& more, std::vector<std::uint32_t>* chunks) {
  const StoreFiles files(store_.tier());
  PENSTOCK_TRY(files.named(check_checkpoint_file_name(name)));
  CheckpointFile file{.name = std::string(name), .rank = rank, .bytes = bytes, .chunks = {}};
  const std::string object = below(folder_, name);
  taken_->begins(rank, bytes);
  PENSTOCK_ASSIGN(const auto writer, files.named(files.backend().create(object, bytes)));
  taken_->created();
  for (std::uint64_t offset = 0; offset < bytes; offset += kCheckpointChunk) {
    if (interruptible_) PENSTOCK_TRY(check_interrupt());
    PENSTOCK_ASSIGN(const auto piece, more(offset));
    if (piece.size() != std::min(kCheckpointChunk, bytes - offset))
      return files.error(Errc::internal, fmt::format("'{}' was given in pieces of wrong sizes", object));
    if (chunks != nullptr) chunks->push_back(crc32c(piece));
    PENSTOCK_TRY(files.named(writer->append(piece)));
    taken_->wrote(piece.size());
  }
  PENSTOCK_TRY(files.named(writer->publish(Durability::file, IfExists::fail)));
  return file;
}

// The checksums are computed in parallel with the writing, where the machine has a thread for them: in memory
// they take a quarter as long as it.
Result<CheckpointFile> Staged::write(std::string_view name, std::uint64_t rank,
                                     std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> chunks(whole_chunks(bytes.size()));
  const auto piece = [&](std::uint64_t offset) {
    return bytes.subspan(offset, std::min(kCheckpointChunk, bytes.size() - offset));
  };
  std::atomic<bool> given_up = false;
  const auto take_all = [&] {
    for (std::size_t i = 0; i < chunks.size() && !given_up.load(std::memory_order_relaxed); ++i)
      chunks[i] = crc32c(piece(i * kCheckpointChunk));
  };
  std::jthread syncing;
  try {
    if (chunks.size() > 1) syncing = std::jthread(take_all);
  } catch (const std::system_error&) {
    // no thread: checksums are taken after the writing
  }
  Result<CheckpointFile> file = write_pieces(
      name, rank, bytes.size(),
      [&](std::uint64_t offset) -> Result<std::span<const std::byte>> { return piece(offset); }, nullptr);
  given_up = !file.ok();
  if (!file.ok()) return file;
  if (syncing.joinable())
    syncing.join();
  else
    take_all();
  file->chunks = std::move(chunks);
  return file;
}

// A rank that died, or wrote somewhere else, must not leave an unreadable checkpoint.
Result<void> Staged::all_there(const CheckpointManifest& manifest) const {
  const StoreFiles files(store_.tier());
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list(folder_));
  std::map<std::string_view, std::uint64_t> there;
  for (const Entry& entry : entries) {
    if (entry.folder || entry.link) continue;
    there.emplace(last_part(entry.name), entry.bytes);
  }
  for (const CheckpointFile& file : manifest.files) {
    const auto found = there.find(file.name);
    if (found == there.end())
      return files.error(Errc::not_found,
                         fmt::format("'{}' of rank {} is missing", below(folder_, file.name), file.rank));
    if (found->second != file.bytes)
      return files.error(Errc::corrupt,
                         fmt::format("'{}' has {} bytes, and rank {} wrote {}", below(folder_, file.name),
                                     found->second, file.rank, file.bytes));
  }
  return success();
}

// Up to the rename, this can be taken back; after it, not.
Result<void> Staged::publish(const CheckpointManifest& manifest) {
  const StoreFiles files(store_.tier());
  PENSTOCK_TRY(store_.still_there());
  PENSTOCK_TRY(all_there(manifest));
  const std::string text = serialize(manifest);
  if (text.size() > kMostSealedBytes)
    return files.error(Errc::unsupported,
                       fmt::format("a manifest of {} bytes is more than can be read back", text.size()));
  PENSTOCK_TRY(files.write_text(below(folder_, kCheckpointManifest), text, Durability::file, IfExists::fail));
  PENSTOCK_TRY(files.sync_dir(folder_));
  const std::string run = below(kStoreCommitted, manifest.run);
  PENSTOCK_TRY(files.make_folders(run));
  PENSTOCK_TRY(files.sync_dir(kStoreCommitted));
  PENSTOCK_TRY(files.rename(folder_, CheckpointStore::folder(manifest.run, manifest.id)));
  spent_ = true;
  PENSTOCK_TRY(files.sync_dir(run));
  return files.sync_dir(kStoreTmp);
}

Result<CheckpointManifest> Staged::commit(CheckpointManifest manifest) {
  const StoreFiles files(store_.tier());
  if (spent_ || !owner_)
    return files.error(Errc::internal, fmt::format("'{}' is not this process's to commit", folder_));
  manifest.store = store_.facts().uuid;
  manifest.commit_time = utc_now();
  std::sort(manifest.files.begin(), manifest.files.end(), by_rank_and_name);
  Result<void> done = files.named(check_manifest(manifest, below(folder_, kCheckpointManifest)));
  if (done && !last_part(folder_).starts_with(manifest.run + "."))
    done = files.error(Errc::internal, fmt::format("'{}' is not of run '{}'", folder_, manifest.run));
  if (done) done = publish(manifest);
  if (!spent_) discard();
  forget_promise(files, last_part(folder_));
  PENSTOCK_TRY(std::move(done));
  return manifest;
}

Result<std::unique_ptr<Staged>> Staged::join(CheckpointStore& store, std::string folder) {
  const StoreFiles files(store.tier());
  const auto entry = files.named(files.backend().names().stat(folder));
  if (!entry && entry.error().code != Errc::not_found) return entry.error();
  if (!entry || !entry->folder)
    return files.error(Errc::not_found,
                       fmt::format("'{}', which another rank made, is not here: do all ranks see the same "
                                   "files below '{}'?",
                                   folder, store.tier().root));
  return std::unique_ptr<Staged>(new Staged(store, std::move(folder), false));
}

Result<void> Staged::leave_part(std::uint64_t rank, std::span<const CheckpointFile> written) {
  const StoreFiles files(store_.tier());
  std::vector<CheckpointFile> sorted(written.begin(), written.end());
  std::sort(sorted.begin(), sorted.end(), by_rank_and_name);
  return files.write_text(below(folder_, part_name(rank)), serialize_part(rank, sorted), Durability::file,
                          IfExists::fail);
}

Result<std::vector<CheckpointFile>> Staged::take_parts(std::uint64_t ranks) {
  const StoreFiles files(store_.tier());
  std::vector<CheckpointFile> all;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::string object = below(folder_, part_name(rank));
    const auto text = files.read_text(object, kMostSealedBytes);
    if (!text && text.error().code == Errc::not_found)
      return files.error(
          Errc::not_found,
          fmt::format("rank {} of {} did not say what it wrote: '{}' is missing", rank, ranks, object));
    if (!text) return text.error();
    PENSTOCK_ASSIGN(const auto part, files.named(parse_checkpoint_part(*text, rank, object)));
    all.insert(all.end(), part.begin(), part.end());
  }
  for (std::uint64_t rank = 0; rank < ranks; ++rank)
    PENSTOCK_TRY(files.remove(below(folder_, part_name(rank))));
  return all;
}

}  // namespace penstock
