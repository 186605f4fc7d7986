// The part of the report page about `read` records, sessions of the profiler and records of other programs.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"

namespace penstock {
namespace {

bool shows_reading(const Record& record) {
  return record.command == "read" || is_peer(record);
}

void add_superseded_reads(std::span<const Record> records, std::set<const Record*>& out) {
  for (const Record& record : records)
    if (read_threads(record)) out.insert(&record);
  for (const ReadGroup& group : read_groups(records))
    for (const ReadCurve& curve : group.curves)
      for (const auto& [threads, record] : curve.by_count) out.erase(record);
}

// For each record a name such as "disk cold at 4 threads".
std::vector<std::string> read_names(ShownRecords records) {
  std::vector<std::string> names;
  for (const Record* const record : records) {
    std::string cache = cache_state(*record);
    if (cache != requested_cache_state(*record)) cache = "(" + cache + ")";
    const auto threads = verdicts::threads_of(*record);
    names.push_back(threads ? fmt::format("{}{} at {}", tier_name(*record), cache.empty() ? "" : " " + cache,
                                          verdicts::threads_text(*threads))
                            : record->command);
  }
  return names;
}

std::vector<std::string> read_label(const Record& record) {
  return {threads_label(record), requested_cache_state(record)};
}

void describe_reading(std::span<const Record> records, const Output& output, std::vector<Sentence>& out) {
  const std::vector<ReadGroup> groups = read_groups(records);
  verdicts::describe_read(groups, output, out);
  verdicts::describe_rank_scaling(rank_groups(records), out);
  verdicts::describe_peers(peer_curves(records), groups, out);
}

// The fastest record of each tier over all groups with a closed loop. Cold records are preferred.
std::vector<const Record*> best_records(const std::vector<ReadGroup>& groups) {
  std::vector<const Record*> best;
  const auto rate_of = [](const Record& record) {
    return metric_value(record, read_metrics::kPayloadRate).value_or(0);
  };
  std::set<std::string> cold_tiers;
  for (const bool cold : {true, false})
    for (const ReadGroup& group : groups) {
      if (group.open_loop || (group.cache == "cold") != cold) continue;
      for (const ReadCurve& curve : group.curves)
        for (const auto& [threads, record] : curve.by_count) {
          if (rate_of(*record) <= 0 || (!cold && cold_tiers.contains(curve.tier))) continue;
          if (cold) cold_tiers.insert(curve.tier);
          const auto at = std::find_if(best.begin(), best.end(),
                                       [&](const Record* other) { return tier_name(*other) == curve.tier; });
          if (at == best.end())
            best.push_back(record);
          else if (rate_of(*record) > rate_of(**at))
            *at = record;
        }
    }
  return best;
}

// Makes a tile (a box with one number) for each tier: its best rate.
std::vector<std::string> read_tiles(std::span<const Record> records, report::PageState& state) {
  const std::vector<ReadGroup> groups = read_groups(records);
  std::vector<std::string> tiles;
  for (const Record* const best : best_records(groups)) {
    const std::string tier = tier_name(*best);
    const uint64_t threads = *read_threads(*best);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const ReadGroup& one) {
      const ReadCurve* const curve = one.find(tier);
      return curve != nullptr && curve->by_count.contains(threads) && curve->by_count.at(threads) == best;
    });
    const std::string cache = cache_state(*best);
    const std::string title_rest =
        cache == group->cache && group->title.size() > cache.size() ? group->title.substr(cache.size()) : "";
    tiles.push_back(report::tile_html(
        format_rate(*metric_value(*best, read_metrics::kPayloadRate), state.output), rate_unit(state.output),
        fmt::format("{} at its best{}{}: {}{}", tier, cache.empty() ? "" : " ", cache,
                    verdicts::threads_text(threads), title_rest),
        report::colour_of(state.tiers, tier)));
  }
  return tiles;
}

std::string reading_sections(std::span<const Record> records, report::PageState& state) {
  std::string html = report::read_section(records, state);
  html += report::ranks_section(records, state);
  return html + report::peers_section(records, state);
}

}  // namespace

extern const RecordView view_read;
const RecordView view_read{.name = "read",
                           .order = 1,
                           .has_row = shows_reading,
                           .add_superseded = add_superseded_reads,
                           .names = read_names,
                           .labels = read_label,
                           .describe = describe_reading,
                           .tiles = read_tiles,
                           .section = reading_sections};

}  // namespace penstock
