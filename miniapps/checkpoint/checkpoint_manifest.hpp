// MANIFEST: what makes a folder of files a checkpoint. It says all that a restart has to know, and enough to
// prove every byte.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr std::uint64_t kCheckpointChunk = std::uint64_t{4} << 20;  // bytes that one CRC32C is of
// Whether an error says that bytes are wrong, so that no later look will find them better.
constexpr bool found_wrong(Errc code) {
  return code == Errc::corrupt || code == Errc::truncated;
}

inline constexpr std::string_view kCheckpointManifest = "MANIFEST";

// How many chunks that many bytes make.
constexpr std::uint64_t whole_chunks(std::uint64_t bytes) {
  return bytes / kCheckpointChunk + (bytes % kCheckpointChunk == 0 ? 0 : 1);
}

// Which one. Newer is the greater step; of one step, the greater generation, whatever clocks say.
struct CheckpointId {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;  // counts the savings of one step

  friend auto operator<=>(const CheckpointId&, const CheckpointId&) = default;
};

// "000000000120.0", of at least 12 digits; and back: invalid_argument for anything else.
std::string folder_of(const CheckpointId& id);
Result<CheckpointId> parse_checkpoint_folder(std::string_view folder);

// What a checkpoint's folder is to a store, "ckpt/<run>/<folder_of(id)>". A run's name is 1 to 100 letters,
// digits, '-', '_', '.', and does not begin with '.'.
Result<void> check_run_name(std::string_view run);

// The name of a file in a checkpoint: at most 200 printable ASCII characters without '/', not beginning with
// '.' or "part-", and not "MANIFEST": invalid_argument.
Result<void> check_checkpoint_file_name(std::string_view name);

struct CheckpointFile {
  std::string name;  // in the checkpoint's folder: "rank-0.bin"; no folders
  std::uint64_t rank = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> chunks;  // CRC32C of each kCheckpointChunk bytes; the last ones may be fewer

  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

// The order of the files in a manifest.
bool by_rank_and_name(const CheckpointFile& a, const CheckpointFile& b);

// What determines the order of a training's samples, in addition to its seed and its ranks. A training that
// resumes from it must have the same. "" and 0 in checkpoints that no training made.
struct TrainedWork {
  std::string app;                 // "alexnet"
  std::string corpus;              // checksum of its manifest
  std::string shuffle;             // "buffer:100"
  std::uint64_t step_samples = 0;  // of one rank

  friend bool operator==(const TrainedWork&, const TrainedWork&) = default;
};

// Where the training stood: what it takes to go on with the very next sample. Random numbers are drawn from
// indexed streams (random.hpp), so that the seed is all of their state.
struct TrainerState {
  std::uint64_t epoch = 0;
  std::uint64_t step_of_epoch = 0;  // steps of the epoch that were made
  std::uint64_t consumed = 0;       // samples of the epoch, over all ranks
  std::uint64_t seed = 0;
  TrainedWork work{};

  friend bool operator==(const TrainerState&, const TrainerState&) = default;
};

struct CheckpointManifest {
  std::string store;  // uuid of the store that it is in
  std::string run;
  CheckpointId id;
  std::uint64_t ranks = 1;
  std::vector<CheckpointFile> files;  // of all ranks, by rank and name
  TrainerState trainer;
  std::string payload;  // what the bytes are of: a payload's name (payload.hpp); "" for what a user gave
  std::uint64_t payload_seed = 0;
  std::string snapshot_time;  // UTC, ISO 8601: when the bytes were the training's
  std::string commit_time;    // when this copy was committed
  std::string writer;         // host, process and version, for people

  std::uint64_t bytes() const;

  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

// corrupt unless all of it goes together: names, ranks, chunks, order.
Result<void> check_manifest(const CheckpointManifest& manifest, std::string_view object);

// JSON and, on a line of its own, the CRC32C of what stands before it.
std::string serialize(const CheckpointManifest& manifest);

// At most that many bytes of a manifest are a file's entry: 8 digits a chunk, its name, and some more.
std::uint64_t manifest_entry_bytes(std::string_view name, std::uint64_t bytes);
// unsupported where a manifest whose entries have that many bytes may be too long to be read back: to be
// asked before anything is written. `bytes` and `files` of the checkpoint are for the message.
Result<void> check_manifest_bytes(std::uint64_t bytes, std::uint64_t entries_bytes, std::uint64_t files);

// Takes nothing on trust: a wrong or missing trailer, a rank without a file, names with folders or twice,
// chunks that do not go with the bytes are `corrupt`; another version of the format is `unsupported`.
// `object` is for messages.
Result<CheckpointManifest> parse_checkpoint_manifest(std::string_view text, std::string_view object);

// The same for what one rank has written: how it tells the one that commits (Staged::leave_part()).
std::string serialize_part(std::uint64_t rank, std::span<const CheckpointFile> files);
Result<std::vector<CheckpointFile>> parse_checkpoint_part(std::string_view text, std::uint64_t rank,
                                                          std::string_view object);

// Whether `crc` is what the manifest says of that chunk of the file: corrupt, naming the chunk's first byte.
Result<void> check_chunk(const CheckpointFile& file, std::uint64_t index, std::uint32_t crc,
                         std::string_view object);

}  // namespace penstock
