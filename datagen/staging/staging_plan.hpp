// PLAN: which files of a slow tier are to lie on a fast one as well, and what that was predicted to bring.
// `penstock stage advise` writes it, `stage apply` and `revert` work it off, and `read` and `train` take each
// object from its tier by it (overlay.hpp). docs/staging.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

inline constexpr std::uint64_t kStagingPlanFormat = 1;

// A tier as TIER text, and the folder it stood for when the plan was made.
struct PlannedTier {
  std::string name;
  std::string spec;
  std::string root;  // absolute
};

struct PlannedFile {
  std::string name;           // relative to both roots
  std::uint64_t bytes = 0;    // when the plan was made, as the next
  std::int64_t mtime_ns = 0;  // since 1970

  bool operator==(const PlannedFile&) const = default;
};

// Of an epoch: once through what the session read. Rates and times are of the program's own threads.
struct PredictedGain {
  double before_s = 0;  // all from the slow tier
  double after_s = 0;
  double gain = 0;  // before / after - 1, between low and high
  double low = 0;
  double high = 0;
  double copy_s = 0;             // of stage apply
  double break_even_epochs = 0;  // until copying has paid; 0: never
};

struct StagingPlan {
  std::string id;      // 16 hexadecimal digits
  std::string made;    // UTC, ISO 8601
  std::string policy;  // as given
  std::uint64_t capacity = 0;
  unsigned threads = 1;  // that the program reads by
  bool stage = false;    // the verdict: false is "don't stage", and then there are no files
  std::string reason;    // of the verdict
  PlannedTier slow;
  PlannedTier fast;
  PredictedGain predicted;
  std::vector<PlannedFile> files;  // by name, none twice

  std::uint64_t bytes() const;
};

// As it is in a plan, under "predicted": its members by their own names.
Json predicted_json(const PredictedGain& gain);
// One line of JSON, sealed with its CRC32C (results/record/record_file.hpp), with a line's end.
std::string staging_plan_text(const StagingPlan& plan);

// `where` is for messages. corrupt where the line is cut, changed, no plan, or says what no plan can say (a
// name that leads out of its tier, two files of one name); unsupported for another format.
Result<StagingPlan> parse_staging_plan(std::string_view text, std::string_view where);

Result<StagingPlan> load_staging_plan(const std::filesystem::path& path);
// Whole or not at all.
Result<void> save_staging_plan(const StagingPlan& plan, const std::string& path);

}  // namespace penstock
