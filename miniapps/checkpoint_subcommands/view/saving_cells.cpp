#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

using namespace saving_metrics;
using namespace bench_metrics;

const Json* tier_of(const Record& record, std::string_view role) {
  const auto tier = record.tiers.find(std::string(role));
  return tier == record.tiers.end() || !tier->is_object() ? nullptr : &*tier;
}

std::string spec_of(const Record& record, std::string_view role) {
  const Json* const tier = tier_of(record, role);
  if (tier == nullptr) return "";
  const auto spec = tier->find("spec");
  return spec == tier->end() || !spec->is_string() ? "" : spec->get<std::string>();
}

constexpr std::array<std::string_view, 1> kArm{"arm"};

// Records with the same key form a group. The option `burst_buffer` is part of the key, since the records of
// all arms have it. The fast tier is not part of the key, since records of the direct arm name none.
std::string saving_key(const Record& record) {
  return spec_of(record, "checkpoint") + "|" + parameter_text(record, "burst_buffer") + "|" +
         environment_text(record, "host") + "|" + label_text(record) + "|" + work_key(record, kArm);
}

// The part of the id that all records of one call of the command share.
std::string invocation_of(const Record& record) {
  return record.id.substr(0, record.id.rfind('-'));
}

double pair_of(const Record& record) {
  if (!record.pair.is_object()) return 0;
  const auto index = record.pair.find("index");
  return index == record.pair.end() || !index->is_number() ? 0 : index->get<double>();
}

std::string tiers_text(const SavingGroup& group) {
  std::string fast;
  for (const SavingRuns& arm : group.arms)
    if (fast.empty()) fast = fast_name(arm.first());
  return "to " + role_name(group.arms.front().first(), "checkpoint") +
         (fast.empty() ? "" : " through " + fast);
}

bool has_saved(const Record& record) {
  return record.command == "checkpoint" && is_usable(record) && find_metric(record, kBlockTime) != nullptr;
}

bool has_skipped(const Record& record) {
  if (record.command != "checkpoint" || !is_usable(record)) return false;
  const Metric* const skips = find_metric(record, kSkips);
  return skips != nullptr && skips->value() > 0;
}

// Returns for each group a row of texts in which the groups may differ. `records` has the first record of
// each group.
std::vector<std::vector<std::string>> saving_texts(std::span<const Record* const> records) {
  constexpr std::array<std::string_view, 2> kAlreadyNamed{"arm", "payload"};
  std::vector<std::vector<std::string>> rows = work_rows(records, kAlreadyNamed);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].insert(rows[i].end(), {environment_text(*records[i], "host"), label_text(*records[i])});
  return rows;
}

// Makes a group of `found`, the records of one call of the command that did the same work.
SavingGroup group_of(std::vector<const Record*> found) {
  SavingGroup group{saved_payload(*found.front()), "", {}};
  std::stable_sort(found.begin(), found.end(),
                   [](const Record* a, const Record* b) { return pair_of(*a) < pair_of(*b); });
  std::map<std::string, std::vector<const Record*>> arms;
  for (const Record* const record : found) arms[parameter_text(*record, "arm")].push_back(record);
  for (auto& [arm, runs] : arms) {
    const std::string how = saved_how(*runs.front(), arm);
    group.arms.push_back({arm, std::move(runs), how});
  }
  std::stable_partition(group.arms.begin(), group.arms.end(),
                        [](const SavingRuns& runs) { return runs.arm == "direct"; });
  return group;
}

}  // namespace

const SavingRuns* SavingGroup::find(std::string_view arm) const {
  for (const SavingRuns& runs : arms)
    if (runs.arm == arm) return &runs;
  return nullptr;
}

bool is_saving(const Record& record) {
  return has_saved(record) && !parameter_text(record, "arm").empty();
}

bool is_single_save(const Record& record) {
  return (has_saved(record) || has_skipped(record)) && parameter_text(record, "arm").empty();
}

std::vector<SavingRuns> single_saves(std::span<const Record> records) {
  std::vector<SavingRuns> saves;
  RecordList first_of_each;
  for (RecordList& found : grouped(
           records, [](const Record& record) { return is_single_save(record) ? saving_key(record) : ""; })) {
    const Record& first = *found.front();
    first_of_each.push_back(&first);
    saves.push_back({"", std::move(found), saved_payload(first) + " " + saved_how(first, "")});
  }
  const std::vector<std::string> titles = titles_of(saving_texts(first_of_each));
  for (size_t i = 0; i < saves.size(); ++i)
    if (!titles[i].empty()) saves[i].name += ", " + titles[i];
  return saves;
}

std::vector<SavingGroup> saving_groups(std::span<const Record> records) {
  std::vector<SavingGroup> groups;
  RecordList first_of_each;
  for (RecordList& found :
       grouped(records, [](const Record& record) { return is_saving(record) ? saving_key(record) : ""; })) {
    const Record* latest = found.front();
    for (const Record* const record : found)
      if (record->started >= latest->started) latest = record;
    std::erase_if(found, [run = invocation_of(*latest)](const Record* record) {
      return invocation_of(*record) != run;
    });
    first_of_each.push_back(found.front());
    groups.push_back(group_of(std::move(found)));
  }
  const std::vector<std::string> titles = titles_of(saving_texts(first_of_each));
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!titles[i].empty()) groups[i].name += ", " + titles[i];
    groups[i].title = groups[i].name + (titles[i].empty() ? " " : ", ") + tiers_text(groups[i]);
  }
  return groups;
}

std::string saved_payload(const Record& record) {
  if (const std::string payload = parameter_text(record, "payload"); !payload.empty()) return payload;
  const std::string folder = parameter_text(record, "from");
  return folder.empty() ? "checkpoints" : "files of " + folder;
}

std::string fast_name(const Record& record) {
  const Json* const tier = tier_of(record, "burst_buffer");
  if (tier == nullptr) return "";
  const auto memory = tier->find("memory");
  const bool is_volatile = memory != tier->end() && memory->is_boolean() && memory->get<bool>();
  return role_name(record, "burst_buffer") + (is_volatile ? " (volatile)" : "");
}

std::string saved_how(const Record& record, std::string_view arm) {
  const std::string fast = fast_name(record);
  if (arm != "snapshot")
    return fast.empty() ? "straight to " + role_name(record, "checkpoint") : "through " + fast;
  return "by a copy in memory to " + (fast.empty() ? role_name(record, "checkpoint") : fast);
}

std::vector<double> samples_of(std::span<const Record* const> runs, std::string_view metric) {
  std::vector<double> all;
  for (const Record* const record : runs)
    if (const Metric* const found = find_metric(*record, metric))
      std::copy_if(found->samples.begin(), found->samples.end(), std::back_inserter(all),
                   [](double sample) { return std::isfinite(sample); });
  return all;
}

double SavingRuns::sum(const MetricInfo& metric) const {
  const std::vector<double> all = samples_of(runs, metric);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

std::optional<double> SavingRuns::median_of(std::string_view metric) const {
  const std::vector<double> all = samples_of(runs, metric);
  if (all.empty()) return std::nullopt;
  return median(all);
}

bool ceilings_hold(std::span<const Record* const> runs) {
  for (const Record* const record : runs) {
    if (record->verdict == Verdict::ceiling_invalid) return false;
    const Record* const one[] = {record};
    for (const double share : samples_of(one, kDrainOfCeiling))
      if (share > kCeilingTolerance) return false;
    // Skips snapshots: the training waits for a copy in memory, which no ceiling of a tier limits.
    if (parameter_text(*record, "arm") == "snapshot") continue;
    for (const double times : samples_of(one, kBlockOfCeiling))
      if (times * kCeilingTolerance < 1) return false;
  }
  return true;
}

std::optional<double> allowed_block_s(const SavingRuns& arm) {
  if (arm.arm == "snapshot" || !ceilings_hold(arm.runs)) return std::nullopt;
  const bool fast = !fast_name(arm.first()).empty();
  const auto ceiling = arm.median_of(kCeilingOf.with(fast ? "fast" : "slow"));
  const auto bytes = arm.median_of(kBytes);
  if (!ceiling || !bytes || *ceiling <= 0 || *bytes <= 0) return std::nullopt;
  return *bytes / *ceiling;
}

std::string skipped_text(const SavingRuns& arm) {
  const double skips = arm.sum(kSkips);
  if (skips <= 0) return "";
  return fmt::format(" ({:.0f} of {:.0f} saves were skipped, and blocked nothing)", skips,
                     std::max(skips, arm.sum(kSaves)));
}

std::optional<BlockTimeRatio> block_time_against_direct(const SavingGroup& group, const SavingRuns& arm) {
  const SavingRuns* const direct = group.find("direct");
  if (direct == nullptr || direct == &arm) return std::nullopt;
  std::vector<double> direct_s, arm_s, ratios, ceiling_ratios;
  const bool by_fast_tier = arm.arm == "burst-buffer";
  const bool ceilings_valid = by_fast_tier && ceilings_hold(direct->runs) && ceilings_hold(arm.runs);
  for (const Record* const record : arm.runs) {
    const auto direct_run =
        std::find_if(direct->runs.begin(), direct->runs.end(),
                     [&](const Record* candidate) { return pair_of(*candidate) == pair_of(*record); });
    const auto block_s = metric_value(*record, kBlockTime);
    if (direct_run == direct->runs.end() || !block_s || *block_s <= 0) continue;
    direct_s.push_back(*metric_value(**direct_run, kBlockTime));
    arm_s.push_back(*block_s);
    ratios.push_back(direct_s.back() / arm_s.back());
    const auto slow_ceiling = metric_value(*record, kCeilingOf.with("slow"));
    const auto fast_ceiling = metric_value(*record, kCeilingOf.with("fast"));
    if (by_fast_tier && slow_ceiling && fast_ceiling && *slow_ceiling > 0)
      ceiling_ratios.push_back(*fast_ceiling / *slow_ceiling);
  }
  const auto ratio = paired_ratio(direct_s, arm_s);
  if (!ratio || ratio->median <= 0) return std::nullopt;
  BlockTimeRatio shorter{*ratio, percentile(ratios, 0), percentile(ratios, 100), std::nullopt};
  if (ceiling_ratios.empty()) return shorter;
  shorter.ceiling_too_low = shorter.ratio.median > kCeilingTolerance * median(ceiling_ratios);
  if (ceilings_valid) shorter.allowed = median(ceiling_ratios);
  return shorter;
}

}  // namespace penstock
