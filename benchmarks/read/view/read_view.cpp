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

// Makes a tile (a box with one number) for each tier: its best rate. The best cold rate is preferred if there
// is one.
std::vector<std::string> read_tiles(std::span<const Record> records, report::PageState& state) {
  std::vector<ReadGroup> groups = read_groups(records);
  std::vector<std::string> tiles;
  std::set<std::string> shown;
  std::stable_partition(groups.begin(), groups.end(),
                        [](const ReadGroup& group) { return group.cache == "cold"; });
  for (const ReadGroup& group : groups)
    for (const ReadCurve& curve : group.open_loop ? std::vector<ReadCurve>() : group.curves) {
      double best_rate = 0;
      const Record* best_record = nullptr;
      uint64_t best_threads = 0;
      for (const auto& [threads, record] : curve.by_count)
        if (const auto rate = metric_value(*record, read_metrics::kPayloadRate); rate && *rate > best_rate) {
          best_rate = *rate;
          best_record = record;
          best_threads = threads;
        }
      if (best_threads == 0 || !shown.insert(curve.tier).second) continue;
      const std::string cache = cache_state(*best_record);
      const std::string title_rest =
          cache == group.cache && group.title.size() > cache.size() ? group.title.substr(cache.size()) : "";
      tiles.push_back(report::tile_html(
          format_rate(best_rate, state.output), rate_unit(state.output),
          fmt::format("{} at its best{}{}: {} thread{}{}", curve.tier, cache.empty() ? "" : " ", cache,
                      best_threads, best_threads == 1 ? "" : "s", title_rest),
          report::colour_of(state.tiers, curve.tier)));
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
