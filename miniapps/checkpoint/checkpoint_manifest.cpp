#include "miniapps/checkpoint/checkpoint_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>
#include <tuple>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/sealed_json.hpp"

namespace penstock {
namespace {

constexpr std::string_view kManifestKind = "checkpoint";
constexpr std::string_view kPartKind = "part of a checkpoint";
constexpr size_t kLongestRunName = 100;
constexpr size_t kLongestFileName = 200;
constexpr size_t kCrcDigits = 8;
constexpr size_t kEntryOverhead = 160;       // bytes of a file's entry that are neither name nor checksums
constexpr size_t kManifestOverhead = 16384;  // bytes of a manifest that are not in the entries of files

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Error wrong_file(std::string_view object, std::string_view why) {
  return make_error(Errc::corrupt, "'{}' is damaged: {}", object, why);
}

// Joins the checksums of all chunks, with 8 hexadecimal digits for each. A short form is needed: a checkpoint
// of 1 TB has about 240,000 checksums.
std::string hex_of(const std::vector<uint32_t>& chunks) {
  std::string text;
  text.reserve(chunks.size() * kCrcDigits);
  for (const uint32_t crc : chunks)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(crc >> shift) & 15U];
  return text;
}

std::vector<uint32_t> chunks_from(const std::string& text) {
  if (text.size() % kCrcDigits != 0) throw std::invalid_argument("truncated checksums");
  std::vector<uint32_t> chunks(text.size() / kCrcDigits);
  const char* digits = text.data();
  for (uint32_t& crc : chunks) {
    const auto [stop, failure] = std::from_chars(digits, digits + kCrcDigits, crc, 16);
    if (failure != std::errc{} || stop != digits + kCrcDigits) throw std::invalid_argument("not a checksum");
    digits += kCrcDigits;
  }
  return chunks;
}

Json json_of(std::span<const CheckpointFile> files) {
  Json rows = Json::array();
  for (const CheckpointFile& file : files)
    rows.push_back(Json{
        {"name", file.name}, {"rank", file.rank}, {"bytes", file.bytes}, {"chunks", hex_of(file.chunks)}});
  return rows;
}

std::vector<CheckpointFile> files_from(const Json& rows) {
  if (!rows.is_array()) throw std::invalid_argument("'files' is not a list");
  std::vector<CheckpointFile> files;
  files.reserve(rows.size());
  for (const Json& row : rows)
    files.push_back({.name = row.at("name").get<std::string>(),
                     .rank = count_at(row, "rank"),
                     .bytes = count_at(row, "bytes"),
                     .chunks = chunks_from(row.at("chunks").get_string())});
  return files;
}

Json json_of(const TrainerState& trainer) {
  return {{"epoch", trainer.epoch},
          {"step_of_epoch", trainer.step_of_epoch},
          {"consumed", trainer.consumed},
          {"seed", trainer.seed},
          {"work", Json{{"app", trainer.app},
                        {"corpus", trainer.corpus},
                        {"shuffle", trainer.shuffle},
                        {"step_samples", trainer.step_samples}}}};
}

TrainerState trainer_from(const Json& json) {
  TrainerState trainer{.epoch = count_at(json, "epoch"),
                       .step_of_epoch = count_at(json, "step_of_epoch"),
                       .consumed = count_at(json, "consumed"),
                       .seed = count_at(json, "seed")};
  if (!json.contains("work")) return trainer;
  const Json& work = json.at("work");
  trainer.app = work.at("app").get<std::string>();
  trainer.corpus = work.at("corpus").get<std::string>();
  trainer.shuffle = work.at("shuffle").get<std::string>();
  trainer.step_samples = count_at(work, "step_samples");
  return trainer;
}

// Checks a list of files, of a whole manifest or of one rank: their names, order and numbers of checksums.
Result<void> check_files(std::span<const CheckpointFile> files, std::string_view object) {
  std::set<std::string_view> names;
  const CheckpointFile* previous = nullptr;
  for (const CheckpointFile& file : files) {
    if (const auto named = check_checkpoint_file_name(file.name); !named)
      return wrong_file(object, named.error().what);
    if (!names.insert(file.name).second)
      return wrong_file(object, fmt::format("'{}' is listed twice", file.name));
    if (file.chunks.size() != chunk_count(file.bytes))
      return wrong_file(object, fmt::format("'{}' has {} checksums for {} bytes", file.name,
                                            file.chunks.size(), file.bytes));
    if (previous != nullptr && by_rank_and_name(file, *previous))
      return wrong_file(object, fmt::format("'{}' is in the wrong position of the list", file.name));
    previous = &file;
  }
  return success();
}

}  // namespace

bool by_rank_and_name(const CheckpointFile& a, const CheckpointFile& b) {
  return std::tie(a.rank, a.name) < std::tie(b.rank, b.name);
}

std::string folder_of(const CheckpointId& id) {
  return fmt::format("{:012}.{}", id.step, id.generation);
}

Result<CheckpointId> parse_checkpoint_folder(std::string_view folder) {
  CheckpointId id;
  const char* const end = folder.data() + folder.size();
  const auto step = std::from_chars(folder.data(), end, id.step);
  if (step.ec == std::errc{} && step.ptr != end && *step.ptr == '.') {
    const auto generation = std::from_chars(step.ptr + 1, end, id.generation);
    if (generation.ec == std::errc{} && generation.ptr == end && folder_of(id) == folder) return id;
  }
  return make_error(Errc::invalid_argument, "'{}' is not the name of a checkpoint: write it as {}", folder,
                    folder_of({120, 0}));
}

Result<void> check_run_name(std::string_view run) {
  const bool is_valid = !run.empty() && run.size() <= kLongestRunName && run.front() != '.' &&
                        std::all_of(run.begin(), run.end(), [](char c) {
                          return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
                        });
  if (is_valid) return success();
  return make_error(
      Errc::invalid_argument,
      "'{}' is not a valid run name: use 1 to {} letters, digits, '-', '_' and '.', not starting with '.'",
      run, kLongestRunName);
}

Result<void> check_checkpoint_file_name(std::string_view name) {
  const bool is_valid =
      !name.empty() && name.size() <= kLongestFileName && name.front() != '.' && !name.starts_with("part-") &&
      name != kCheckpointManifest &&
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  if (is_valid) return check_object_name(name);
  return make_error(Errc::invalid_argument,
                    "'{}' is not a valid file name in a checkpoint: use 1 to {} printable characters without "
                    "'/', not {}, and not starting with '.' or \"part-\"",
                    name, kLongestFileName, kCheckpointManifest);
}

uint64_t CheckpointManifest::bytes() const {
  uint64_t sum = 0;
  for (const CheckpointFile& file : files) sum += file.bytes;
  return sum;
}

Result<void> check_manifest(const CheckpointManifest& manifest, std::string_view object) {
  if (const auto named = check_run_name(manifest.run); !named) return wrong_file(object, named.error().what);
  PENSTOCK_TRY(check_files(manifest.files, object));
  // Looks for the first rank without a file. The files are in the order of their ranks: check_files() has
  // checked that.
  uint64_t next_rank = 0;
  for (const CheckpointFile& file : manifest.files) {
    if (file.rank > next_rank) break;
    if (file.rank == next_rank) ++next_rank;
  }
  if (manifest.ranks == 0) return wrong_file(object, "it has no ranks");
  if (next_rank < manifest.ranks) return wrong_file(object, fmt::format("rank {} has no file", next_rank));
  if (manifest.files.back().rank >= manifest.ranks)
    return wrong_file(
        object, fmt::format("'{}' belongs to rank {}, and there are {} ranks", manifest.files.back().name,
                            manifest.files.back().rank, manifest.ranks));
  return success();
}

std::string serialize(const CheckpointManifest& manifest) {
  return seal_json(kManifestKind, Json{{"store", manifest.store_uuid},
                                       {"run", manifest.run},
                                       {"step", manifest.id.step},
                                       {"generation", manifest.id.generation},
                                       {"ranks", manifest.ranks},
                                       {"bytes", manifest.bytes()},
                                       {"trainer", json_of(manifest.trainer)},
                                       {"payload", manifest.payload},
                                       {"payload_seed", manifest.payload_seed},
                                       {"snapshot_time", manifest.snapshot_time},
                                       {"commit_time", manifest.commit_time},
                                       {"writer", manifest.writer},
                                       {"chunk_bytes", kCheckpointChunk},
                                       {"files", json_of(manifest.files)}});
}

uint64_t manifest_entry_bytes(std::string_view name, uint64_t bytes) {
  return chunk_count(bytes) * kCrcDigits + 2 * name.size() + kEntryOverhead;
}

Result<void> check_manifest_bytes(uint64_t bytes, uint64_t entries_bytes, uint64_t files) {
  if (entries_bytes <= kMostSealedBytes - kManifestOverhead) return success();
  return make_error(Errc::unsupported,
                    "a checkpoint of {} in {} files needs a manifest of up to {}, and the limit is {}: save "
                    "less at a time, each part as a separate --run",
                    format_size(bytes), files, format_size(entries_bytes), format_size(kMostSealedBytes));
}

Result<CheckpointManifest> parse_checkpoint_manifest(std::string_view text, std::string_view object) {
  PENSTOCK_ASSIGN(const Json json, unseal_json(kManifestKind, text, object));
  CheckpointManifest manifest;
  try {
    manifest = {.store_uuid = json.at("store").get<std::string>(),
                .run = json.at("run").get<std::string>(),
                .id = {count_at(json, "step"), count_at(json, "generation")},
                .ranks = count_at(json, "ranks"),
                .files = files_from(json.at("files")),
                .trainer = trainer_from(json.at("trainer")),
                .payload = json.at("payload").get<std::string>(),
                .payload_seed = count_at(json, "payload_seed"),
                .snapshot_time = json.at("snapshot_time").get<std::string>(),
                .commit_time = json.at("commit_time").get<std::string>(),
                .writer = json.at("writer").get<std::string>()};
    if (count_at(json, "chunk_bytes") != kCheckpointChunk)
      return wrong_file(object, "its checksums are for another chunk size");
    PENSTOCK_TRY(check_manifest(manifest, object));
    if (count_at(json, "bytes") != manifest.bytes())
      return wrong_file(object, "the sizes of its files do not add up to its total");
  } catch (const std::exception& problem) {
    return wrong_file(object, problem.what());
  }
  return manifest;
}

std::string serialize_part(uint64_t rank, std::span<const CheckpointFile> files) {
  return seal_json(kPartKind, Json{{"rank", rank}, {"files", json_of(files)}});
}

Result<std::vector<CheckpointFile>> parse_checkpoint_part(std::string_view text, uint64_t rank,
                                                          std::string_view object) {
  PENSTOCK_ASSIGN(const Json json, unseal_json(kPartKind, text, object));
  std::vector<CheckpointFile> files;
  try {
    files = files_from(json.at("files"));
    if (count_at(json, "rank") != rank) return wrong_file(object, "it belongs to another rank");
  } catch (const std::exception& problem) {
    return wrong_file(object, problem.what());
  }
  PENSTOCK_TRY(check_files(files, object));
  const bool ranks_match =
      std::all_of(files.begin(), files.end(), [&](const auto& file) { return file.rank == rank; });
  if (!ranks_match) return wrong_file(object, "one of its files belongs to another rank");
  return files;
}

Result<void> check_chunk(const CheckpointFile& file, uint64_t index, uint32_t crc, std::string_view object) {
  if (index < file.chunks.size() && file.chunks[index] == crc) return success();
  const uint64_t begin = std::min(index * kCheckpointChunk, file.bytes);
  return make_error(Errc::corrupt, "'{}' differs from the saved bytes, in the {} from byte {} on", object,
                    format_size(std::min(kCheckpointChunk, file.bytes - begin)), begin);
}

}  // namespace penstock
