#include "miniapps/train/view/train_cells.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "miniapps/train/train_metrics.hpp"
#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

// Lists the tiers with other roles than "data", such as "checkpoint disk": a role and a tier's name. `member`
// is "name" or "spec"; the spec also has the tier's options.
std::string other_tiers(const Record& record, std::string_view member) {
  std::string text;
  for (const auto& [role, tier] : record.tiers.items())
    if (role != "data" && tier.is_object())
      text += (text.empty() ? "" : ", ") + role + " " + member_text(tier, member);
  return text;
}

// The parameters in which the records of one group may differ: prefetch, and `also_varying` unless that is
// "".
std::vector<std::string_view> varying_parameters(std::string_view also_varying) {
  std::vector<std::string_view> all{"prefetch"};
  if (!also_varying.empty()) all.push_back(also_varying);
  return all;
}

// A text that is the same for all records of one group. It leaves out the parameters in which they may
// differ: the prefetch depth, and `also_varying` unless that is "".
std::string train_key(const Record& record, std::string_view also_varying = "") {
  return tier_name(record) + "|" + corpus_text(record, "checksum") + "|" + environment_text(record, "host") +
         "|" + label_text(record) + "|" + other_tiers(record, "spec") + "|" +
         work_key(record, varying_parameters(also_varying));
}

std::string train_title(const Record& record) {
  const std::string app = parameter_text(record, "app");
  return (app.empty() ? "training" : app) + " on " + tier_name(record) +
         (emulation(record).empty() ? "" : " (emulated)");
}

// Returns one row of texts for each record: all values in which records of different groups may differ.
std::vector<std::vector<std::string>> train_texts(std::span<const Record* const> records,
                                                  std::string_view also_varying = "") {
  // The title of a group already has the app, so leave it out. The cache is left out because rows have a
  // column for its real state, and the step time because `accelerator` gives it.
  std::vector<std::string_view> left_out = varying_parameters(also_varying);
  left_out.insert(left_out.end(), {"app", "cache", "step_s"});
  std::vector<std::vector<std::string>> rows = work_rows(records, left_out);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Record& record = *records[i];
    const std::string state = cache_state(record);
    std::string cache = state == requested_cache_state(record)
                            ? "cache " + state
                            : state + " (" + requested_cache_state(record) + " asked for)";
    if (state.empty()) cache.clear();
    rows[i].insert(rows[i].begin(), {corpus_title(record), std::move(cache)});
    rows[i].insert(rows[i].end(),
                   {other_tiers(record, "name"), environment_text(record, "host"), label_text(record)});
  }
  return rows;
}

}  // namespace

std::optional<uint64_t> train_prefetch(const Record& record) {
  return record.command == "train" ? whole_number(record, "prefetch", 0) : std::nullopt;
}

bool burns_processors(const Record& record) {
  return parameter_text(record, "accelerator").find("burn=") != std::string::npos;
}

bool several_accelerators(const Record& record) {
  return parameter_number(record, "ranks").value_or(1) > 1 ||
         parameter_number(record, "accelerators").value_or(1) > 1;
}

// Returns the groups in the order of the page: groups that differ only in threads are next to each other,
// those with fewer threads first.
std::vector<TrainGroup> train_groups(std::span<const Record> records) {
  const auto threads = [](const RecordList& group) {
    return parameter_number(*group.front(), "threads").value_or(0);
  };
  std::vector<RecordList> found;
  for (const RecordList& family : grouped(records, [](const Record& record) {
         return train_prefetch(record) ? train_key(record, "threads") : "";
       })) {
    std::vector<RecordList> members = grouped(family, [](const Record& record) { return train_key(record); });
    std::stable_sort(members.begin(), members.end(), [&](const RecordList& one, const RecordList& other) {
      return threads(one) < threads(other);
    });
    found.insert(found.end(), members.begin(), members.end());
  }
  const std::vector<std::string> titles = titles_of(train_texts(first_records(found)));
  std::vector<TrainGroup> groups;
  for (size_t i = 0; i < found.size(); ++i) {
    TrainGroup& group = groups.emplace_back();
    group.title = train_title(*found[i].front()) + (titles[i].empty() ? "" : ", ") + titles[i];
    for (const Record* const record : found[i]) keep_newer(group.at[*train_prefetch(*record)], *record);
  }
  return groups;
}

std::vector<TrainGrid> train_grids(std::span<const Record> records) {
  const std::vector<RecordList> found = grouped(records, [](const Record& record) {
    return train_prefetch(record) && whole_number(record, "threads", 1) ? train_key(record, "threads") : "";
  });
  const std::vector<std::string> titles = titles_of(train_texts(first_records(found), "threads"));
  std::vector<TrainGrid> grids;
  for (size_t i = 0; i < found.size(); ++i) {
    TrainGrid& grid = grids.emplace_back();
    grid.title = train_title(*found[i].front()) + (titles[i].empty() ? "" : ", ") + titles[i];
    for (const Record* const record : found[i]) {
      const uint64_t prefetch = *train_prefetch(*record);
      grid.prefetches.insert(prefetch);
      keep_newer(grid.at[*whole_number(*record, "threads", 1)][prefetch], *record);
    }
  }
  std::erase_if(grids, [](const TrainGrid& grid) { return grid.at.size() < 2; });
  return grids;
}

bool grid_shows_utilization(const TrainGrid& grid) {
  for (const auto& [threads, row] : grid.at)
    for (const auto& [prefetch, record] : row)
      if (metric_value(*record, train_metrics::kUtilization)) return true;
  return false;
}

std::optional<double> input_wait_per_step(const Record& record) {
  const Metric* wait = find_metric(record, train_metrics::kInputWait);
  if (wait == nullptr) return std::nullopt;
  if (wait->per == "step") {
    double sum = 0;
    size_t finite_samples = 0;
    for (const double sample : wait->samples) {
      if (!std::isfinite(sample)) continue;
      sum += sample;
      ++finite_samples;
    }
    return sum / double(finite_samples);
  }
  const auto steps = metric_value(record, train_metrics::kSteps);
  if (!steps || *steps <= 0) return std::nullopt;
  return wait->value() / *steps;
}

std::optional<double> hidden_by_prefetch(const TrainGroup& group, uint64_t prefetch) {
  const auto unprefetched = group.at.find(0);
  const auto prefetched = group.at.find(prefetch);
  if (prefetch == 0 || unprefetched == group.at.end() || prefetched == group.at.end()) return std::nullopt;
  const auto wait_without = input_wait_per_step(*unprefetched->second);
  const auto wait_with = input_wait_per_step(*prefetched->second);
  if (!wait_without || !wait_with || *wait_without <= 0) return std::nullopt;
  return 1 - *wait_with / *wait_without;
}

}  // namespace penstock
