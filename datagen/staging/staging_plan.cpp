#include "datagen/staging/staging_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "datagen/staging/sealed_object.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/system/whole_file.hpp"

namespace penstock {
namespace {

constexpr std::string_view kPlanKind = "staging plan";

Error plan_error(std::string_view where, std::string_view why) {
  return make_error(Errc::corrupt, "'{}' {}: make it again with penstock stage advise", where, why);
}

Json tier_to_json(const PlannedTier& tier) {
  return {{"name", tier.name}, {"spec", tier.spec}, {"root", tier.root}};
}

PlannedTier tier_from_json(const Json& json) {
  PlannedTier tier{json.at("name").get<std::string>(), json.at("spec").get<std::string>(),
                   json.at("root").get<std::string>()};
  if (tier.spec.empty() || !tier.root.starts_with('/')) throw std::invalid_argument("a tier without a path");
  return tier;
}

PredictedGain gain_from_json(const Json& json) {
  return {.before_s = number_member(json, "before_s"),
          .after_s = number_member(json, "after_s"),
          .gain = number_member(json, "gain"),
          .low = number_member(json, "low"),
          .high = number_member(json, "high"),
          .copy_s = number_member(json, "copy_s"),
          .break_even_epochs = number_member(json, "break_even_epochs")};
}

Json to_json(const StagingPlan& plan) {
  Json files = Json::array();
  for (const PlannedFile& file : plan.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"mtime_ns", file.mtime_ns}});
  return {{"id", plan.id},
          {"made", plan.made_at},
          {"verdict", plan.should_stage ? "stage" : "don't stage"},
          {"reason", plan.reason},
          {"policy", plan.policy},
          {"capacity", plan.capacity_bytes},
          {"threads", plan.threads},
          {"slow", tier_to_json(plan.slow)},
          {"fast", tier_to_json(plan.fast)},
          {"predicted", predicted_json(plan.predicted)},
          {"files", std::move(files)}};
}

void read_files(const Json& json, StagingPlan& plan) {
  for (const Json& one : json.at("files")) {
    PlannedFile file{.name = one.at("name").get<std::string>(), .bytes = count_member(one, "bytes")};
    const Json& mtime = one.at("mtime_ns");
    if (!mtime.is_number_integer()) throw std::invalid_argument("'mtime_ns' is not a whole number");
    file.mtime_ns = mtime.get<int64_t>();
    if (!check_object_name(file.name).ok() || (!plan.files.empty() && plan.files.back().name >= file.name))
      throw std::invalid_argument("names that are invalid or not in order");
    plan.files.push_back(std::move(file));
  }
}

StagingPlan plan_from_json(const Json& json) {
  StagingPlan plan;
  plan.id = json.at("id").get<std::string>();
  if (plan.id.size() != 16 || plan.id.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::invalid_argument("'id' is not an id");
  plan.made_at = json.at("made").get<std::string>();
  const auto verdict = json.at("verdict").get<std::string>();
  if (verdict != "stage" && verdict != "don't stage") throw std::invalid_argument("'verdict' is unknown");
  plan.should_stage = verdict == "stage";
  plan.reason = json.at("reason").get<std::string>();
  plan.policy = json.at("policy").get<std::string>();
  plan.capacity_bytes = count_member(json, "capacity");
  const uint64_t threads = count_member(json, "threads");
  if (threads == 0 || threads > UINT32_MAX)
    throw std::invalid_argument("'threads' is not a number of threads");
  plan.threads = unsigned(threads);
  plan.slow = tier_from_json(json.at("slow"));
  plan.fast = tier_from_json(json.at("fast"));
  plan.predicted = gain_from_json(json.at("predicted"));
  read_files(json, plan);
  if (plan.should_stage == plan.files.empty())
    throw std::invalid_argument("its verdict contradicts its files");
  return plan;
}

}  // namespace

Json predicted_json(const PredictedGain& gain) {
  return {{"before_s", gain.before_s},
          {"after_s", gain.after_s},
          {"gain", gain.gain},
          {"low", gain.low},
          {"high", gain.high},
          {"copy_s", gain.copy_s},
          {"break_even_epochs", gain.break_even_epochs}};
}

uint64_t StagingPlan::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const PlannedFile& file) { return sum + file.bytes; });
}

std::string staging_plan_text(const StagingPlan& plan) {
  return sealed_object_text(kPlanKind, kStagingPlanVersion, to_json(plan));
}

Result<StagingPlan> parse_staging_plan(std::string_view text, std::string_view where) {
  PENSTOCK_ASSIGN(const Json json, parse_sealed_object(kPlanKind, kStagingPlanVersion, text, where));
  try {
    return plan_from_json(json);
  } catch (const std::exception& problem) {
    return plan_error(where, fmt::format("is not a {} ({})", kPlanKind, problem.what()));
  }
}

Result<StagingPlan> load_staging_plan(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
    return make_error(Errc::invalid_argument,
                      "'{}' is not a file: name the plan that 'penstock stage advise -o' wrote",
                      path.native());
  const uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return errno_error(failed.value(), "cannot read the plan", path.native());
  if (size > kMostSealedBytes) return plan_error(path.native(), "is too large for a plan");
  std::ifstream file(path, std::ios::binary);
  std::string text(size_t(size), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size)) && size != 0)
    return errno_error(errno, "cannot read the plan", path.native());
  return parse_staging_plan(text, path.native());
}

Result<void> save_staging_plan(const StagingPlan& plan, const std::string& path) {
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(path, "the plan"));
  PENSTOCK_TRY(file.write(staging_plan_text(plan)));
  return file.publish();
}

}  // namespace penstock
