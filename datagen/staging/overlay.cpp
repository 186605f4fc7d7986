#include "datagen/staging/overlay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

Error read_only_error() {
  return make_error(Errc::unsupported, "an overlay of two tiers is read-only: write to one of the tiers");
}

class OverlayNamespace final : public Namespace {
 public:
  using Route = std::function<Namespace&(std::string_view name, std::string& full_name)>;
  // `prefix` is the folder of the slow tier that the overlay's names are relative to.
  OverlayNamespace(Namespace& slow, std::string_view prefix, Route route)
      : slow_(slow), prefix_bytes_(prefix.empty() ? 0 : prefix.size() + 1), route_(std::move(route)) {}

  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& skipped) override {
    std::string full_name;
    static_cast<void>(route_(folder, full_name));
    return slow_.list_all(
        full_name, [&](const Entry& entry) { return visit(without_prefix(entry)); },
        [&](std::string_view name) {
          if (skipped) skipped(name.substr(std::min(prefix_bytes_, name.size())));
        });
  }
  Result<Entry> stat(std::string_view name) override {
    std::string full_name;
    PENSTOCK_ASSIGN(const Entry entry, route_(name, full_name).stat(full_name));
    return without_prefix(entry);
  }
  Result<void> make_folders(std::string_view) override { return read_only_error(); }
  Result<void> rename_noreplace(std::string_view, std::string_view) override { return read_only_error(); }
  Result<void> remove(std::string_view) override { return read_only_error(); }
  Result<void> sync_dir(std::string_view) override { return read_only_error(); }
  Result<std::unique_ptr<Lock>> lock(std::string_view) override { return read_only_error(); }
  Result<uint64_t> free_bytes() override { return uint64_t{0}; }

 private:
  Entry without_prefix(const Entry& entry) const {
    Entry own = entry;
    own.name = entry.name.substr(std::min(prefix_bytes_, entry.name.size()));
    return own;
  }

  Namespace& slow_;
  const size_t prefix_bytes_;
  const Route route_;
};

Caps combined_caps(const Caps& slow, const Caps& fast) {
  Caps caps;
  if (slow.max_useful_threads != 0 && fast.max_useful_threads != 0)
    caps.max_useful_threads = slow.max_useful_threads + fast.max_useful_threads;
  caps.zero_copy = slow.zero_copy && fast.zero_copy;
  caps.native_path = slow.native_path && fast.native_path;
  caps.volatile_memory = slow.volatile_memory && fast.volatile_memory;
  caps.bypasses_cache = slow.bypasses_cache && fast.bypasses_cache;
  caps.on_network = slow.on_network || fast.on_network;
  // The overlay counts as emulated, so that the baseline's loops read through this back end and not by system
  // calls. A native path below the root would lead to only one of the two tiers.
  caps.emulated = true;
  return caps;
}

class OverlayBackend final : public Backend {
 public:
  explicit OverlayBackend(OverlayTiers tiers)
      : tiers_(std::move(tiers)),
        caps_(combined_caps(tiers_.slow.backend->caps(), tiers_.fast.backend->caps())),
        names_(tiers_.slow.backend->names(), tiers_.prefix,
               [this](std::string_view name, std::string& full_name) -> Namespace& {
                 return backend_of(name, full_name).names();
               }) {}

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    std::string full_name;
    return backend_of(name, full_name).open(full_name);
  }
  Result<std::unique_ptr<Writer>> create(std::string_view, uint64_t) override { return read_only_error(); }
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    // Each thread reuses its own string, so that a read of a sample needs no allocation.
    thread_local std::string full_name;
    return backend_of(name, full_name).read_object(full_name, length_hint, out);
  }
  Namespace& names() override { return names_; }
  MovedBytes moved_bytes() const override {
    return {.read = tiers_.slow.backend->moved_bytes().read + tiers_.fast.backend->moved_bytes().read};
  }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> combined = tiers_.slow.remarks();
    for (std::string& remark : tiers_.fast.remarks()) combined.push_back(std::move(remark));
    return combined;
  }
  std::optional<std::filesystem::path> native_path(std::string_view name) const override {
    std::string full_name;
    return backend_of(name, full_name).native_path(full_name);
  }

  const Tier& slow() const { return tiers_.slow; }
  const Tier& fast() const { return tiers_.fast; }

 private:
  Backend& backend_of(std::string_view name, std::string& full_name) const {
    full_name = tiers_.prefix;
    if (!full_name.empty() && !name.empty()) full_name += '/';
    full_name += name;
    return tiers_.staged_names.contains(full_name) ? *tiers_.fast.backend : *tiers_.slow.backend;
  }

  const OverlayTiers tiers_;
  const Caps caps_;
  OverlayNamespace names_;
};

std::filesystem::path real_path(const std::filesystem::path& path) {
  std::error_code failed;
  const auto canonical = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : canonical;
}

// The path from the slow tier's root to the corpus's folder; "" if they are the same.
Result<std::string> prefix_of(const Corpus& corpus, const Tier& slow) {
  const auto corpus_path = corpus.tier.backend->native_path("");
  const auto slow_root = slow.backend->native_path("");
  if (corpus_path && slow_root) {
    const std::string prefix =
        real_path(*corpus_path).lexically_relative(real_path(*slow_root)).generic_string();
    if (prefix == ".") return std::string();
    if (!prefix.empty() && !prefix.starts_with("..")) return prefix;
  }
  return make_error(
      Errc::invalid_argument,
      "the corpus '{}' is not inside the plan's slow tier, {}: name a corpus that is, or leave out --overlay",
      corpus.tier.root, slow.root);
}

// Checks that each copy on the fast tier exists and matches its original, by size and modification time.
Result<void> check_staged(OverlayTiers& tiers, const StagingPlan& plan,
                          const std::filesystem::path& plan_file) {
  const std::string remedy = "penstock stage apply " + shell_word(plan_file.native());
  return parallel_for(plan.files.size(), worker_threads(0), 16, [&](unsigned, uint64_t i) -> Result<void> {
    const PlannedFile& file = plan.files[i];
    const auto staged_copy = tiers.fast.backend->names().stat(file.name);
    if (!staged_copy.ok() && staged_copy.error().code != Errc::not_found) return staged_copy.error();
    if (!staged_copy.ok())
      return make_error(Errc::not_found, "'{}' is not on tier '{}' yet; to copy it: {}", file.name,
                        tiers.fast.name, remedy);
    if (staged_copy->folder || staged_copy->bytes != file.bytes)
      return make_error(Errc::corrupt,
                        "'{}' on tier '{}' is not the copy that the plan lists: remove it, then: {}",
                        file.name, tiers.fast.name, remedy);
    if (const std::string change = describe_change(tiers.slow, file); !change.empty())
      return make_error(
          Errc::corrupt,
          "'{}' was changed since the plan was made ({}): its copy is old. Make a new plan with "
          "penstock stage advise, after: penstock stage revert {}",
          file.name, change, shell_word(plan_file.native()));
    return success();
  });
}

const OverlayBackend* overlay_in(const Tier& tier) {
  return dynamic_cast<const OverlayBackend*>(tier.backend.get());
}

}  // namespace

std::string describe_change(Tier& slow, const PlannedFile& file) {
  if (const auto path = slow.backend->native_path(file.name)) {
    struct stat status {};
    if (::stat(path->c_str(), &status) != 0) return std::strerror(errno);
    if (uint64_t(status.st_size) != file.bytes)
      return fmt::format("{} bytes instead of {}", status.st_size, file.bytes);
    const int64_t mtime_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    return mtime_ns == file.mtime_ns ? "" : "modified later";
  }
  const auto entry = slow.backend->names().stat(file.name);
  if (!entry.ok()) return entry.error().message();
  return entry->bytes == file.bytes ? "" : fmt::format("{} bytes instead of {}", entry->bytes, file.bytes);
}

std::optional<std::filesystem::path> missing_folder(const Tier& tier) {
  auto folder = tier.backend->native_path("");
  std::error_code failed;
  if (folder && std::filesystem::is_directory(*folder, failed)) folder.reset();
  return folder;
}

Result<Tier> open_planned_tier(const PlannedTier& planned) {
  PENSTOCK_ASSIGN(Tier tier, open_tier(planned.spec, kNoNamedTiers));
  if (real_path(tier.root) != real_path(planned.root))
    return make_error(Errc::invalid_argument,
                      "the plan's tier '{}' is {} here, and was {} when the plan was made: run this in the "
                      "folder where the plan was made",
                      planned.spec, tier.root, planned.root);
  tier.name = planned.name;
  // Do not create a missing folder, because it may be a mount point that is not mounted. In that case the
  // data on the device would not be found, and copies would fill another file system.
  if (const auto missing = missing_folder(tier))
    return make_error(Errc::not_found,
                      "folder '{}', the plan's tier '{}', does not exist: mount it, or create that folder",
                      missing->native(), tier.name);
  return tier;
}

std::unique_ptr<Backend> make_overlay(OverlayTiers tiers) {
  return std::make_unique<OverlayBackend>(std::move(tiers));
}

Result<void> apply_overlay(Corpus& corpus, const std::filesystem::path& plan_file) {
  PENSTOCK_ASSIGN(const StagingPlan plan, load_staging_plan(plan_file));
  if (!plan.should_stage)
    return make_error(Errc::invalid_argument, "the plan '{}' stages no files ({}): leave out --overlay",
                      plan_file.native(), plan.reason);
  OverlayTiers tiers;
  PENSTOCK_ASSIGN(tiers.slow, open_planned_tier(plan.slow));
  PENSTOCK_ASSIGN(tiers.fast, open_planned_tier(plan.fast));
  PENSTOCK_ASSIGN(tiers.prefix, prefix_of(corpus, tiers.slow));
  PENSTOCK_TRY(check_staged(tiers, plan, plan_file));
  for (const PlannedFile& file : plan.files) tiers.staged_names.insert(file.name);
  Tier tier;
  tier.name = "overlay";
  tier.spec = plan_file.native();
  tier.backend_name = "overlay";
  tier.root = corpus.tier.root;
  tier.facts = tiers.slow.facts;
  tier.facts.memory = tiers.slow.facts.memory && tiers.fast.facts.memory;
  tier.facts.network = tiers.slow.facts.network || tiers.fast.facts.network;
  tier.backend = make_overlay(std::move(tiers));
  corpus.tier = std::move(tier);
  return success();
}

Result<void> record_overlay(const Tier& tier, const std::function<Result<uint64_t>(uint64_t)>& sum,
                            Trial& trial) {
  const OverlayBackend* const overlay = overlay_in(tier);
  if (overlay == nullptr) return success();
  const auto record_side = [&](std::string_view role, const Tier& side) -> Result<void> {
    trial.tier(role, side);
    PENSTOCK_ASSIGN(const uint64_t bytes, sum(side.backend->moved_bytes().read));
    trial.sample(kOverlayBytesRead, role, double(bytes));
    return success();
  };
  PENSTOCK_TRY(record_side("slow", overlay->slow()));
  return record_side("fast", overlay->fast());
}

}  // namespace penstock
