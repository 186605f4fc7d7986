#include "results/cells/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "io_backends/tiers/named_tiers.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string member_text(const Json& object, std::string_view name) {
  const auto at = object.find(std::string(name));
  return at == object.end() || at->is_null() ? "" : as_text(*at);
}

// What a diagram of one group varies, and what its title names anyway.
constexpr std::array<std::string_view, 2> kReadAxes{"threads", "cache"};

std::vector<std::string_view> with(std::string_view more, std::span<const std::string_view> names) {
  std::vector<std::string_view> all(names.begin(), names.end());
  if (!more.empty()) all.push_back(more);
  return all;
}

// "imagenet of 300 samples".
std::string corpus_text(const Record& record) {
  const std::string samples = member_text(record.corpus, "samples");
  return corpus_name(record) +
         (samples.empty() ? "" : " of " + samples + (samples == "1" ? " sample" : " samples"));
}

const Record*& later(const Record*& there, const Record& fresh) {
  if (there == nullptr || there->started <= fresh.started) there = &fresh;
  return there;
}

std::optional<std::uint64_t> whole_number(const Record& record, std::string_view name, double least) {
  const auto number = parameter_number(record, name);
  if (!is_usable(record) || !number || *number < least || *number > 1e9) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// Of the records that may be in a group.
std::optional<std::uint64_t> read_threads(const Record& record) {
  return record.command == "read" || record.command == "profile" ? whole_number(record, "threads", 1)
                                                                 : std::nullopt;
}
std::optional<std::uint64_t> train_prefetch(const Record& record) {
  return record.command == "train" ? whole_number(record, "prefetch", 0) : std::nullopt;
}

// The tiers besides the data's: "checkpoint root", with their options in a key.
std::string other_tiers(const Record& record, std::string_view member) {
  std::string text;
  for (const auto& [role, tier] : record.tiers.items())
    if (role != "data" && tier.is_object())
      text += (text.empty() ? "" : ", ") + role + " " + member_text(tier, member);
  return text;
}

constexpr std::array<std::string_view, 1> kTrainAxes{"prefetch"};

// `but`: a parameter that may differ, besides the prefetch depth.
std::string train_key(const Record& record, std::string_view but = "") {
  return tier_name(record) + "|" + member_text(record.corpus, "checksum") + "|" +
         environment_text(record, "host") + "|" + label_text(record) + "|" + other_tiers(record, "spec") +
         "|" + work_key(record, with(but, kTrainAxes));
}

std::string train_title(const Record& record) {
  const std::string app = parameter_text(record, "app");
  return (app.empty() ? "training" : app) + " on " + tier_name(record) +
         (emulation(record).empty() ? "" : " (emulated)");
}

// The texts that may tell train records apart; a row for each.
std::vector<std::vector<std::string>> train_texts(std::span<const Record* const> records,
                                                  std::string_view but = "") {
  // The title has the app; the state that the cache was in stands for the one that was asked for.
  std::vector<std::string_view> apart = with(but, kTrainAxes);
  apart.insert(apart.end(), {"app", "cache"});
  std::vector<std::vector<std::string>> rows = work_rows(records, apart);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Record& record = *records[i];
    const std::string state = cache_state(record);
    std::string cache =
        state == cache_name(record) ? "cache " + state : state + " (" + cache_name(record) + " asked for)";
    if (state.empty()) cache.clear();
    rows[i].insert(rows[i].begin(), {corpus_text(record), std::move(cache)});
    rows[i].insert(rows[i].end(),
                   {other_tiers(record, "name"), environment_text(record, "host"), label_text(record)});
  }
  return rows;
}

}  // namespace

std::string read_work(const Record& record, std::string_view but) {
  return corpus_name(record) + "|" + member_text(record.corpus, "checksum") + "|" +
         member_text(record.corpus, "format") + "|" + environment_text(record, "host") + "|" +
         work_key(record, with(but, kReadAxes));
}

std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view but) {
  std::vector<std::vector<std::string>> rows = work_rows(records, with(but, kReadAxes));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].insert(rows[i].begin(), {corpus_text(*records[i]), member_text(records[i]->corpus, "format")});
    rows[i].insert(rows[i].end(), {environment_text(*records[i], "host"), label_text(*records[i])});
  }
  return rows;
}

std::string label_text(const Record& record) {
  std::string text;
  for (const auto& [key, value] : record.label) {
    if (!text.empty()) text += ' ';
    text.append(key).append("=").append(value);
  }
  return text;
}

std::vector<std::string> titles_of(const std::vector<std::vector<std::string>>& words) {
  std::vector<std::string> titles(words.size());
  for (std::size_t word = 0; !words.empty() && word < words[0].size(); ++word) {
    const bool differs =
        std::any_of(words.begin(), words.end(), [&](const auto& row) { return row[word] != words[0][word]; });
    if (!differs) continue;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (!words[i][word].empty()) titles[i] += (titles[i].empty() ? "" : ", ") + words[i][word];
  }
  return titles;
}

std::string parameter_text(const Record& record, std::string_view name) {
  return member_text(record.parameters, name);
}

std::optional<double> parameter_number(const Record& record, std::string_view name) {
  const auto at = record.parameters.find(std::string(name));
  if (at == record.parameters.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

bool burns_processors(const Record& record) {
  return parameter_text(record, "accelerator").find("burn=") != std::string::npos;
}

bool several_accelerators(const Record& record) {
  return parameter_number(record, "ranks").value_or(1) > 1 ||
         parameter_number(record, "accelerators").value_or(1) > 1;
}

const Metric* find_metric(const Record& record, std::string_view name) {
  const auto at = record.metrics.find(std::string(name));
  if (at == record.metrics.end()) return nullptr;
  const bool known = std::any_of(at->second.samples.begin(), at->second.samples.end(),
                                 [](double sample) { return std::isfinite(sample); });
  return known ? &at->second : nullptr;
}

std::optional<double> metric_value(const Record& record, std::string_view name) {
  const Metric* metric = find_metric(record, name);
  if (metric == nullptr) return std::nullopt;
  return metric->value();
}

std::string cache_text(const Record& record, std::string_view layer) {
  return member_text(record.cache, layer);
}

std::string environment_text(const Record& record, std::string_view name) {
  return member_text(record.environment, name);
}

std::string tier_name(const Record& record) {
  if (const auto data = record.tiers.find("data"); data != record.tiers.end() && data->is_object())
    if (std::string name = member_text(*data, "name"); !name.empty()) return name;
  const auto at = record.parameters.find("tier");
  return at != record.parameters.end() && at->is_string() ? at->get<std::string>() : "data";
}

std::string corpus_name(const Record& record) {
  const std::string recipe = member_text(record.corpus, "recipe");
  return recipe.empty() ? "data" : recipe;
}

std::string cache_name(const Record& record) {
  std::string cache = parameter_text(record, "cache");
  return cache.empty() ? cache_text(record, "client_data") : cache;
}

std::string cache_state(const Record& record) {
  std::string asked = cache_name(record);
  const std::string found = cache_text(record, "client_data");
  if (found == "memory") return "in memory";
  if (found == "bypassed") return "cache bypassed";
  if (found == "none") return "no client cache";
  if (found == "unverified" && (asked == "cold" || asked == "warm")) return asked + " unverified";
  return asked;
}

bool is_usable(const Record& record) {
  return verdict_exit_code(record.verdict) == 0;
}

std::string emulation(const Record& record) {
  const auto data = record.tiers.find("data");
  return data == record.tiers.end() || !data->is_object() ? "" : emulation(*data);
}

std::string emulation(const Json& facts) {
  const auto tier = parse_recorded_tier(member_text(facts, "spec"));
  if (!tier) return "";
  std::string text;
  for (const OptionWord& option : tier->options)
    for (const OptionSpec& known : tier_options())
      if (known.name == option.key) text += (text.empty() ? "" : ", ") + option.key + "=" + option.value;
  return text;
}

namespace {

// What the data tier is, besides its name and path; "" where the record does not say.
std::string tier_kind(const Record& record) {
  const auto data = record.tiers.find("data");
  if (data == record.tiers.end() || !data->is_object()) return "";
  const auto tier = parse_recorded_tier(member_text(*data, "spec"));
  if (!tier) return "";
  std::string kind = tier->backend;
  for (const OptionWord& option : tier->options)
    kind.append(", ").append(option.key).append("=").append(option.value);
  return kind;
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

const ReadCurve* ReadGroup::find(std::string_view tier) const {
  for (const ReadCurve& curve : curves)
    if (curve.tier == tier) return &curve;
  return nullptr;
}

std::vector<ReadGroup> read_groups(std::span<const Record> records) {
  std::vector<ReadGroup> groups;
  std::vector<const Record*> firsts;          // of each group
  std::map<std::string, std::size_t> places;  // by cache state and `rest`
  for (const Record& record : records) {
    const auto threads = read_threads(record);
    if (!threads) continue;
    const std::string cache = cache_name(record);
    const std::string work = read_work(record);
    const std::string label = label_text(record);
    const std::string rest = fmt::format("{}|{}", work, label);
    const auto [place, fresh] = places.emplace(fmt::format("{}|{}", cache, rest), groups.size());
    if (fresh) {
      groups.push_back(
          {"", cache, rest, work, label, find_metric(record, "offered_samples_per_s") != nullptr, {}});
      firsts.push_back(&record);
    }
    ReadGroup* const group = &groups[place->second];
    const std::string tier = tier_name(record);
    auto curve = std::find_if(group->curves.begin(), group->curves.end(),
                              [&](const ReadCurve& candidate) { return candidate.tier == tier; });
    if (curve == group->curves.end()) curve = group->curves.insert(curve, ReadCurve{tier, {}});
    later(curve->at[*threads], record);
  }
  const std::vector<std::string> titles = titles_of(read_texts(firsts));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string cache = groups[i].cache.empty() ? "reading" : groups[i].cache;
    groups[i].title = cache + (titles[i].empty() ? "" : ", " + titles[i]);
  }
  return groups;
}

// Groups that differ by their threads alone stand next to each other, fewest first.
std::vector<TrainGroup> train_groups(std::span<const Record> records) {
  struct Found {
    TrainGroup group;
    std::string key;
    const Record* first = nullptr;
    std::size_t family = 0;  // of those that differ by threads
    double threads = 0;
  };
  std::vector<Found> found;
  std::map<std::string, std::size_t> families;
  for (const Record& record : records) {
    const auto prefetch = train_prefetch(record);
    if (!prefetch) continue;
    const std::string key = train_key(record);
    auto at = std::find_if(found.begin(), found.end(), [&](const Found& one) { return one.key == key; });
    if (at == found.end()) {
      const std::size_t family =
          families.emplace(train_key(record, "threads"), families.size()).first->second;
      at = found.insert(
          at,
          {{train_title(record), {}}, key, &record, family, parameter_number(record, "threads").value_or(0)});
    }
    later(at->group.at[*prefetch], record);
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& one, const Found& other) {
    return std::tie(one.family, one.threads) < std::tie(other.family, other.threads);
  });
  std::vector<const Record*> firsts;
  for (const Found& one : found) firsts.push_back(one.first);
  const std::vector<std::string> titles = titles_of(train_texts(firsts));
  std::vector<TrainGroup> groups;
  for (std::size_t i = 0; i < found.size(); ++i) {
    groups.push_back(std::move(found[i].group));
    if (!titles[i].empty()) groups.back().title += ", " + titles[i];
  }
  return groups;
}

std::vector<TrainGrid> train_grids(std::span<const Record> records) {
  std::vector<TrainGrid> grids;
  std::vector<std::string> keys;
  std::vector<const Record*> firsts;
  for (const Record& record : records) {
    const auto prefetch = train_prefetch(record);
    const auto threads = parameter_number(record, "threads");
    if (!prefetch || !threads || *threads < 1) continue;
    const std::string key = train_key(record, "threads");
    auto at = std::find(keys.begin(), keys.end(), key);
    if (at == keys.end()) {
      grids.push_back({train_title(record), {}, {}});
      firsts.push_back(&record);
      keys.push_back(key);
      at = keys.end() - 1;
    }
    TrainGrid& grid = grids[static_cast<std::size_t>(at - keys.begin())];
    grid.prefetches.insert(*prefetch);
    later(grid.at[static_cast<std::uint64_t>(*threads)][*prefetch], record);
  }
  const std::vector<std::string> titles = titles_of(train_texts(firsts, "threads"));
  for (std::size_t i = 0; i < grids.size(); ++i)
    if (!titles[i].empty()) grids[i].title += ", " + titles[i];
  std::erase_if(grids, [](const TrainGrid& grid) { return grid.at.size() < 2; });
  return grids;
}

bool grid_shows_utilization(const TrainGrid& grid) {
  for (const auto& [threads, row] : grid.at)
    for (const auto& [prefetch, record] : row)
      if (metric_value(*record, "accelerator_utilization")) return true;
  return false;
}

std::set<const Record*> superseded(std::span<const Record> records) {
  std::set<const Record*> older;
  for (const Record& record : records)
    if (read_threads(record) || train_prefetch(record) || is_saving(record)) older.insert(&record);
  for (const ReadGroup& group : read_groups(records))
    for (const ReadCurve& curve : group.curves)
      for (const auto& [threads, record] : curve.at) older.erase(record);
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at) older.erase(record);
  for (const SavingGroup& group : saving_groups(records))
    for (const SavingRuns& arm : group.arms)
      for (const Record* const record : arm.runs) older.erase(record);
  return older;
}

std::vector<StageTimes> stage_times(const Record& record) {
  constexpr std::string_view kBusy = "stage_busy_s.";
  constexpr std::array<std::string_view, 11> kOrder{"list",   "open",        "read",      "decode",
                                                    "resize", "transpose",   "normalise", "transform",
                                                    "batch",  "accelerator", "checkpoint"};
  const auto rank = [&](const std::string& stage) { return std::find(kOrder.begin(), kOrder.end(), stage); };
  std::vector<StageTimes> stages;
  for (const auto& [name, metric] : record.metrics) {
    if (!name.starts_with(kBusy)) continue;
    const std::string stage = name.substr(kBusy.size());
    stages.push_back({stage, metric_value(record, name).value_or(0),
                      metric_value(record, "stage_starved_s." + stage).value_or(0),
                      metric_value(record, "stage_blocked_s." + stage).value_or(0)});
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [&](const StageTimes& a, const StageTimes& b) { return rank(a.stage) < rank(b.stage); });
  return stages;
}

std::optional<double> input_wait_per_step(const Record& record) {
  const Metric* wait = find_metric(record, "input_wait_s");
  if (wait == nullptr) return std::nullopt;
  if (wait->per == "step") {
    double sum = 0;
    std::size_t known = 0;
    for (const double sample : wait->samples) {
      if (!std::isfinite(sample)) continue;
      sum += sample;
      ++known;
    }
    return sum / static_cast<double>(known);
  }
  const auto steps = metric_value(record, "steps");
  if (!steps || *steps <= 0) return std::nullopt;
  return wait->value() / *steps;
}

}  // namespace penstock
