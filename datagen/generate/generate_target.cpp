#include "datagen/generate/generate_target.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/folder_walk.hpp"
#include "datagen/target/target_folder.hpp"
#include "datagen/target/target_room.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

// Names below .penstock that exist only while a data set is unfinished.
constexpr std::string_view kOwnNames[] = {kGenerationStateName, kGenerationLockName, kJournalFolder};

Error occupied_error(const Tier& tier, std::string_view why, std::string_view remedy) {
  return make_error(Errc::already_exists, "'{}' {}: {}", tier.root, why, remedy);
}

// Reads the state of a finished corpus from its manifest.
Result<GenerationState> load_finished(Tier& tier) {
  const Result<Manifest> existing = Manifest::load(*tier.backend, kManifestName);
  if (!existing.ok() && existing.error().code == Errc::corrupt)
    return make_error(Errc::corrupt,
                      "{}, and no other file lists the content of '{}': remove the folder and start again, "
                      "or run the command that this prints: penstock describe {}",
                      existing.error().what, tier.root, shell_word(tier.spec));
  if (!existing.ok()) return existing.error();
  const Manifest& manifest = *existing;
  const ManifestFacts& facts = manifest.facts();
  return GenerationState{.recipe = facts.recipe,
                         .fingerprint = 0,
                         .format = facts.format,
                         .seed = facts.seed,
                         .samples = manifest.samples(),
                         .settings = facts.settings};
}

// Whether the target contains the finished data set of this state. The state file may still exist: it is
// removed last, and a kill can come before that.
Result<bool> is_finished(Tier& tier, const GenerationState& state) {
  const Result<GenerationState> existing = load_finished(tier);
  if (existing.ok()) return difference(*existing, state).empty();
  const Errc code = existing.error().code;
  if (code == Errc::not_found || code == Errc::corrupt || code == Errc::unsupported) return false;
  return existing.error();
}

// True if the finished corpus is the requested one. Otherwise returns an error that says how it differs.
Result<bool> check_finished(Tier& tier, const GenerationState& requested) {
  PENSTOCK_ASSIGN(const GenerationState existing, load_finished(tier));
  const std::string how_differs = difference(existing, requested);
  if (how_differs.empty()) return true;
  return occupied_error(tier, fmt::format("contains a finished corpus of {}", how_differs),
                        "choose another folder");
}

}  // namespace

Result<void> check_free_space(Tier& tier, const Generation& generation, bool started) {
  const Result<FreeSpace> space = free_space_of(*tier.backend);
  if (!space.ok()) return success();
  // Number of Penstock's own files and folders that must still be made: .penstock, the state, the lock, the
  // journal's folder, one segment and the manifest. If the data set was started, only the manifest is
  // counted.
  const uint64_t own_files = started ? 1 : 6;
  const double least_bytes = double(generation.objects) * double(space->block_bytes);
  double missing_bytes = std::max(double(generation.bytes_expected), least_bytes);
  uint64_t objects = generation.objects;
  uint64_t folders = space->inodes || space->folder_bytes != 0 ? generation.folders() : 0;
  // The estimate may be too high. So there is too little space only if even this part of the estimate does
  // not fit.
  constexpr double kShareThatMustFit = 0.98;
  const auto sum_bytes = [&] { return missing_bytes + double(folders) * double(space->folder_bytes); };
  const auto bytes_fit = [&] { return sum_bytes() * kShareThatMustFit <= double(space->bytes); };
  const auto needed_inodes = [&] { return objects + folders + own_files; };
  const auto inodes_fit = [&] { return needed_inodes() <= space->inodes.value_or(needed_inodes()); };
  if (started && !(bytes_fit() && inodes_fit())) {
    PENSTOCK_ASSIGN(const FolderWalk walked, walk_folders(tier.backend->names(), worker_threads(0),
                                                          [](const Entry&) { return uint16_t{0}; }));
    uint64_t existing_objects = 0;
    uint64_t existing_folders = 0;
    for (const FolderListing& folder : walked.folders) {
      existing_objects += folder.items.size();
      if (!folder.path.empty()) ++existing_folders;
    }
    objects -= std::min(existing_objects, objects);
    folders -= std::min(existing_folders, folders);
    // The missing bytes are estimated from the number of missing objects. The alternative, to subtract the
    // bytes on disk from the estimate, would put the whole error of the estimate on the missing part.
    missing_bytes *= double(objects) / double(std::max<uint64_t>(generation.objects, 1));
  }
  if (!bytes_fit())
    return make_error(Errc::no_space,
                      "{} samples of '{}' take {} {}{}{}, and '{}' has {} free: make fewer with --samples, "
                      "--bytes or --scale, free some space, or choose another --out",
                      format_count(generation.state.samples), generation.state.recipe,
                      generation.size_prefix(), format_size(uint64_t(sum_bytes())), started ? " more" : "",
                      sum_bytes() > double(generation.bytes_expected) ? " in whole blocks" : "", tier.root,
                      format_size(space->bytes));
  if (!inodes_fit())
    return make_error(Errc::no_space,
                      "{} samples of '{}' need {}{} inodes ({} objects, {} folders, {} of penstock itself), "
                      "and the file system of '{}' has {} free: make fewer, put several samples into each "
                      "object (--format), or choose another --out",
                      format_count(generation.state.samples), generation.state.recipe,
                      format_count(needed_inodes()), started ? " more" : "", format_count(objects),
                      format_count(folders), own_files, tier.root, format_count(*space->inodes));
  return success();
}

Result<void> check_space_for_repair(Tier& tier, const Manifest& manifest,
                                    std::span<const ObjectVerdict> wrong) {
  const Result<FreeSpace> space = free_space_of(*tier.backend);
  if (!space.ok()) return success();
  uint64_t missing_bytes = 0;
  uint64_t objects = 0;
  for (const ObjectVerdict& one : wrong) {
    const uint64_t wanted_bytes = space->bytes_on_device(manifest.object_bytes(one.object));
    missing_bytes += wanted_bytes - std::min(space->bytes_on_device(one.bytes), wanted_bytes);
    if (one.state == ObjectState::vanished) ++objects;
  }
  if (missing_bytes <= space->bytes && objects <= space->inodes.value_or(objects)) return success();
  return make_error(Errc::no_space,
                    missing_bytes > space->bytes
                        ? fmt::format("{} objects of '{}' must be generated again and need {} more, and {} "
                                      "are free: free some space",
                                      format_count(wrong.size()), tier.root, format_size(missing_bytes),
                                      format_size(space->bytes))
                        : fmt::format("{} objects of '{}' are missing and must be generated again, and its "
                                      "file system has {} free inodes: remove files",
                                      format_count(objects), tier.root, format_count(*space->inodes)));
}

void remove_leftovers(Backend& backend) {
  Namespace& names = backend.names();
  if (std::ranges::none_of(kOwnNames, [&](std::string_view name) { return names.stat(name).ok(); })) return;
  const auto lock = names.lock(kGenerationLockName);
  if (!lock.ok() || !remove_generation_state(backend).ok()) return;
  static_cast<void>(names.remove(kGenerationLockName));
}

Result<std::optional<GenerationState>> read_started_generation(Tier& tier) {
  PENSTOCK_ASSIGN(std::optional<GenerationState> state, read_generation_state(*tier.backend, tier.root));
  if (state) return state;
  // An error is ignored here: check_target() reads the manifest too, and reports the error.
  const Result<GenerationState> finished = load_finished(tier);
  if (finished.ok() && !finished->recipe.empty()) state = *finished;
  return state;
}

Result<void> check_no_writer(Tier& tier) {
  const auto path = tier.backend->native_path(kGenerationLockName);
  if (!path) return success();
  const Fd file(::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  // F_OFD_GETLK only asks whether a process holds the lock; it does not take the lock. The process that holds
  // it has written its name into the file.
  struct flock lock_query {};
  lock_query.l_type = F_WRLCK;
  lock_query.l_whence = SEEK_SET;
  if (!file || ::fcntl(file.get(), F_OFD_GETLK, &lock_query) != 0 || lock_query.l_type == F_UNLCK)
    return success();
  std::array<char, 512> text{};
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
  std::string_view holder(text.data(), length > 0 ? size_t(length) : 0);
  holder = holder.substr(0, holder.find(" boot "));
  return make_error(
      Errc::busy,
      "another 'penstock generate' ({1}) is writing '{0}': wait until it ends, or choose another folder",
      tier.root, holder.empty() ? "its PID is unknown" : printable(holder));
}

Result<void> check_may_write(Tier& tier) {
  auto path = tier.backend->native_path("");
  if (!path) return success();
  std::filesystem::path folder = std::filesystem::absolute(*path).lexically_normal();
  while (::faccessat(AT_FDCWD, folder.c_str(), F_OK, AT_EACCESS) != 0 && errno == ENOENT &&
         folder.has_relative_path())
    folder = folder.parent_path();
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return success();
  if (errno != EACCES && errno != EPERM && errno != EROFS) return success();
  return errno_error(errno, "--out must be in a folder with write permission; cannot write to",
                     folder.native());
}

Result<bool> check_target(Tier& tier, const GenerationState& requested, bool resume) {
  Backend& backend = *tier.backend;
  PENSTOCK_ASSIGN(const bool exists, folder_exists(tier, "--out"));
  if (!exists) return false;
  PENSTOCK_ASSIGN(const std::optional<GenerationState> state, read_generation_state(backend, tier.root));
  if (state) {
    if (!resume)
      return occupied_error(tier, "contains an unfinished data set of 'penstock generate'",
                            "to continue, add --resume; or remove the folder");
    const std::string how_differs = difference(*state, requested);
    if (how_differs.empty() && state->fingerprint != requested.fingerprint)
      return occupied_error(
          tier, fmt::format("was started by another build, whose '{}' makes other bytes", requested.recipe),
          "resume with that build, or remove the folder");
    if (how_differs.empty()) return is_finished(tier, requested);
    return occupied_error(tier, fmt::format("was started with {}", how_differs),
                          "pass the same values with --resume, or choose another folder");
  }
  const bool finished = backend.names().stat(kManifestName).ok();
  if (finished && resume) return check_finished(tier, requested);
  if (finished)
    return occupied_error(tier, "already contains a corpus", "choose another folder, or remove this one");
  PENSTOCK_ASSIGN(const std::string found, first_foreign_entry(tier, kOwnNames));
  if (found.empty()) return false;
  return occupied_error(tier, fmt::format("is not empty (it contains '{}')", found),
                        resume ? "choose an empty or new folder. If it is a finished data set that lost its "
                                 "manifest, penstock describe prints how to make a new one"
                               : "choose an empty or new folder");
}

}  // namespace penstock
