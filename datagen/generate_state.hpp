// What an unfinished data set remembers of itself, under .penstock/: which one it is to become (the state
// file), and which samples are done (the journal). All of it is gone once the manifest is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

inline constexpr std::string_view kGenerationStateName = ".penstock/generate.json";
inline constexpr std::string_view kGenerationLockName = ".penstock/generate.lock";
inline constexpr std::string_view kJournalFolder = ".penstock/generate.journal";

// Decides every byte of a data set.
struct GenerationState {
  std::string recipe;
  std::string format;
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;
  std::map<std::string, std::string> settings;  // the recipe's and the format's, resolved
};

std::string to_text(const GenerationState& state);
Result<GenerationState> parse_generation_state(std::string_view text);  // corrupt, saying what is missing
// What differs, in words ("seed 7, not 8"); "" when nothing does.
std::string difference(const GenerationState& there, const GenerationState& wanted);

// Nothing when there is no state file.
Result<std::optional<GenerationState>> read_generation_state(Backend& backend);
Result<void> write_generation_state(Backend& backend, const GenerationState& state);

// A sample that lies in its published object.
struct JournalEntry {
  std::uint64_t index = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t crc32c = 0;
};

// Appends finished samples. A back end's objects appear whole or not at all, so the journal is a row of
// small objects, one for each flush of each worker. Losing its end costs making those samples again, nothing
// else.
class JournalWriter {
 public:
  // Segments are numbered from `first_segment` on, over all workers.
  JournalWriter(Backend& backend, std::uint64_t first_segment) : backend_(backend), next_(first_segment) {}

  // Publishes the entries as one segment. Any thread.
  Result<void> append(const std::vector<JournalEntry>& entries);

 private:
  Backend& backend_;
  std::mutex mutex_;
  std::uint64_t next_;
};

struct JournalRead {
  std::uint64_t next_segment = 0;  // the first number that is free
  std::uint64_t damaged = 0;       // entries that fail their own check: left out
};

// Visits each segment's entries; each entry carries its own checksum, and those that fail it are left out. An
// unreadable segment is an error.
Result<JournalRead> read_journal(Backend& backend,
                                 const std::function<Result<void>(const std::vector<JournalEntry>&)>& visit);

// Removes the journal and the state file, in that order. Fine when they are gone.
Result<void> remove_generation_state(Backend& backend);

}  // namespace penstock
