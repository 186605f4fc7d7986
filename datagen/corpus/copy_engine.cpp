// Threads: the thread of `penstock copy` calls run() and all steps that concern the whole copy. The threads
// of parallel_for() call copy_object() and its helpers, each with its own Worker. The counts are atomics.
// Lock: none. Nothing prevents another process from writing to the same target.
// Memory: a Worker has a buffer of 1 MiB. Opening, creating and messages allocate. inspect_target() loads the
// whole manifest of the target.
// Ctrl-C: checked before each object and between pieces of 1 MiB. The unfinished object is dropped, and run()
// returns an outcome that is not `complete`. Before the first object, only the back end and
// check_free_space() notice Ctrl-C; then run() returns the error `interrupted`.
// Crash: the target gets, in this order, the copy mark (kCopyingName), the objects, their sync and the
// manifest. Then the mark is removed. So if there is a manifest, all objects are there. If there is a mark
// and no manifest, the copy can be continued. An object gets its name only when it is complete.
#include "datagen/corpus/copy_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/objects/object_check.hpp"
#include "datagen/target/target_folder.hpp"
#include "datagen/target/target_room.hpp"
#include "datagen/target/target_sync.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

namespace {

Result<std::string> read_mark(Backend& backend, std::string_view name) {
  constexpr uint64_t kMostMarkBytes = 4096;
  PENSTOCK_ASSIGN(const auto reader, backend.open(name));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  std::string text(size_t(std::min(size, kMostMarkBytes)), '\0');
  PENSTOCK_TRY(reader->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// Whether `inner` is `outer` or a folder below it. Links are followed, and different spellings of the same
// path are recognized.
bool is_inside(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  std::error_code failed;
  if (std::filesystem::equivalent(inner, outer, failed)) return true;
  const auto real_inner = std::filesystem::weakly_canonical(inner, failed);
  const auto real_outer = std::filesystem::canonical(outer, failed);
  return !failed && std::ranges::mismatch(real_outer, real_inner).in1 == real_outer.end();
}

// One copy of a corpus. One thread calls run() once, and the threads of parallel_for() call copy_object().
class Copy {
 public:
  Copy(Corpus& from, Tier& to, const CopyOptions& options)
      : from_(from), to_(to), options_(options), manifest_(from.manifest), object_index_(from.manifest) {}

  Result<CopyOutcome> run();

 private:
  struct Worker {  // one per thread
    Buffer buffer{size_t{1} << 20};
    std::string name;
  };
  struct UsedSpace {
    uint64_t bytes = 0;
    uint64_t objects = 0;  // how many objects and folders use these bytes
  };

  Result<TargetState> inspect_target();
  std::vector<std::string> folders() const;
  Result<UsedSpace> space_of_existing(const FreeSpace& space, std::span<const std::string> folders);
  Result<void> check_free_space();
  Result<void> copy_object(Worker& worker, uint64_t object);
  Result<bool> is_already_copied(Worker& worker, uint64_t object, std::string_view name);
  Result<void> copy_and_verify(Worker& worker, uint64_t object, std::string_view name);
  std::string name_conflict(std::string_view name);
  Result<uint32_t> write_object(Worker& worker, uint64_t object, std::string_view name);
  Result<void> finish();
  Result<bool> target_is_empty();
  Result<void> begin_sync();
  void remove_mark_and_folders(const std::vector<Worker>& workers, bool was_empty);
  Error wrong_object(std::string_view name, std::string_view why);
  Error add_progress(Error error) const;
  void log_warning(const std::string& text) const {
    if (options_.warn) options_.warn(text);
  }

  Corpus& from_;
  Tier& to_;
  const CopyOptions& options_;
  const Manifest& manifest_;
  const ObjectIndex object_index_;
  TargetState target_state_ = TargetState::fresh;
  std::optional<TargetSync> target_sync_;  // set if the copy must survive a power cut
  std::atomic<uint64_t> objects_copied_{0};
  std::atomic<bool> source_is_wrong_{false};
  std::atomic<uint64_t> already_there_{0};
  std::atomic<uint64_t> bytes_copied_{0};
};

// Finds out what is on the target, before anything is written. It looks for the manifest first. If the
// manifest is there, all objects are there, even if there is also a copy mark: finish() writes the manifest
// after all objects and then removes the mark, and a crash may come in between.
Result<TargetState> Copy::inspect_target() {
  const auto from_path = from_.tier.backend->native_path("");
  const auto to_path = to_.backend->native_path("");
  if (from_path && to_path ? is_inside(*to_path, *from_path)
                           : from_.tier.backend_name == to_.backend_name && from_.tier.root == to_.root)
    return make_error(Errc::invalid_argument,
                      "'{}' is the corpus itself or a folder inside it: copy to another folder", to_.root);
  PENSTOCK_ASSIGN(const bool is_there, folder_exists(to_, "--to"));
  if (!is_there) return TargetState::fresh;
  const std::string remedy =
      fmt::format("copy to another folder, or empty that one first{}",
                  options_.may_replace
                      ? " (--replace works only for folders without a corpus, and keeps their other files)"
                      : "");
  const auto manifest = Manifest::load(*to_.backend, kManifestName);
  if (manifest.ok()) {
    if (std::ranges::equal(manifest->bytes(), manifest_.bytes())) return TargetState::finished;
    return make_error(Errc::already_exists, "'{}' contains another corpus: {}", to_.root, remedy);
  }
  if (manifest.error().code != Errc::not_found && manifest.error().code != Errc::corrupt &&
      manifest.error().code != Errc::unsupported)
    return manifest.error();
  const auto mark = read_mark(*to_.backend, kCopyingName);
  if (mark.ok() && *mark == manifest_.checksum()) return TargetState::started;
  // A mark of zeros counts as lost, and not as the mark of another corpus. Earlier versions did not sync the
  // mark, so a power cut could replace its bytes by zeros.
  const bool mark_lost = mark.ok() && mark->find_first_not_of('\0') == std::string::npos;
  if (mark.ok() && !mark_lost)
    return make_error(Errc::already_exists, "'{}' contains a partial copy of another corpus: {}", to_.root,
                      remedy);
  if (!mark.ok() && mark.error().code != Errc::not_found) return mark.error();
  if (manifest.error().code == Errc::not_found) {
    PENSTOCK_ASSIGN(const std::string found,
                    first_foreign_entry(to_, std::span(&kCopyingName, mark_lost ? 1 : 0)));
    if (found.empty() || options_.may_replace) return TargetState::fresh;
    return make_error(Errc::already_exists,
                      "'{}' is not empty (it contains '{}') and has no partial copy of this corpus: choose "
                      "an empty or new folder, or add --replace",
                      to_.root, found);
  }
  return make_error(Errc::already_exists, "'{}' contains a manifest that cannot be read ({}): {}", to_.root,
                    manifest.error().what, remedy);
}

// All folders that contain objects or the manifest.
std::vector<std::string> Copy::folders() const {
  std::set<std::string, std::less<>> all_folders{".penstock"};
  std::string scratch;
  std::string last_folder;
  for (uint64_t i = 0; i < manifest_.objects(); ++i) {
    std::string_view name = manifest_.object_name(i, scratch);
    for (size_t end = name.rfind('/'); end != std::string_view::npos; end = name.rfind('/')) {
      name = name.substr(0, end);
      if (name == last_folder || !all_folders.emplace(name).second) break;
    }
    last_folder = name;
  }
  return {all_folders.begin(), all_folders.end()};
}

// The space that the target already uses for objects and folders of the copy. They are kept or replaced, so
// the copy does not need this space again. Threads only add to the two atomics, which are read after the
// threads have ended. So relaxed order is enough.
Result<Copy::UsedSpace> Copy::space_of_existing(const FreeSpace& space,
                                                std::span<const std::string> folders) {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> objects{0};
  std::vector<std::string> names(options_.threads);
  const auto add = [&](std::string_view name, bool folder) -> Result<void> {
    const auto entry = to_.backend->names().stat(name);
    if (!entry.ok()) return entry.error().code == Errc::not_found ? success() : Result<void>(entry.error());
    if (entry->folder && !folder) return success();
    bytes.fetch_add(folder ? space.folder_bytes : space.bytes_on_device(entry->bytes),
                    std::memory_order_relaxed);
    objects.fetch_add(1, std::memory_order_relaxed);
    return success();
  };
  PENSTOCK_TRY(parallel_for(manifest_.objects(), options_.threads, 64, [&](unsigned worker, uint64_t object) {
    return add(manifest_.object_name(object, names[worker]), false);
  }));
  PENSTOCK_TRY(parallel_for(folders.size(), options_.threads, 64,
                            [&](unsigned, uint64_t i) { return add(folders[size_t(i)], true); }));
  return UsedSpace{bytes.load(), objects.load()};
}

// Fails now if the target has too little space. Otherwise the copy would fail in the middle.
Result<void> Copy::check_free_space() {
  const auto space = free_space_of(*to_.backend);
  if (!space.ok()) return success();  // unknown: the copy fails later if the target becomes full
  constexpr uint64_t kOwnFiles = 2;   // the mark and the manifest
  const auto parents = space->inodes || space->folder_bytes != 0 ? folders() : std::vector<std::string>();
  UsedSpace needed{space->bytes_on_device(manifest_.bytes().size()) + parents.size() * space->folder_bytes,
                   manifest_.objects() + parents.size() + kOwnFiles};
  for (uint64_t i = 0; i < manifest_.objects(); ++i)
    needed.bytes += space->bytes_on_device(manifest_.object_bytes(i));
  const auto objects_fit = [&] { return needed.objects <= space->inodes.value_or(needed.objects); };
  if ((target_state_ != TargetState::fresh || options_.may_replace) &&
      (needed.bytes > space->bytes || !objects_fit())) {
    PENSTOCK_ASSIGN(const UsedSpace existing, space_of_existing(*space, parents));
    needed.bytes -= std::min(needed.bytes, existing.bytes);
    needed.objects -= std::min(needed.objects, existing.objects);
    if (target_state_ == TargetState::started) needed.objects -= 1;  // the mark exists already
    if (target_state_ == TargetState::finished) needed.objects -= syncs(options_.durability) ? 1 : kOwnFiles;
  }
  if (needed.bytes > space->bytes)
    return make_error(Errc::no_space,
                      "the copy needs {} in '{}', and {} are free: free some space or choose another tier",
                      format_size(needed.bytes), to_.root, format_size(space->bytes));
  if (!objects_fit())
    return make_error(Errc::no_space,
                      "the copy needs {} inodes in '{}', and its file system has {} free: remove files or "
                      "choose another tier",
                      format_count(needed.objects), to_.root, format_count(*space->inodes));
  return success();
}

Result<bool> Copy::is_already_copied(Worker& worker, uint64_t object, std::string_view name) {
  // Drop the object from the page cache before it is checked. After a failed write-back, the cache has bytes
  // that the device does not have.
  if (target_sync_)
    if (const auto dropped = target_sync_->drop_from_cache(name); !dropped.ok()) {
      if (!concerns_object(dropped.error())) return dropped.error();
      return false;
    }
  PENSTOCK_ASSIGN(ObjectVerdict verdict,
                  check_object(*to_.backend, manifest_, object_index_, object, name, worker.buffer));
  if (verdict.state == ObjectState::vanished) return false;
  if (verdict.state == ObjectState::right && !manifest_.object_crc32c(object)) {
    const uint64_t bytes = manifest_.object_bytes(object);
    const auto source = from_.tier.backend->open(name);
    if (!source.ok()) return as_data_error(source.error());
    PENSTOCK_ASSIGN(const uint32_t expected, crc32c_of(**source, 0, bytes, worker.buffer));
    PENSTOCK_ASSIGN(const auto copy, to_.backend->open(name));
    PENSTOCK_ASSIGN(const uint32_t crc, crc32c_of(*copy, 0, bytes, worker.buffer));
    if (crc != expected) verdict = {ObjectState::wrong_bytes, "its bytes differ from the source"};
  }
  return verdict.state == ObjectState::right;
}

// The error for an object of the source that is not what the manifest lists.
Error Copy::wrong_object(std::string_view name, std::string_view why) {
  source_is_wrong_.store(true, std::memory_order_relaxed);
  return make_error(Errc::corrupt, "'{}' in '{}' {}", name, from_.tier.root, why);
}

// Copies one object, and returns the CRC32C of the bytes as read from the source. If the manifest has a
// checksum of the whole object, it compares the two before the publish. Then wrong bytes never get the
// object's name. If it fails before the publish, nothing of the object remains.
Result<uint32_t> Copy::write_object(Worker& worker, uint64_t object, std::string_view name) {
  const uint64_t bytes = manifest_.object_bytes(object);
  const auto source = from_.tier.backend->open(name);
  if (!source.ok()) return as_data_error(source.error());
  Reader* const reader = source->get();
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  if (size != bytes)
    return wrong_object(name, fmt::format("has {} bytes, and its manifest lists {}", format_count(size),
                                          format_count(bytes)));
  PENSTOCK_ASSIGN(const auto writer, to_.backend->create(name, bytes));
  uint32_t crc = 0;
  for (uint64_t offset = 0; offset < bytes;) {
    PENSTOCK_TRY(check_interrupt());
    const auto piece =
        worker.buffer.first(size_t(std::min<uint64_t>(bytes - offset, worker.buffer.capacity())));
    PENSTOCK_TRY(reader->read_at(offset, piece));
    crc = crc32c(piece, crc);
    PENSTOCK_TRY(writer->append(piece));
    offset += piece.size();
  }
  if (const auto expected = manifest_.object_crc32c(object); expected && crc != *expected)
    return wrong_object(
        name, fmt::format("has the checksum {:08x}, and its manifest lists {:08x}", crc, *expected));
  PENSTOCK_TRY(writer->publish(options_.durability));
  return crc;
}

// Copies one object, and reads the copy back after the publish. If the process dies before the comparison, an
// unchecked object remains. The next copy checks it, because it checks all objects.
Result<void> Copy::copy_and_verify(Worker& worker, uint64_t object, std::string_view name) {
  PENSTOCK_ASSIGN(const uint32_t crc, write_object(worker, object, name));
  const uint64_t bytes = manifest_.object_bytes(object);
  const auto crc_of_copy = [&]() -> Result<uint32_t> {
    PENSTOCK_ASSIGN(const auto reader, to_.backend->open(name));
    return crc32c_of(*reader, 0, bytes, worker.buffer);
  }();
  // write_object() compares only the checksum of the whole object. If the manifest has none, but has
  // checksums of samples, these are compared here.
  if (crc_of_copy.ok() && *crc_of_copy == crc && manifest_.facts().checksums &&
      !manifest_.object_crc32c(object)) {
    PENSTOCK_ASSIGN(const ObjectVerdict verdict,
                    check_object(*to_.backend, manifest_, object_index_, object, name, worker.buffer));
    if (verdict.state != ObjectState::right)
      return wrong_object(name, fmt::format("does not match its manifest: {}", verdict.detail));
  }
  if (crc_of_copy.ok() && *crc_of_copy == crc) {
    bytes_copied_.fetch_add(bytes, std::memory_order_relaxed);
    return success();
  }
  if (!crc_of_copy.ok()) return crc_of_copy.error();
  if (const auto removed = to_.backend->names().remove(name); !removed.ok())
    log_warning(fmt::format("could not remove the corrupt copy: {}", removed.error().message()));
  return make_error(Errc::corrupt,
                    "'{}' read back from '{}' differs from the bytes written: check that device, then run "
                    "the same copy again",
                    name, to_.root);
}

// Copies one object, unless the target already has it. Any thread may call it. After an error, the other
// threads stop before their next object.
Result<void> Copy::copy_object(Worker& worker, uint64_t object) {
  const std::string_view name = manifest_.object_name(object, worker.name);
  PENSTOCK_ASSIGN(const bool already_copied, is_already_copied(worker, object, name));
  if (already_copied) {
    already_there_.fetch_add(1, std::memory_order_relaxed);
    return success();
  }
  if (Result<void> done = copy_and_verify(worker, object, name); !done.ok()) {
    const std::string conflict = done.error().code == Errc::interrupted ? "" : name_conflict(name);
    return conflict.empty() ? done : Result<void>(make_error(Errc::already_exists, conflict));
  }
  objects_copied_.fetch_add(1, std::memory_order_relaxed);
  return success();
}

// Explains why an object could not be created. Either one of its folders has the name of an existing file, or
// the object has the name of an existing folder. "" if neither is the case.
std::string Copy::name_conflict(std::string_view name) {
  Namespace& names = to_.backend->names();
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string_view parent = name.substr(0, slash);
    if (const auto entry = names.stat(parent); entry.ok() && !entry->folder)
      return fmt::format(
          "'{}' in '{}' is a file, and the copy needs a folder of that name: remove or rename it", parent,
          to_.root);
  }
  if (const auto entry = names.stat(name); entry.ok() && entry->folder)
    return fmt::format(
        "'{}' in '{}' is a folder, and the copy needs a file of that name: remove or rename it", name,
        to_.root);
  return "";
}

// Completes the copy after all threads have succeeded. The order must not change: the objects become durable,
// then the manifest is written, then the mark is removed. Otherwise a power cut could leave a manifest
// without its objects.
Result<void> Copy::finish() {
  // Objects that this run wrote are synced already. But objects of an earlier, interrupted copy may not be.
  if (target_sync_ && already_there_ > 0) PENSTOCK_TRY(target_sync_->sync());
  if (target_state_ != TargetState::finished || syncs(options_.durability))
    PENSTOCK_TRY(put_object(*to_.backend, kManifestName, manifest_.bytes(), options_.durability));
  if (const auto removed = remove_if_there(to_.backend->names(), kCopyingName); !removed.ok())
    log_warning(fmt::format("the copy is complete, but '{}' could not be removed: {}", kCopyingName,
                            removed.error().message()));
  return success();
}

Error Copy::add_progress(Error error) const {
  const uint64_t complete_objects = objects_copied_.load() + already_there_.load();
  if (complete_objects > 0)
    error.what +=
        fmt::format(" ({} of {} {} copied completely; {}run the same command again to continue)",
                    format_count(complete_objects), count_of(manifest_.objects(), "object"),
                    complete_objects == 1 ? "is" : "are",
                    error.code == Errc::already_exists || source_is_wrong_.load() ? "after that, " : "");
  if (source_is_wrong_.load())
    error.what += from_.scan ? "; copy it when no program writes to it"
                             : "; to list all wrong objects: penstock verify " + from_.arguments;
  return error;
}

// Whether the target has no entry. run() calls this before it writes the mark. If the target is empty then,
// this copy has made all entries that the target has later.
Result<bool> Copy::target_is_empty() {
  bool empty = true;
  const auto listed = to_.backend->names().list("", [&](const Entry&) {
    empty = false;
    return false;
  });
  if (!listed.ok() && listed.error().code != Errc::not_found) return listed.error();
  return empty;
}

// Undoes a copy that has copied no object, also after Ctrl-C. Removes the mark and, if the target was empty,
// the folders that this copy made. Errors are ignored: if other programs now use such a folder, it is not
// empty and cannot be removed.
void Copy::remove_mark_and_folders(const std::vector<Worker>& workers, bool was_empty) {
  Namespace& names = to_.backend->names();
  static_cast<void>(names.remove(kCopyingName));
  if (!was_empty) return;
  static_cast<void>(names.remove(".penstock"));
  for (const Worker& worker : workers)
    for (std::string_view name = worker.name; name.rfind('/') != std::string_view::npos;) {
      name = name.substr(0, name.rfind('/'));
      static_cast<void>(names.remove(name));
    }
}

// Starts to watch the target for failed write-backs, if the copy must be durable. run() must call it after it
// writes the mark, because that makes the folder. It must call it before it copies the first object, because
// earlier failures are not detected.
Result<void> Copy::begin_sync() {
  if (!syncs(options_.durability)) return success();
  PENSTOCK_ASSIGN(target_sync_, TargetSync::begin(to_));
  if (target_state_ != TargetState::fresh || options_.may_replace) target_sync_->sync_before_checks();
  return success();
}

Result<CopyOutcome> Copy::run() {
  const auto start = std::chrono::steady_clock::now();
  PENSTOCK_ASSIGN(target_state_, inspect_target());
  PENSTOCK_TRY(check_free_space());
  PENSTOCK_ASSIGN(const bool was_empty, target_is_empty());
  if (target_state_ == TargetState::fresh) {
    const std::string corpus_checksum = manifest_.checksum();
    PENSTOCK_TRY(
        // The mark must be durable before the first object is written. Otherwise a power cut could leave
        // objects without a mark. The next copy would refuse such a folder, because it looks like that of
        // another program.
        put_object(*to_.backend, kCopyingName, std::as_bytes(std::span(corpus_checksum)),
                   Durability::file_and_name));
  }
  std::vector<Worker> workers(options_.threads);
  Result<void> done = begin_sync();
  if (done.ok()) {
    Progress progress_bar(options_.progress, "copy", manifest_.objects(), "files");
    done = parallel_for(manifest_.objects(), options_.threads, 4, [&](unsigned worker, uint64_t object) {
      Result<void> object_done = copy_object(workers[worker], object);
      progress_bar.advance(1);
      return object_done;
    });
  }
  // The threads have ended, so the counts do not change any more.
  if (done.ok()) done = finish();
  if (!done.ok() && target_state_ == TargetState::fresh && objects_copied_ == 0 && already_there_ == 0)
    remove_mark_and_folders(workers, was_empty);
  if (!done.ok() && done.error().code != Errc::interrupted)
    return add_progress(describe_full_tier(*to_.backend, std::move(done).error()));
  return CopyOutcome{
      .objects_copied = objects_copied_,
      .already_there = already_there_,
      .bytes_copied = bytes_copied_,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
      .complete = done.ok(),
  };
}

}  // namespace

Result<CopyOutcome> copy_corpus(Corpus& from, Tier& to, const CopyOptions& options) {
  return Copy(from, to, options).run();
}

}  // namespace penstock
