// The part of the report page about `read` records, sessions of the profiler and records of other programs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_charts.hpp"
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
  verdicts::describe_rank_scaling(rank_groups(records), "ranks", out);
  verdicts::describe_rank_scaling(depth_groups(records), "depth", out);
  verdicts::describe_peers(peer_curves(records), groups, out);
}

// Makes a tile (a box with one number) for each tier: its best rate.
std::vector<std::string> read_tiles(std::span<const Record> records, report::PageState& state) {
  const std::vector<ReadGroup> groups = read_groups(records);
  std::vector<std::string> tiles;
  for (const Record* const best : verdicts::best_records(groups)) {
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
        fmt::format("{}, highest rate{}{}: {}{}", tier, cache.empty() ? "" : " ", cache,
                    verdicts::threads_text(threads), title_rest),
        report::colour_of(state.tiers, tier)));
  }
  return tiles;
}

// What the table of all tiers shows of reading: the highest cold and other rates, and of the highest one the
// samples per second, latencies and processor time.
std::vector<TierFigure> read_figures(std::span<const Record> records, const Output& output) {
  using namespace read_metrics;
  std::vector<TierFigure> figures;
  const std::vector<ReadGroup> groups = read_groups(records);
  const std::string unit(rate_unit(output));
  std::map<std::pair<std::string, std::string>, const Record*> fastest;  // tier and cache state
  for (const ReadGroup& group : groups)
    for (const ReadCurve& curve : group.curves)
      for (const auto& [threads, record] : curve.by_count) {
        if (group.open_loop || !metric_value(*record, kPayloadRate)) continue;
        const Record*& best = fastest[{curve.tier, cache_state(*record)}];
        if (best == nullptr || *metric_value(*record, kPayloadRate) > *metric_value(*best, kPayloadRate))
          best = record;
      }
  for (const auto& [key, record] : fastest)
    figures.push_back({key.first, fmt::format("reads, {}, {}", key.second, unit),
                       *metric_value(*record, kPayloadRate) / report::chart_unit(output), record});
  for (const Record* const best : verdicts::best_records(groups)) {
    const auto add = [&](const std::string& column, std::optional<double> value, double scale) {
      if (value) figures.push_back({tier_name(*best), column, *value * scale, best});
    };
    add("reads, " + report::sample_rate_unit(*best), metric_value(*best, kSampleRate), 1);
    add("latency p50, ms", metric_value(*best, kLatencyP50), 1e-6);
    add("latency p99, ms", metric_value(*best, kLatencyP99), 1e-6);
    add("CPU s/GB", cpu_seconds_per_gb(*best), 1);
  }
  return figures;
}

std::string reading_sections(std::span<const Record> records, report::PageState& state) {
  std::string html = report::ranks_section(records, state);
  html += report::depth_section(records, state);
  html += report::read_section(records, state);
  return html + report::peers_section(records, state);
}

}  // namespace

extern const RecordView view_read;
const RecordView view_read{.name = "read",
                           .order = 1,
                           .topic = "reading",
                           .has_row = shows_reading,
                           .add_superseded = add_superseded_reads,
                           .names = read_names,
                           .labels = read_label,
                           .describe = describe_reading,
                           .bottom_line = verdicts::read_bottom_line,
                           .tiles = read_tiles,
                           .figures = read_figures,
                           .section = reading_sections};

}  // namespace penstock
