// A staging plan: the files of a slow tier that are copied to a fast one, and the predicted gain. `penstock
// stage advise` writes it. `stage apply` and `revert` carry it out. `read` and `train` use it to find the
// tier of each object (overlay.hpp). docs/staging.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

inline constexpr uint64_t kStagingPlanVersion = 1;

// A tier as TIER text, and its folder at the time the plan was made.
struct PlannedTier {
  std::string name;
  std::string spec;
  std::string root;  // absolute path
};

struct PlannedFile {
  std::string name;      // relative to both roots
  uint64_t bytes = 0;    // size when the plan was made
  int64_t mtime_ns = 0;  // modification time when the plan was made, since 1970

  bool operator==(const PlannedFile&) const = default;
};

// The predicted gain of one epoch: one pass over the files that the session read. Rates and times are those
// of the program's own threads.
struct PredictedGain {
  double before_s = 0;  // seconds of an epoch with all files on the slow tier
  double after_s = 0;
  double gain = 0;  // before_s / after_s - 1; its confidence interval is [low, high]
  double low = 0;
  double high = 0;
  double copy_s = 0;             // seconds that stage apply takes
  double break_even_epochs = 0;  // epochs until the copy has paid off; 0: never
};

struct StagingPlan {
  std::string id;       // 16 hexadecimal digits
  std::string made_at;  // UTC, ISO 8601
  std::string policy;   // as the user gave it
  uint64_t capacity_bytes = 0;
  unsigned threads = 1;       // number of reading threads of the program
  bool should_stage = false;  // the verdict; false: "don't stage", and the list of files is empty
  std::string reason;         // why `should_stage` is true or false
  PlannedTier slow;
  PlannedTier fast;
  PredictedGain predicted;
  std::vector<PlannedFile> files;  // sorted by name, without duplicates

  uint64_t bytes() const;
};

// The JSON object "predicted" of a plan. Its keys are the names of the members.
Json predicted_json(const PredictedGain& gain);
// One line of JSON, sealed with its CRC32C (results/record/record.hpp), with a newline.
std::string staging_plan_text(const StagingPlan& plan);

// `where` is for messages. `corrupt` if the line is cut, changed or no plan. Also `corrupt` if a name leads
// out of its tier or occurs twice. `unsupported` for another format.
Result<StagingPlan> parse_staging_plan(std::string_view text, std::string_view where);

Result<StagingPlan> load_staging_plan(const std::filesystem::path& path);
// Replaces the file atomically.
Result<void> save_staging_plan(const StagingPlan& plan, const std::string& path);

}  // namespace penstock
