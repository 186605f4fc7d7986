#include "datagen/corpus/tier_copy.hpp"

#include <algorithm>
#include <filesystem>

#include "datagen/corpus/copy_engine.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"

namespace penstock {
namespace {

constexpr uint64_t kMostObjectsInspected = 256;

// Whether `penstock copy` would refuse to fill the tier: it has a manifest, or files without the mark of a
// copy that was started.
bool holds_something_else(const Tier& tier) {
  if (Manifest::load(*tier.backend, kManifestName).ok()) return true;
  const auto folder = tier.backend->native_path("");
  std::error_code unknown;
  return folder && std::filesystem::exists(*folder, unknown) &&
         !std::filesystem::is_empty(*folder, unknown) &&
         !std::filesystem::exists(std::filesystem::path(*folder) / kCopyingName, unknown);
}

}  // namespace

Result<void> check_copy(const Tier& tier, const Corpus& corpus, uint64_t objects,
                        const std::function<std::string_view(uint32_t)>& name) {
  const uint64_t inspected = std::min<uint64_t>(objects, kMostObjectsInspected);
  for (uint64_t i = 0; i < inspected; ++i) {
    const std::string_view object = name(uint32_t(i * objects / inspected));
    const Result<Entry> found = tier.backend->names().stat(object);
    if (!found.ok() && found.error().code == Errc::not_found && tier.backend_name == "mem")
      return make_error(Errc::not_found,
                        "tier '{}' is memory of this process, which is empty when a command starts: for a "
                        "tier in memory, use a folder in /dev/shm",
                        tier.name);
    if (!found.ok() && found.error().code == Errc::not_found && holds_something_else(tier))
      return make_error(
          Errc::not_found,
          "tier '{}' lacks '{}' of the corpus: its folder contains another corpus, other files or a "
          "damaged copy. Name another folder with --tier; to fill a new one: penstock copy {} --to "
          "FOLDER",
          tier.name, object, corpus.arguments);
    if (!found.ok() && found.error().code == Errc::not_found)
      return make_error(Errc::not_found,
                        "tier '{}' lacks '{}' of the corpus; put a copy there first: "
                        "penstock copy {} --to {}",
                        tier.name, object, corpus.arguments, shell_word(tier.spec));
  }
  return success();
}

}  // namespace penstock
