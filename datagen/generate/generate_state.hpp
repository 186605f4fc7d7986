// The files under .penstock/ in which an unfinished data set describes itself. The state file says which data
// set it will become. The journal lists the finished objects. Both are removed after the manifest is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr std::string_view kGenerationStateName = ".penstock/generate.json";
inline constexpr std::string_view kGenerationLockName = ".penstock/generate.lock";
inline constexpr std::string_view kJournalFolder = ".penstock/generate.journal";

// The parameters that decide every byte of a data set.
struct GenerationState {
  std::string recipe;
  // RecipeInfo::fingerprint of the build that started the data set; it changes when the recipe makes other
  // bytes. 0 if this state was read from the manifest of a finished data set.
  uint32_t fingerprint = 0;
  std::string format;
  uint64_t seed = 0;
  uint64_t samples = 0;
  // all settings of the recipe, with defaults filled in, and those settings of the format that were given
  std::map<std::string, std::string> settings;
};

std::string to_text(const GenerationState& state);
// The key of this data set's journal. The checksum of every row includes it, so that rows of another data set
// are not accepted.
uint32_t journal_key(const GenerationState& state);
// Parses the text of a state file. `corrupt` if a member is missing or has a wrong type, `unsupported` if the
// file has another version. Messages call the file `name`.
Result<GenerationState> parse_generation_state(std::string_view text,
                                               std::string_view name = kGenerationStateName);
// Describes the first difference between the two states, such as "--seed 7, not 8". "" if there is none.
std::string difference(const GenerationState& existing, const GenerationState& requested);

// Reads the state file. Returns nothing if there is none. `root` is the name of the tier in error messages.
Result<std::optional<GenerationState>> read_generation_state(Backend& backend, std::string_view root = {});
Result<void> write_generation_state(Backend& backend, const GenerationState& state);

// A sample of a published object.
struct JournalSample {
  uint64_t index = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t crc32c = 0;
};

// A published object with all its samples.
struct JournalObject {
  PublishedObject published;
  size_t begin = 0;  // index in JournalSegment::samples of its first sample
  size_t end = 0;    // index after its last sample; there is at least one
};

struct JournalSegment {
  std::vector<JournalObject> objects;
  std::vector<JournalSample> samples;
  std::span<const JournalSample> samples_of(const JournalObject& object) const {
    return std::span(samples).subspan(object.begin, object.end - object.begin);
  }
  void append(const JournalSegment& other);
  void clear() {
    objects.clear();
    samples.clear();
  }
};

// Appends finished objects to the journal. The journal is a series of small objects (segments), because back
// ends can publish only whole objects. A worker writes a segment each time that it flushes its rows. If the
// last segments are lost, the objects that they list must be made again; nothing else is lost.
class JournalWriter {
 public:
  // Segments get ascending numbers from `first_segment` on. If several ranks have a writer, each writer uses
  // every `stride`-th number.
  JournalWriter(Backend& backend, uint32_t key, uint64_t first_segment, uint64_t stride = 1)
      : backend_(backend), key_(key), stride_(stride), next_number_(first_segment) {}

  // Publishes the segment, unless it has no objects. Any thread may call it.
  Result<void> append(const JournalSegment& segment);

 private:
  Backend& backend_;
  const uint32_t key_;
  const uint64_t stride_;
  std::mutex mutex_;
  uint64_t next_number_;
};

struct JournalRead {
  uint64_t next_segment = 0;  // a number greater than those of all segments
  // Counts rows that have a wrong checksum, are incomplete, or do not follow their object's row. Also counts
  // the rows of objects of which a row is missing, and the segments that cannot be read.
  uint64_t damaged_parts = 0;
};

// Reads the journal and calls `visit` for each segment. Leaves out objects with a damaged or missing row, and
// the parts of a segment that the storage cannot read. The checksum of a row includes the journal's key, so
// rows that were written with another key count as damaged.
Result<JournalRead> read_journal(Backend& backend, uint32_t key,
                                 const std::function<Result<void>(const JournalSegment&)>& visit);

// Removes the journal, then the state file. Succeeds also if they do not exist.
Result<void> remove_generation_state(Backend& backend);

}  // namespace penstock
