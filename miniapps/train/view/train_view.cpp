// Defines how the records of `train` are shown.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"

namespace penstock {
namespace {

bool shows_training(const Record& record) {
  return record.command == "train";
}

void add_superseded_trainings(std::span<const Record> records, std::set<const Record*>& out) {
  for (const Record& record : records)
    if (train_prefetch(record)) out.insert(&record);
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at) out.erase(record);
}

// Returns a name for each record, such as "alexnet on disk with prefetch 4". If the records have different
// numbers of threads: "alexnet on disk at 4 threads with prefetch 4".
std::vector<std::string> train_names(ShownRecords records) {
  std::set<uint64_t> threads;
  for (const Record* const record : records) threads.insert(verdicts::threads_of(*record).value_or(0));
  std::vector<std::string> names;
  for (const Record* const record : records) {
    const std::string app = parameter_text(*record, "app");
    const auto count = verdicts::threads_of(*record);
    const auto prefetch = parameter_number(*record, "prefetch");
    names.push_back(
        prefetch ? fmt::format(
                       "{} on {}{} with prefetch {:.0f}", app.empty() ? "training" : app, tier_name(*record),
                       threads.size() > 1 && count ? " at " + verdicts::threads_text(*count) : "", *prefetch)
                 : record->command);
  }
  return names;
}

std::vector<std::string> train_label(const Record& record) {
  const auto prefetch = parameter_number(record, "prefetch");
  return {threads_label(record), prefetch ? fmt::format("prefetch {:.0f}", *prefetch) : "",
          requested_cache_state(record)};
}

void describe_training(std::span<const Record> records, const Output&, std::vector<Sentence>& out) {
  verdicts::describe_train(train_groups(records), out);
  verdicts::describe_grids(train_grids(records), out);
}

std::vector<std::string> train_tiles(std::span<const Record> records, report::PageState&) {
  std::vector<std::string> tiles;
  const std::vector<TrainGroup> groups = train_groups(records);
  for (const TrainGroup& group : groups) {
    if (group.at.empty()) continue;
    const uint64_t prefetch = group.at.rbegin()->first;
    const bool none_client_bound = std::all_of(group.at.begin(), group.at.end(), [](const auto& cell) {
      return cell.second->verdict != Verdict::client_bound;
    });
    if (const auto hidden = hidden_by_prefetch(group, prefetch); hidden && *hidden > 0 && none_client_bound)
      tiles.push_back(
          report::tile_html(fmt::format("{:.0f}", *hidden * 100), "%",
                            fmt::format("less waiting for input with prefetching, {}", group.title), 2));
  }
  // The tile of the accelerator is the best record of all groups of one app and tier.
  const auto key_of = [](const Record& record) {
    return parameter_text(record, "app") + "|" + tier_name(record);
  };
  const auto busy_of = [](const Record& record) {
    return metric_value(record, train_metrics::kUtilization).value_or(-1);
  };
  std::vector<const Record*> best;
  for (const TrainGroup& group : groups)
    for (const auto& [prefetch, record] : group.at) {
      if (busy_of(*record) < 0) continue;
      const auto at = std::find_if(best.begin(), best.end(), [&, record = record](const Record* other) {
        return key_of(*other) == key_of(*record);
      });
      if (at == best.end())
        best.push_back(record);
      else if (busy_of(**at) < busy_of(*record))
        *at = record;
    }
  for (const TrainGroup& group : groups)
    for (const auto& [prefetch, record] : group.at)
      if (std::find(best.begin(), best.end(), record) != best.end())
        tiles.push_back(report::tile_html(
            fmt::format("{:.0f}", busy_of(*record) * 100), "%",
            fmt::format("highest accelerator utilization (AU), {}, prefetch {}", group.title, prefetch), 2));
  return tiles;
}

// The highest accelerator utilization of each mini-app on each tier.
std::vector<TierFigure> train_figures(std::span<const Record> records, const Output&) {
  std::vector<TierFigure> figures;
  const auto utilization = [](const Record& record) {
    return metric_value(record, train_metrics::kUtilization);
  };
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at) {
      if (!utilization(*record)) continue;
      TierFigure figure{tier_name(*record), "AU, " + parameter_text(*record, "app") + ", %",
                        *utilization(*record) * 100, record};
      const auto at = std::find_if(figures.begin(), figures.end(), [&](const TierFigure& other) {
        return other.tier == figure.tier && other.column == figure.column;
      });
      if (at == figures.end())
        figures.push_back(std::move(figure));
      else if (*utilization(*at->record) < *utilization(*record))
        *at = std::move(figure);
    }
  return figures;
}

constexpr MetricInfo kTrainHeadline[] = {saving_metrics::kBlockTime, shared_metrics::kWall};

}  // namespace

extern const RecordView view_train;
const RecordView view_train{.name = "train",
                            .order = 2,
                            .topic = "training",
                            .headline = kTrainHeadline,
                            .has_row = shows_training,
                            .add_superseded = add_superseded_trainings,
                            .names = train_names,
                            .labels = train_label,
                            .describe = describe_training,
                            .bottom_line = verdicts::train_bottom_line,
                            .tiles = train_tiles,
                            .figures = train_figures,
                            .section = report::train_section};

}  // namespace penstock
