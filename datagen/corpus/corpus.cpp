#include "datagen/corpus/corpus.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "datagen/corpus/copy_engine.hpp"
#include "datagen/corpus/scan.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generate_target.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "results/record/environment.hpp"

namespace penstock {

namespace {

std::string corpus_name(const Tier& tier) {
  std::string_view root = tier.root;
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  // If there is no '/', this is the whole text: rfind() returns npos, and npos + 1 is 0.
  const std::string_view last_part = root.substr(root.rfind('/') + 1);
  return last_part.empty() || last_part == "." ? tier.name : std::string(last_part);
}

Error not_a_folder(const Tier& tier) {
  return make_error(Errc::invalid_argument,
                    "'{}' is a file, and a corpus is a folder: name the folder that contains it", tier.root);
}

Result<void> check_root(Tier& tier) {
  const Result<Entry> root = tier.backend->names().stat("");
  if (!root.ok()) {
    if (root.error().sys_errno == ENOTDIR) return not_a_folder(tier);
    if (root.error().code != Errc::not_found) return root.error();
    return make_error(Errc::invalid_argument, "{}",
                      tier.backend->caps().native_path ? fmt::format("folder '{}' does not exist", tier.root)
                                                       : root.error().what);
  }
  if (root->folder) return success();
  return not_a_folder(tier);
}

// The command that makes a new manifest of the intact objects. It is advice for the user if the old manifest
// is lost or damaged.
std::string new_manifest_command(const Tier& tier) {
  const std::string tier_text = shell_word(tier.spec);
  return fmt::format("penstock describe {} --scan --types any --checksum --save {}", tier_text,
                     shell_word(fmt::format("{}/{}", tier.root, kManifestName)));
}

Error with_remake_advice(Tier& tier, Error error) {
  if (error.code != Errc::corrupt) return error;
  error.what += "; if its objects are intact, make a new manifest: ";
  error.what += tier.backend->native_path("")
                    ? new_manifest_command(tier)
                    : fmt::format("penstock describe {} --scan --types any --checksum --save FILE",
                                  shell_word(tier.spec));
  return error;
}

Error no_manifest(Tier& tier, const CorpusRequest& request) {
  if (Result<void> no_writer = check_no_writer(tier); !no_writer.ok()) return std::move(no_writer).error();
  if (const std::string unfinished = finish_advice(tier); !unfinished.empty())
    return make_error(Errc::not_found, "'{}' {}", tier.root, unfinished);
  return make_error(
      Errc::not_found,
      fmt::format(
          "'{}' has no manifest ({}): generate a corpus with 'penstock generate', or {} to use the folder as "
          "it is",
          tier.root, kManifestName,
          request.has_scan_option
              ? "add --scan"
              : fmt::format(
                    "pass --manifest FILE (made by 'penstock describe {} --scan --checksum --save FILE')",
                    shell_word(tier.spec))) +
          (tier.backend->native_path("")
               ? "; if it was lost, make a new one from the existing objects: " + new_manifest_command(tier)
               : ""));
}

Result<Manifest> open_manifest(Tier& tier, const CorpusRequest& request) {
  if (!request.manifest_file.empty()) {
    PENSTOCK_ASSIGN(Manifest manifest, Manifest::open(request.manifest_file));
    PENSTOCK_TRY(manifest.check());
    return manifest;
  }
  const Result<Entry> entry = tier.backend->names().stat(kManifestName);
  if (!entry.ok()) return entry.error().code == Errc::not_found ? no_manifest(tier, request) : entry.error();
  if (const auto path = tier.backend->native_path(kManifestName)) {
    Result<Manifest> manifest = Manifest::open(*path);
    if (!manifest.ok()) return with_remake_advice(tier, std::move(manifest).error());
    if (Result<void> checked = manifest->check(); !checked.ok())
      return with_remake_advice(
          tier, make_error(checked.error().code, "{} ('{}')", checked.error().what, path->native()));
    return manifest;
  }
  Result<Manifest> manifest = Manifest::load(*tier.backend, kManifestName);
  if (!manifest.ok()) return with_remake_advice(tier, std::move(manifest).error());
  return manifest;
}

std::string arguments_of(std::string_view corpus, const CorpusRequest& request) {
  std::vector<std::string> words{std::string(corpus)};
  if (request.scan) words.emplace_back("--scan");
  if (!request.types.empty()) words.insert(words.end(), {"--types", request.types});
  if (request.follow_links) words.emplace_back("--follow-links");
  if (!request.field.empty()) words.insert(words.end(), {"--set", "field=" + request.field});
  if (!request.manifest_file.empty()) words.insert(words.end(), {"--manifest", request.manifest_file});
  return shell_line(words);
}

constexpr std::string_view kFieldKey = "field=";

std::string field_of(const Options& options) {
  std::string field;
  for (const std::string& setting : options.texts("set"))
    if (setting.starts_with(kFieldKey)) field = setting.substr(kFieldKey.size());
  if (field.starts_with('/')) field.erase(0, 1);  // h5py's names of datasets
  return field;
}

Error no_samples_error(const Tier& tier) {
  return make_error(Errc::not_found, "the corpus '{}' has no samples", tier.root);
}

}  // namespace

std::string finish_advice(Tier& tier) {
  if (tier.backend->names().stat(kCopyingName).ok())
    return "is a partial copy: run the same 'penstock copy' again to finish it";
  const auto state = read_generation_state(*tier.backend);
  if (!state.ok() || !state->has_value()) return "";
  return fmt::format("is an unfinished data set of {}; to finish it: penstock generate {} --out {} --resume",
                     count_of((*state)->samples, "sample"), (*state)->recipe, shell_word(tier.spec));
}

Result<Corpus> open_corpus(std::string_view corpus, const CorpusRequest& request) {
  if (request.scan && !request.manifest_file.empty())
    return make_error(Errc::invalid_argument,
                      "--scan makes a manifest and --manifest reads one: leave one out");
  if (!request.scan && !request.types.empty())
    return make_error(Errc::invalid_argument, "--types has no effect without --scan: add --scan");
  if (!request.scan && !request.field.empty())
    return make_error(Errc::invalid_argument, "--set field= has no effect without --scan: add --scan");
  if (!request.scan && request.follow_links)
    return make_error(Errc::invalid_argument, "--follow-links has no effect without --scan: add --scan");
  PENSTOCK_ASSIGN(Tier tier, open_tier(corpus, request.named_tiers));
  PENSTOCK_TRY(check_root(tier));
  std::string name = corpus_name(tier);
  if (request.scan) {
    PENSTOCK_ASSIGN(ScanResult scanned, scan_tier(tier, request));
    if (const std::string unfinished = finish_advice(tier); !unfinished.empty() && request.log)
      request.log(fmt::format("warning: '{}' {}; the existing files were scanned", tier.root, unfinished));
    if (!scanned.report.text.empty() && request.log)
      request.log(fmt::format("'{}': {}", tier.root, scanned.report.text));
    if (scanned.manifest.samples() == 0) return no_samples_error(tier);
    return Corpus{std::move(tier),
                  std::move(scanned.manifest),
                  std::move(name),
                  std::move(scanned.report),
                  0,
                  arguments_of(corpus, request)};
  }
  PENSTOCK_ASSIGN(Manifest manifest, open_manifest(tier, request));
  if (manifest.samples() == 0) return no_samples_error(tier);
  const bool mapped = request.manifest_file.empty() && tier.backend->native_path(kManifestName).has_value();
  const uint64_t mapped_bytes = mapped ? manifest.bytes().size() : 0;
  return Corpus{std::move(tier), std::move(manifest), std::move(name),
                std::nullopt,    mapped_bytes,        arguments_of(corpus, request)};
}

CorpusRequest corpus_request(const Options& options) {
  return {.scan = options.flag("scan"),
          .manifest_file = options.text("manifest"),
          .types = options.text("types"),
          .field = field_of(options),
          .follow_links = options.flag("follow-links")};
}

Result<void> check_field_option(const Options& options, bool allows_others) {
  bool has_field = false;
  for (const std::string& setting : options.texts("set")) {
    const bool is_field = setting.starts_with(kFieldKey);
    if (!is_field && allows_others) continue;
    if (!is_field || setting == kFieldKey || std::exchange(has_field, true))
      return make_error(Errc::invalid_argument, "--set needs one field=NAME here, not '{}'", setting);
  }
  return success();
}

Json corpus_json(const Manifest& manifest) {
  const ManifestFacts& facts = manifest.facts();
  const uint64_t memory = memory_bytes();
  const bool has_forms = manifest.forms() > 0;
  const uint64_t bytes = bytes_of_samples(manifest);
  const uint64_t stored_bytes = has_forms ? bytes_of_objects(manifest) : bytes;
  Json out{{"recipe", facts.recipe},
           {"format", facts.format},
           {"codec", facts.codec},
           {"samples", manifest.samples()},
           {"bytes", bytes},
           {"checksum", manifest.checksum()},
           {"over_ram", memory == 0 ? 0.0 : double(stored_bytes) / double(memory)}};
  if (has_forms) out["object_bytes"] = stored_bytes;
  return out;
}

uint64_t bytes_of_samples(const Manifest& manifest) {
  if (manifest.forms() == 0) return manifest.payload_bytes();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < manifest.samples(); ++i) sum += manifest.extent(i).bytes;
  return sum;
}

uint64_t bytes_of_objects(const Manifest& manifest) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < manifest.objects(); ++i) sum += manifest.object_bytes(i);
  return sum;
}

void record_corpus(const Corpus& corpus, Trial& trial) {
  trial.corpus(corpus_json(corpus.manifest));
  if (!corpus.scan) return;
  if (corpus.scan->unreadable_objects > 0)
    trial.verdict(Verdict::degraded, "the scan skipped " + corpus.scan->unreadable_text);
  if (!corpus.scan->first_unentered_folder.empty())
    trial.verdict(Verdict::degraded, "the scan did not follow the link " +
                                         corpus.scan->first_unentered_folder + ": " +
                                         corpus.scan->unentered_remedy);
}

Histogram sample_sizes(const Manifest& manifest) {
  Histogram sizes;
  for (uint64_t i = 0; i < manifest.samples(); ++i) sizes.add(manifest.extent(i).bytes);
  return sizes;
}

}  // namespace penstock
