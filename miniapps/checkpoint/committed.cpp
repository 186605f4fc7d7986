// Lists, reads and removes the committed checkpoints of a store (those in ckpt/).
//
// Threads: any thread may call any function at any time.
// Lock: none in this file. Another process may remove a checkpoint during a read; the read then returns
// not_found.
// Memory: everything allocates. Only hint_latest() catches std::bad_alloc.
// Ctrl-C: ends the read of a file between two chunks.
// Crash: put_aside() moves a checkpoint out of ckpt/ by a rename, and syncs the folder that it was in. Only
// then are its files unlinked. So a checkpoint in ckpt/ is complete.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>

#include "miniapps/checkpoint/chunk_reader.hpp"
#include "miniapps/checkpoint/sealed_json.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

std::string folder_of_run(std::string_view run) {
  return path_in(kStoreCommitted, run);
}

// Compares the names and sizes in the folder with the manifest. Does not read the files.
Result<void> check_entries(const StoreFiles& files, std::span<const Entry> entries,
                           const CheckpointManifest& manifest, const std::string& folder) {
  std::map<std::string_view, const Entry*> entries_by_name;
  for (const Entry& entry : entries) entries_by_name.emplace(last_part(entry.name), &entry);
  for (const CheckpointFile& file : manifest.files) {
    const std::string object = path_in(folder, file.name);
    const auto found = entries_by_name.find(file.name);
    if (found == entries_by_name.end())
      return files.error(Errc::corrupt, fmt::format("'{}' is missing", object));
    const Entry& entry = *found->second;
    if (entry.folder) return files.error(Errc::corrupt, fmt::format("'{}' is a folder", object));
    if (entry.bytes != file.bytes)
      return files.error(
          entry.bytes < file.bytes ? Errc::truncated : Errc::corrupt,
          fmt::format("'{}' has {} bytes, and {} were saved", object, entry.bytes, file.bytes));
  }
  return success();
}

}  // namespace

std::string CheckpointStore::folder(std::string_view run, const CheckpointId& id) {
  return path_in(folder_of_run(run), folder_of(id));
}

Result<std::vector<std::string>> CheckpointStore::runs() const {
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files_.list_if_there(kStoreCommitted));
  if (entries.empty()) PENSTOCK_TRY(still_there());
  std::vector<std::string> runs;
  for (const Entry& entry : entries) {
    const std::string_view run = last_part(entry.name);
    if (entry.folder && !entry.link && check_run_name(run)) runs.emplace_back(run);
  }
  return runs;
}

Result<CheckpointManifest> CheckpointStore::read_manifest(std::string_view run,
                                                          const CheckpointId& id) const {
  const std::string folder = CheckpointStore::folder(run, id);
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files_.list(folder));
  const auto link =
      std::find_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.link; });
  if (link != entries.end())
    return files_.error(Errc::corrupt,
                        fmt::format("'{}' is a symbolic link, and checkpoints contain no links", link->name));
  const std::string object = path_in(folder, kCheckpointManifest);
  const auto text = files_.read_text(object, kMostSealedBytes);
  if (!text && text.error().code == Errc::not_found)
    return files_.error(Errc::corrupt, fmt::format("'{}' is missing", object));
  if (!text) return text.error();
  PENSTOCK_ASSIGN(CheckpointManifest manifest, files_.named(parse_checkpoint_manifest(*text, object)));
  if (manifest.store_uuid != uuid_ || manifest.run != run || manifest.id != id)
    return files_.error(Errc::corrupt,
                        fmt::format("'{}' belongs to {} of run '{}' in store {}, not to this checkpoint",
                                    object, folder_of(manifest.id), manifest.run, manifest.store_uuid));
  PENSTOCK_TRY(check_entries(files_, entries, manifest, folder));
  return manifest;
}

// Called after a read has failed with `error`. Returns not_found if another process removed the checkpoint
// during the read: `error` then says nothing about the checkpoint's bytes. Otherwise returns `error`.
Error CheckpointStore::not_found_if_gone(std::string_view run, const CheckpointId& id, Error error) const {
  if (!is_data_error(error.code) && error.code != Errc::io) return error;
  const auto exists = has(run, id);
  if (!exists.ok() || *exists) return error;
  return files_.error(Errc::not_found, fmt::format("'{}' was removed during the read", folder(run, id)));
}

Result<CheckpointManifest> CheckpointStore::manifest(std::string_view run, const CheckpointId& id) const {
  PENSTOCK_TRY(check_run_name(run));
  auto manifest = read_manifest(run, id);
  if (!manifest) return not_found_if_gone(run, id, std::move(manifest).error());
  return manifest;
}

Result<bool> CheckpointStore::has(std::string_view run, const CheckpointId& id) const {
  PENSTOCK_TRY(check_run_name(run));
  return files_.is_there(folder(run, id));
}

Result<void> CheckpointStore::read_file(std::string_view run, const CheckpointId& id,
                                        const CheckpointFile& file, const TakeChunk& take) const {
  PENSTOCK_TRY(check_run_name(run));
  auto read = read_chunks(files_, path_in(folder(run, id), file.name), file, true, take);
  if (!read) return not_found_if_gone(run, id, std::move(read).error());
  return read;
}

Result<void> CheckpointStore::verify(std::string_view run, const CheckpointManifest& manifest) const {
  PENSTOCK_ASSIGN(const CheckpointManifest current, CheckpointStore::manifest(run, manifest.id));
  if (current.files != manifest.files)
    return files_.error(Errc::corrupt, fmt::format("'{}' was replaced: its manifest lists other files now",
                                                   folder(run, manifest.id)));
  for (const CheckpointFile& file : manifest.files) PENSTOCK_TRY(read_file(run, manifest.id, file, nullptr));
  return success();
}

// Moves the checkpoint out of ckpt/ into the folder `where`, and returns its new name. Syncs the rename
// before it returns: the caller must not unlink files while a power cut could bring the old name back.
Result<std::string> CheckpointStore::put_aside(std::string_view run, const CheckpointId& id,
                                               std::string_view where) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(still_there());
  PENSTOCK_TRY(files_.make_folders(where));
  std::string name = path_in(where, new_pending_name(run, folder_of(id)));
  PENSTOCK_TRY(files_.rename(folder(run, id), name));
  PENSTOCK_TRY(files_.sync_dir(folder_of_run(run)));
  return name;
}

Result<void> CheckpointStore::remove(std::string_view run, const CheckpointId& id) {
  PENSTOCK_ASSIGN(const std::string name, put_aside(run, id, kStoreTrash));
  return files_.remove_tree(name);
}

Result<void> CheckpointStore::quarantine(std::string_view run, const CheckpointId& id, std::string_view why) {
  PENSTOCK_ASSIGN(const std::string name, put_aside(run, id, kStoreQuarantine));
  PENSTOCK_TRY(files_.sync_dir(kStoreQuarantine));
  static_cast<void>(
      files_.write_text(name + ".why.txt", fmt::format("{}\n", why), Durability::visible, IfExists::replace));
  return success();
}

void CheckpointStore::hint_latest(std::string_view run, const CheckpointId& id) noexcept {
  try {
    static_cast<void>(files_.write_text(kStoreLatest, fmt::format("{} {}\n", run, folder_of(id)),
                                        Durability::visible, IfExists::replace));
  } catch (const std::bad_alloc&) {
    return;  // no memory: no harm, since LATEST is only a hint
  }
}

}  // namespace penstock
