// A staging plan lists the files of a slow tier that are to be copied to a fast one, and the predicted gain.
// `penstock stage advise` writes it, and `stage apply` and `stage revert` carry it out. `read` and `train`
// use it to find the tier of each object (overlay.hpp). docs/reference/staging.md describes the file.
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

// A tier as TIER text (`spec`), such as "slow=posix:/data", and the path of its folder when the plan was made
// (`root`).
struct PlannedTier {
  std::string name;
  std::string spec;
  std::string root;  // absolute path
};

struct PlannedFile {
  std::string name;      // path relative to the root of the slow tier, and to that of the fast tier
  uint64_t bytes = 0;    // size when the plan was made
  int64_t mtime_ns = 0;  // modification time when the plan was made, in ns since 1970

  bool operator==(const PlannedFile&) const = default;
};

// The predicted gain of one epoch. Here an epoch is one pass over the files that the profiled session read.
// The times of epochs are for the program's own number of threads, and copy_s is for the threads of `stage
// apply`.
struct PredictedGain {
  double before_s = 0;  // seconds that an epoch takes with all files on the slow tier
  double after_s = 0;
  double gain = 0;  // before_s / after_s - 1; its confidence interval is [low, high]
  double low = 0;
  double high = 0;
  double copy_s = 0;  // seconds that `stage apply` needs for the copy
  // After this many epochs, the time saved equals the time of the copy; 0: never.
  double break_even_epochs = 0;
};

struct StagingPlan {
  std::string id;       // 16 hexadecimal digits
  std::string made_at;  // UTC, ISO 8601
  std::string policy;   // the policy, as the user wrote it
  uint64_t capacity_bytes = 0;
  unsigned threads = 1;       // number of the program's threads that read
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
// One line of JSON that ends with its own CRC32C (results/record/record.hpp), and a newline.
std::string staging_plan_text(const StagingPlan& plan);

// Parses the text of a plan. Fails with `corrupt` if the line is truncated, changed or no plan. The same
// error means that a name leads out of its tier, occurs twice or is not in order. Fails with `unsupported`
// for a format other than kStagingPlanVersion. `where` names the source of the text, for messages.
Result<StagingPlan> parse_staging_plan(std::string_view text, std::string_view where);

Result<StagingPlan> load_staging_plan(const std::filesystem::path& path);
// Saves the plan, which atomically replaces the old file.
Result<void> save_staging_plan(const StagingPlan& plan, const std::string& path);

}  // namespace penstock
