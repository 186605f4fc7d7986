#include "results/cells/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#include "results/record/json_members.hpp"
#include "results/record/shared_metrics.hpp"
#include "results/record/statistics.hpp"

namespace penstock {

std::string corpus_title(const Record& record) {
  const std::string samples = corpus_text(record, "samples");
  return corpus_name(record) +
         (samples.empty() ? "" : " of " + samples + (samples == "1" ? " sample" : " samples"));
}

void keep_newer(const Record*& newest, const Record& record) {
  if (newest == nullptr || newest->started <= record.started) newest = &record;
}

std::optional<uint64_t> whole_number(const Record& record, std::string_view name, double least) {
  const auto number = parameter_number(record, name);
  if (!is_usable(record) || !number || *number < least || *number > 1e9) return std::nullopt;
  return uint64_t(*number);
}

std::string label_text(const Record& record) {
  std::string text;
  for (const auto& [key, value] : record.label) {
    if (!text.empty()) text += ' ';
    text.append(key).append("=").append(value);
  }
  return text;
}

std::vector<std::string> titles_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> titles(rows.size());
  for (size_t column = 0; !rows.empty() && column < rows[0].size(); ++column) {
    const bool differs = std::any_of(rows.begin(), rows.end(),
                                     [&](const auto& row) { return row[column] != rows[0][column]; });
    if (!differs) continue;
    for (size_t i = 0; i < rows.size(); ++i)
      if (!rows[i][column].empty()) titles[i] += (titles[i].empty() ? "" : ", ") + rows[i][column];
  }
  return titles;
}

std::string parameter_text(const Record& record, std::string_view name) {
  return member_any_text(record.parameters, name);
}

std::optional<double> parameter_number(const Record& record, std::string_view name) {
  return member_number(record.parameters, name);
}

std::string threads_label(const Record& record) {
  const auto threads = parameter_number(record, "threads");
  return threads ? count_of(uint64_t(std::max(0.0, *threads)), "thread") : "";
}

const Metric* find_metric(const Record& record, std::string_view name) {
  const auto at = record.metrics.find(std::string(name));
  if (at == record.metrics.end()) return nullptr;
  const bool has_value = std::any_of(at->second.samples.begin(), at->second.samples.end(),
                                     [](double sample) { return std::isfinite(sample); });
  return has_value ? &at->second : nullptr;
}

const Metric* throughput(const Record& record) {
  for (const std::string_view rate : shared_metrics::kThroughputMetrics)
    if (const Metric* const found = find_metric(record, rate)) return found;
  return nullptr;
}

std::optional<ValueRange> ratio_of_any(const Metric* numerator, const Metric* denominator) {
  if (numerator == nullptr || denominator == nullptr || denominator->value() <= 0) return std::nullopt;
  const double medians = numerator->value() / denominator->value();
  ValueRange range{medians, medians, medians};
  for (const double below : denominator->samples)
    for (const double above : numerator->samples) {
      if (below <= 0) continue;
      range.least = std::min(range.least, above / below);
      range.most = std::max(range.most, above / below);
    }
  return range;
}

std::optional<ValueRange> ratio_of_pairs(const Metric* numerator, const Metric* denominator) {
  std::optional<ValueRange> range = ratio_of_any(numerator, denominator);
  if (!range || numerator->samples.size() != denominator->samples.size()) return range;
  std::vector<double> ratios;
  for (size_t i = 0; i < numerator->samples.size(); ++i)
    if (const double below = denominator->samples[i]; below > 0)
      ratios.push_back(numerator->samples[i] / below);
  if (ratios.empty()) return range;
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return ValueRange{*least, median(ratios), *most};
}

RepeatRange repeat_range(const Metric& metric) {
  if (const auto interval = median_interval(metric.samples)) return {*interval, true};
  return {{percentile(metric.samples, 0), percentile(metric.samples, 100)}, false};
}

std::string_view range_text(bool is_interval) {
  return is_interval ? "95% of the median" : "lowest to highest";
}

std::optional<double> metric_value(const Record& record, std::string_view name) {
  const Metric* metric = find_metric(record, name);
  if (metric == nullptr) return std::nullopt;
  return metric->value();
}

std::string cache_text(const Record& record, std::string_view layer) {
  return member_any_text(record.cache, layer);
}

std::string environment_text(const Record& record, std::string_view name) {
  return member_any_text(record.environment, name);
}

size_t node_count(const Record& record) {
  const Json* const ranks = member(record.environment, "ranks");
  if (ranks == nullptr || !ranks->is_array()) return 1;
  std::set<std::string> hosts;
  for (const Json& rank : *ranks) hosts.insert(member_text(rank, "host"));
  hosts.erase("");
  return std::max<size_t>(1, hosts.size());
}

std::string corpus_text(const Record& record, std::string_view name) {
  return member_any_text(record.corpus, name);
}

std::string tier_name(const Record& record) {
  std::string name = member_text(member_object(record.tiers, "data"), "name");
  if (name.empty()) name = member_text(record.parameters, "tier");
  return name.empty() ? "data" : name;
}

std::string role_name(const Record& record, std::string_view role) {
  const Json* const tier = member(record.tiers, role);
  if (tier == nullptr || !tier->is_object()) return "";
  const std::string name = member_text(*tier, "name");
  return name.empty() ? std::string(role) : name;
}

std::string corpus_name(const Record& record) {
  const std::string recipe = corpus_text(record, "recipe");
  if (recipe.empty()) return "data";
  if (recipe != "scan") return recipe;
  std::string root = member_text(member_object(record.tiers, "data"), "root");
  while (root.ends_with('/')) root.pop_back();
  const std::string folder = root.substr(root.rfind('/') + 1);  // npos + 1 is 0: the whole text
  return folder.empty() || folder == "." ? "data" : folder;
}

std::string requested_cache_state(const Record& record) {
  std::string cache = parameter_text(record, "cache");
  return cache.empty() ? cache_text(record, "client_data") : cache;
}

std::string cache_state(const Record& record) {
  std::string requested = requested_cache_state(record);
  const std::string found = cache_text(record, "client_data");
  if (found == "memory") return "in memory";
  if (found == "bypassed") return "cache bypassed";
  if (found == "none") return "no client cache";
  if (found == "unverified" && (requested == "cold" || requested == "warm")) return requested + " unverified";
  return requested;
}

std::vector<RecordList> grouped(std::span<const Record* const> records,
                                const std::function<std::string(const Record&)>& key) {
  std::vector<RecordList> groups;
  std::map<std::string, size_t> group_index;
  for (const Record* const record : records) {
    const std::string group_key = key(*record);
    if (group_key.empty()) continue;
    const auto [at, inserted] = group_index.emplace(group_key, groups.size());
    if (inserted) groups.emplace_back();
    groups[at->second].push_back(record);
  }
  return groups;
}

std::vector<RecordList> grouped(std::span<const Record> records,
                                const std::function<std::string(const Record&)>& key) {
  RecordList pointers;
  for (const Record& record : records) pointers.push_back(&record);
  return grouped(pointers, key);
}

RecordList first_records(const std::vector<RecordList>& groups) {
  RecordList firsts;
  for (const RecordList& group : groups) firsts.push_back(group.front());
  return firsts;
}

bool is_usable(const Record& record) {
  return verdict_exit_code(record.verdict) == 0;
}

std::string emulation(const Record& record) {
  return emulation(member_object(record.tiers, "data"));
}

std::string emulation(const Json& facts) {
  const std::string spec = member_text(facts, "spec");
  std::vector<OptionWord> options;
  if (const auto tier = parse_tier(spec, kNoNamedTiers)) {
    options = tier->options;
  } else {
    // Another version may have options that this one does not know. Those that it knows still count.
    for (size_t comma = spec.find(','); comma != std::string::npos; comma = spec.find(',', comma + 1)) {
      const std::string word = spec.substr(comma + 1, spec.find(',', comma + 1) - comma - 1);
      const size_t equals = word.find('=');
      if (equals != std::string::npos) options.push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
  }
  std::string text;
  for (const OptionWord& option : options)
    for (const OptionSpec& known : tier_options())
      if (known.name == option.key) text += (text.empty() ? "" : ", ") + option.key + "=" + option.value;
  return text;
}

namespace {

// The back end and the options of the data tier, without its path. If this version cannot parse the spec, the
// whole spec. "" if the record has none.
std::string tier_kind(const Record& record) {
  const std::string spec = member_text(member_object(record.tiers, "data"), "spec");
  const auto tier = parse_tier(spec, kNoNamedTiers);
  if (!tier) return spec;  // of another version: it may differ from any other tier
  return tier->backend + (tier->options.empty() ? "" : ", ") + options_text(tier->options, ", ");
}

}  // namespace

void distinguish_tiers(std::span<Record* const> records) {
  std::map<std::string, std::set<std::string>> kinds;
  for (const Record* const record : records)
    if (std::string kind = tier_kind(*record); !kind.empty())
      kinds[tier_name(*record)].insert(std::move(kind));
  for (Record* const record : records) {
    const std::string kind = tier_kind(*record);
    const std::string name = tier_name(*record);
    if (!kind.empty() && kinds[name].size() > 1)
      record->tiers["data"]["name"] = fmt::format("{} ({})", name, kind);
  }
}

}  // namespace penstock
