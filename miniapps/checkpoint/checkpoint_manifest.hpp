// Reads, writes and checks MANIFEST, the file that each checkpoint has in its folder. MANIFEST lists the
// files of the checkpoint, checksums for every byte of these files, and all else that a restart needs.
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

inline constexpr uint64_t kCheckpointChunk = uint64_t{4} << 20;  // bytes that one CRC32C covers
// Whether an error means that the bytes themselves are wrong, so that reading them again cannot help.
constexpr bool is_data_error(Errc code) {
  return code == Errc::corrupt || code == Errc::truncated;
}

inline constexpr std::string_view kCheckpointManifest = "MANIFEST";

// The number of chunks of a file of `bytes` bytes.
constexpr uint64_t chunk_count(uint64_t bytes) {
  return bytes / kCheckpointChunk + (bytes % kCheckpointChunk == 0 ? 0 : 1);
}

// Names a checkpoint of a run. The newer checkpoint has the greater step or, of the same step, the greater
// generation. The order does not depend on any clock.
struct CheckpointId {
  uint64_t step = 0;
  uint64_t generation = 0;  // 0 for the first save of this step, 1 for the next ...

  friend auto operator<=>(const CheckpointId&, const CheckpointId&) = default;
};

// Returns the name of the checkpoint's folder, such as "000000000120.0": the step has at least 12 digits.
// parse_checkpoint_folder() converts such a name back; any other name is invalid_argument.
std::string folder_of(const CheckpointId& id);
Result<CheckpointId> parse_checkpoint_folder(std::string_view folder);

// Checks the name of a run: 1 to 100 letters, digits, '-', '_' and '.', not beginning with '.'; else
// invalid_argument. A checkpoint is in the folder "ckpt/<run>/<folder_of(id)>" of its store.
Result<void> check_run_name(std::string_view run);

// Checks the name of a file in a checkpoint: 1 to 200 printable ASCII characters without space and '/', not
// beginning with '.' or "part-", and not "MANIFEST"; else invalid_argument.
Result<void> check_checkpoint_file_name(std::string_view name);

struct CheckpointFile {
  std::string name;  // such as "rank-0.bin", directly in the checkpoint's folder
  uint64_t rank = 0;
  uint64_t bytes = 0;
  std::vector<uint32_t> chunks;  // CRC32C of each kCheckpointChunk bytes; the last chunk may be shorter

  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

// Compares two files in the order of a manifest: by rank, then by name.
bool by_rank_and_name(const CheckpointFile& a, const CheckpointFile& b);

// Where the training is in its data, and its seed: all that a restart needs to continue with exactly the next
// sample. The state of a random number generator is not needed: each random number is calculated from the
// seed and an index (random.hpp).
struct TrainerState {
  uint64_t epoch = 0;
  uint64_t step_of_epoch = 0;  // steps of the epoch that are done
  uint64_t consumed = 0;       // samples of the epoch that all ranks have used
  uint64_t seed = 0;

  // These members and the seed and number of ranks determine the order of the samples. A training that
  // resumes from the checkpoint must have the same values. In a checkpoint that no training has saved, these
  // members are "" and 0.
  std::string app{};          // the mini-app, such as "alexnet"
  std::string corpus{};       // checksum of the corpus's manifest
  std::string shuffle{};      // how samples are shuffled, such as "buffer:100"
  uint64_t step_samples = 0;  // samples that one rank uses in one step

  friend bool operator==(const TrainerState&, const TrainerState&) = default;
};

struct CheckpointManifest {
  std::string store_uuid;  // uuid of the store that contains this copy
  std::string run;
  CheckpointId id;
  uint64_t ranks = 1;
  std::vector<CheckpointFile> files;  // files of all ranks, in the order of rank and name
  TrainerState trainer;
  std::string payload;  // the payload (payload.hpp) that made the bytes, by its name; "": a user's own files
  uint64_t payload_seed = 0;
  std::string snapshot_time;  // UTC, ISO 8601: when save() was called
  std::string commit_time;    // when this copy was committed
  std::string writer;         // host, process and version, for people to read

  uint64_t bytes() const;

  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

// Checks the run's name and the list of files: names, order, numbers of checksums, and a file for each rank.
// Returns corrupt if any of these is wrong. `object` is the name of the manifest, for error messages.
Result<void> check_manifest(const CheckpointManifest& manifest, std::string_view object);

// Returns JSON text and, on its own line, the CRC32C of the text before it.
std::string serialize(const CheckpointManifest& manifest);

// The most bytes that the entry of one file takes in a manifest: 8 digits for each chunk, 2 bytes for each
// character of the name (JSON may escape it), and a fixed number of other bytes.
uint64_t manifest_entry_bytes(std::string_view name, uint64_t bytes);
// Checks that the manifest of a checkpoint will be short enough to be read back; else unsupported. Call it
// before anything is written.
// `entries_bytes`: the sum of manifest_entry_bytes() over all files. `bytes` and `files`: the size and the
// number of files of the checkpoint, for the message.
Result<void> check_manifest_bytes(uint64_t bytes, uint64_t entries_bytes, uint64_t files);

// Reads and checks the text of a manifest. corrupt: the checksum line is wrong or missing, or the contents
// contradict each other. Examples: a rank without a file, a file name that is used twice, a count of chunks
// that does not fit the bytes. unsupported: another version of the format. `object` is the name of the
// manifest, for error messages.
Result<CheckpointManifest> parse_checkpoint_manifest(std::string_view text, std::string_view object);

// serialize_part(): returns the text in which a rank lists the files that it wrote, for the rank that commits
// (PendingCheckpoint::report_files()). parse_checkpoint_part(): reads and checks this text.
std::string serialize_part(uint64_t rank, std::span<const CheckpointFile> files);
Result<std::vector<CheckpointFile>> parse_checkpoint_part(std::string_view text, uint64_t rank,
                                                          std::string_view object);

// Compares `crc` with the checksum that the manifest has for chunk `index` of the file. If they differ:
// corrupt, and the message names the chunk's first byte.
Result<void> check_chunk(const CheckpointFile& file, uint64_t index, uint32_t crc, std::string_view object);

}  // namespace penstock
