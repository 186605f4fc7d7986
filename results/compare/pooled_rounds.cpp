#include "results/compare/pooled_rounds.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "results/cells/cells.hpp"
#include "results/compare/matched_cells.hpp"

namespace penstock {
namespace {

// A text that is equal for records that may be joined if their work is the same. "" for a record that stays
// as it is: checkpoint saves are compared pair by pair, and sums over a run of `train` are those of one run.
std::string runs_key(const Record& record) {
  const bool is_round = record.label.contains("sweep") && record.command != "checkpoint";
  constexpr std::string_view kPooled[] = {"generate", "read", "tiers"};
  if (!is_round && std::find(std::begin(kPooled), std::end(kPooled), record.command) == std::end(kPooled))
    return "";
  return record.command + "|" + label_text(record) + "|" + arm_of(record) + "|" +
         environment_text(record, "host") + "|" + std::to_string(node_count(record)) +
         (is_round ? "" : "|" + corpus_text(record, "checksum"));
}

void append_samples(Record& pooled, const Record& round) {
  for (const auto& [name, metric] : round.metrics) {
    const auto [at, inserted] = pooled.metrics.try_emplace(name, metric);
    if (!inserted && at->second.unit == metric.unit && at->second.per == metric.per)
      at->second.samples.insert(at->second.samples.end(), metric.samples.begin(), metric.samples.end());
  }
  add_verdict(pooled.verdict, pooled.reason, round.verdict, round.reason);
}

// Makes one record of all rounds of a cell. `rounds` is in order of time.
Record pool(const std::vector<const Record*>& rounds) {
  Record pooled = *rounds.back();
  pooled.metrics.clear();
  pooled.verdict = Verdict::ok;
  pooled.reason.clear();
  for (const Record* round : rounds) append_samples(pooled, *round);
  return pooled;
}

}  // namespace

size_t pool_rounds(std::vector<StoredRecord>& records) {
  std::map<std::string, std::vector<const Record*>> groups;
  for (const StoredRecord& stored : records)
    if (const std::string key = runs_key(stored.record); !key.empty() && is_usable(stored.record))
      groups[key].push_back(&stored.record);
  std::map<const Record*, std::vector<const Record*>> rounds_of;  // latest round -> all rounds, by time
  std::set<const Record*> merged_records;
  for (const auto& [key, members] : groups) {
    for (Cell& cell : match_cells(members, {}).cells) {
      if (cell.base.size() < 2) continue;
      std::stable_sort(cell.base.begin(), cell.base.end(),
                       [](const Record* a, const Record* b) { return a->started < b->started; });
      rounds_of[cell.base.back()] = cell.base;
      merged_records.insert(cell.base.begin(), cell.base.end() - 1);
    }
  }
  std::vector<StoredRecord> remaining;
  for (StoredRecord& stored : records) {
    if (merged_records.contains(&stored.record)) continue;
    if (const auto at = rounds_of.find(&stored.record); at != rounds_of.end()) {
      stored.record = pool(at->second);
      stored.runs = at->second.size();
    }
    remaining.push_back(std::move(stored));
  }
  records = std::move(remaining);
  return merged_records.size();
}

}  // namespace penstock
