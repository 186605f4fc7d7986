// What an unfinished data set remembers of itself, under .penstock/: which one it is to become (the state
// file), and which objects are done (the journal). All of it goes once the manifest is there.
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

// Decides every byte of a data set.
struct GenerationState {
  std::string recipe;
  std::uint32_t fingerprint = 0;  // of that recipe's bytes in the build that began; 0 of a finished data set
  std::string format;
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;
  std::map<std::string, std::string> settings;  // the recipe's and the format's, resolved
};

std::string to_text(const GenerationState& state);
// Ties a journal to its state: another one's rows are none.
std::uint32_t journal_key(const GenerationState& state);
// corrupt, saying what is missing; `name` is the file's in messages.
Result<GenerationState> parse_generation_state(std::string_view text,
                                               std::string_view name = kGenerationStateName);
// Describes what differs ("seed 7, not 8"); "" when nothing does.
std::string difference(const GenerationState& there, const GenerationState& wanted);

// Nothing when there is no state file. `root` is the tier's, for messages.
Result<std::optional<GenerationState>> read_generation_state(Backend& backend, std::string_view root = {});
Result<void> write_generation_state(Backend& backend, const GenerationState& state);

// A sample that is in its published object.
struct JournalSample {
  std::uint64_t index = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t crc32c = 0;
};

// A published object, with all its samples.
struct JournalObject {
  PublishedObject whole;
  std::size_t begin = 0;  // its samples in the segment
  std::size_t end = 0;    // beyond begin: an object holds one at least
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

// Appends finished objects. A back end's objects appear whole or not at all, so the journal is a row of
// small objects, one for each flush of each worker. Losing its end costs making those objects again, nothing
// else.
class JournalWriter {
 public:
  // Segments are numbered from `first_segment` on, over all workers; of several writers each takes every
  // `stride`th number.
  JournalWriter(Backend& backend, std::uint32_t key, std::uint64_t first_segment, std::uint64_t stride = 1)
      : backend_(backend), key_(key), stride_(stride), next_(first_segment) {}

  // Publishes the segment; nothing where no object is in it. Any thread.
  Result<void> append(const JournalSegment& segment);

 private:
  Backend& backend_;
  const std::uint32_t key_;
  const std::uint64_t stride_;
  std::mutex mutex_;
  std::uint64_t next_;
};

struct JournalRead {
  std::uint64_t next_segment = 0;  // the first number that is free
  // Rows that fail their own check, those of objects that miss one, and segments that cannot be read on.
  std::uint64_t damaged = 0;
};

// Visits each segment; each of its rows carries its own checksum, under the key with which it was written,
// and objects that miss one are left out, as is what the storage does not give back.
Result<JournalRead> read_journal(Backend& backend, std::uint32_t key,
                                 const std::function<Result<void>(const JournalSegment&)>& visit);

// Removes the journal and the state file, in that order. Fine when they are gone.
Result<void> remove_generation_state(Backend& backend);

}  // namespace penstock
