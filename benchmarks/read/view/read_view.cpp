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

// The best row of a tier among the groups of one cache state.
struct BestRow {
  std::string tier;
  double rate = 0;
  const Record* record = nullptr;
  uint64_t threads = 0;
  const ReadGroup* group = nullptr;
};

// Finds the best row of each tier over all groups with a closed loop. The best cold row is preferred if there
// is one.
std::vector<BestRow> best_rows(const std::vector<ReadGroup>& groups) {
  std::vector<BestRow> best;
  for (const bool cold : {true, false})
    for (const ReadGroup& group : groups) {
      if (group.open_loop || (group.cache == "cold") != cold) continue;
      for (const ReadCurve& curve : group.curves)
        for (const auto& [threads, record] : curve.by_count) {
          const auto rate = metric_value(*record, read_metrics::kPayloadRate);
          if (!rate || *rate <= 0) continue;
          const auto same_tier = [&](const BestRow& row) { return row.tier == curve.tier; };
          auto at = std::find_if(best.begin(), best.end(), same_tier);
          if (at == best.end()) at = best.insert(best.end(), BestRow{curve.tier});
          if (at->group != nullptr && (at->rate >= *rate || (at->group->cache == "cold") != cold)) continue;
          *at = {curve.tier, *rate, record, threads, &group};
        }
    }
  return best;
}

// Makes a tile (a box with one number) for each tier: its best rate.
std::vector<std::string> read_tiles(std::span<const Record> records, report::PageState& state) {
  const std::vector<ReadGroup> groups = read_groups(records);
  std::vector<std::string> tiles;
  for (const BestRow& row : best_rows(groups)) {
    const std::string cache = cache_state(*row.record);
    const std::string& title = row.group->title;
    const std::string title_rest =
        cache == row.group->cache && title.size() > cache.size() ? title.substr(cache.size()) : "";
    tiles.push_back(
        report::tile_html(format_rate(row.rate, state.output), rate_unit(state.output),
                          fmt::format("{} at its best{}{}: {}{}", row.tier, cache.empty() ? "" : " ", cache,
                                      verdicts::threads_text(row.threads), title_rest),
                          report::colour_of(state.tiers, row.tier)));
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
