#include "results/cells/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace verdicts {

std::string enumerate(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  const bool cut = words.size() > most + 1;
  const std::size_t shown = cut ? most : words.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == shown && !cut ? " and " : ", ";
    text += words[i];
  }
  if (cut) text += fmt::format(" and {} more", words.size() - shown);
  return text;
}

std::string threads_text(std::uint64_t threads) {
  return threads == 1 ? "1 thread" : fmt::format("{} threads", threads);
}

void rest_on(const std::string& anchor, std::size_t before, std::vector<Sentence>& out) {
  for (std::size_t at = before; at < out.size(); ++at)
    if (out[at].anchor.empty()) out[at].anchor = anchor;
}

}  // namespace verdicts

std::string group_anchor(std::string_view section, std::size_t index) {
  return fmt::format("{}-{}", section, index + 1);
}

namespace {

using verdicts::enumerate;
using verdicts::threads_text;

// The records that tables and charts show.
using Shown = std::vector<const Record*>;

std::optional<std::uint64_t> threads_of(const Record& record) {
  const auto threads = parameter_number(record, "threads");
  if (!threads || *threads < 0 || *threads >= 1e9) return std::nullopt;
  return static_cast<std::uint64_t>(*threads);
}

// Trainings are told apart by their threads where they differ in them.
bool trained_by_other_threads(const Shown& records) {
  std::set<std::uint64_t> threads;
  for (const Record* record : records)
    if (record->command == "train") threads.insert(threads_of(*record).value_or(0));
  return threads.size() > 1;
}

// "disk cold at 4 threads", "alexnet on disk with prefetch 4", "alexnet on disk at 4 threads with prefetch
// 4", "generate".
std::string cell_text(const Record& record, bool other_threads) {
  std::string cache = cache_state(record);
  if (cache != cache_name(record)) cache = "(" + cache + ")";
  if (const auto prefetch = parameter_number(record, "prefetch"); record.command == "train" && prefetch) {
    std::string app = parameter_text(record, "app");
    const auto threads = threads_of(record);
    return fmt::format("{} on {}{} with prefetch {:.0f}", app.empty() ? "training" : app, tier_name(record),
                       other_threads && threads ? " at " + threads_text(*threads) : "", *prefetch);
  }
  if (const auto threads = threads_of(record); record.command == "read" && threads)
    return fmt::format("{}{} at {}", tier_name(record), cache.empty() ? "" : " " + cache,
                       threads_text(*threads));
  if (const std::string arm = parameter_text(record, "arm"); record.command == "checkpoint" && !arm.empty())
    return fmt::format("{} {}", parameter_text(record, "payload"), saved_how(record, arm));
  return record.command;
}

// The reason of the records with one verdict when it is the same for all, else that of the first.
std::string reason_text(const std::vector<const Record*>& records) {
  std::string reason = records.front()->reason;
  const bool same = std::all_of(records.begin(), records.end(),
                                [&](const Record* record) { return record->reason == reason; });
  if (reason.empty()) return "";
  reason = printable(reason);
  return same || records.size() == 1 ? " (" + reason + ")" : " (first: " + reason + ")";
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
    case Verdict::short_time:
      return "measured for too short a time";
    case Verdict::degraded:
      return "went on without some samples";
    case Verdict::client_bound:
      return "limited by this machine's own processors, not by the tier";
    case Verdict::ceiling_invalid:
      return "faster than the ceiling, which is therefore none";
    case Verdict::not_warm:
      return "still not warm, so without a number";
    case Verdict::not_cold:
      return "still not cold, so without a number";
    case Verdict::wrong_bytes:
      return "delivered wrong bytes";
    case Verdict::timed_out:
      return "timed out";
    case Verdict::failed:
      return "failed";
    case Verdict::skipped:
      return "skipped";
    case Verdict::interrupted:
      return "interrupted";
  }
  return "failed";
}

void describe_verdicts(const Shown& records, std::vector<Sentence>& out) {
  const bool other_threads = trained_by_other_threads(records);
  std::map<Verdict, std::vector<const Record*>> by_verdict;
  for (const Record* record : records)
    if (record->verdict != Verdict::ok) by_verdict[record->verdict].push_back(record);
  for (const auto& [verdict, found] : by_verdict) {
    std::vector<std::string> cells;
    std::set<std::string> known;
    for (const Record* record : found)
      if (std::string cell = cell_text(*record, other_threads); known.insert(cell).second)
        cells.push_back(std::move(cell));
    const std::string count = found.size() == 1 ? "1 cell" : fmt::format("{} cells", found.size());
    out.push_back(
        {verdict_exit_code(verdict) == 0 ? Tone::caution : Tone::failure,
         "verdict." + std::string(verdict_name(verdict)),
         fmt::format("{} {}: {}{}.", count, verdict_text(verdict), enumerate(cells), reason_text(found))});
  }
}

void describe_unverified(const Shown& records, std::vector<Sentence>& out) {
  std::map<std::pair<std::string, std::string>, std::size_t> cells;  // tier, what was asked for
  for (const Record* record : records)
    if (is_usable(*record) && cache_text(*record, "client_data") == "unverified")
      ++cells[{tier_name(*record), cache_name(*record)}];
  for (const auto& [key, count] : cells) {
    const auto& [tier, wanted] = key;
    const std::string state =
        wanted.empty() || wanted == "unverified" || wanted == "asis" ? "cached" : wanted;
    out.push_back(
        {Tone::caution, "unverified",
         fmt::format(
             "Whether {} was {} is unverified in {}: this machine does not report what is in its cache.",
             tier, state, count == 1 ? "1 cell" : fmt::format("{} cells", count))});
  }
}

void describe_noise(const Shown& records, std::vector<Sentence>& out) {
  const bool other_threads = trained_by_other_threads(records);
  double most = 0;
  std::vector<std::string> cells;
  std::set<std::string> known;
  for (const Record* record : records) {
    const Metric* metric = find_metric(*record, "payload_bytes_per_s");
    if (metric == nullptr) metric = find_metric(*record, "samples_per_s");
    if (!is_usable(*record) || metric == nullptr) continue;
    const double apart = spread(metric->samples);
    if (apart <= kNoisySpread) continue;
    most = std::max(most, apart);
    if (std::string cell = cell_text(*record, other_threads); known.insert(cell).second)
      cells.push_back(std::move(cell));
  }
  if (cells.empty()) return;
  out.push_back({Tone::caution, "noise",
                 fmt::format("Repeats lie up to {} apart ({}): smaller differences there mean nothing.",
                             format_percent(most), enumerate(cells))});
}

void describe_hosts(const Shown& records, std::vector<Sentence>& out) {
  std::set<std::string> hosts;
  for (const Record* record : records)
    if (const std::string host = environment_text(*record, "host"); !host.empty()) hosts.insert(host);
  if (hosts.size() > 1)
    out.push_back(
        {Tone::caution, "hosts",
         fmt::format("These records come from {} machines ({}); only cells of one machine are compared.",
                     hosts.size(), enumerate({hosts.begin(), hosts.end()}))});
}

void describe_emulated(const Shown& records, std::vector<Sentence>& out) {
  std::set<std::string> tiers;
  for (const Record* record : records) {
    if (const std::string how = emulation(*record); !how.empty())
      tiers.insert(fmt::format("{} is emulated ({})", tier_name(*record), how));
    for (const std::string role : {"checkpoint", "burst_buffer"})
      if (const auto tier = record->tiers.find(role); tier != record->tiers.end() && tier->is_object())
        if (const std::string how = emulation(*tier); !how.empty())
          tiers.insert(fmt::format("{} is emulated ({})", role_name(*record, role), how));
  }
  for (const std::string& tier : tiers)
    out.push_back(
        {Tone::caution, "emulated", tier + ": its numbers are what was asked for, not a device's."});
}

void describe_older(std::size_t older, std::vector<Sentence>& out) {
  if (older > 0)
    out.push_back(
        {Tone::caution, "older",
         fmt::format("{} of older runs of the same work {} not shown.",
                     older == 1 ? "1 row" : fmt::format("{} rows", older), older == 1 ? "is" : "are")});
}

}  // namespace

Scaling judge_scaling(std::span<const ScalingPoint> curve) {
  Scaling scaling;
  if (curve.size() < 2 || curve.front().rate <= 0) return scaling;
  const auto peak = std::max_element(curve.begin(), curve.end(),
                                     [](const auto& a, const auto& b) { return a.rate < b.rate; });
  auto stop = curve.begin();
  const auto later_best = [&](auto from) {
    double best = 0;
    for (auto at = from + 1; at != curve.end(); ++at) best = std::max(best, at->rate);
    return best;
  };
  while (stop + 1 != curve.end() && later_best(stop) >= stop->rate * (1 + kScalingGain)) ++stop;
  scaling.stops_at = stop->threads;
  scaling.still_gains = stop + 1 == curve.end();
  scaling.peak_at = peak->threads;
  scaling.gain = stop->rate / curve.front().rate;
  if (const double lost = 1 - curve.back().rate / peak->rate; lost >= kScalingGain) scaling.lost_after = lost;
  return scaling;
}

std::vector<Sentence> sentences(std::span<const Record> records, const Output& output) {
  std::vector<Sentence> out;
  const std::vector<ReadGroup> read = read_groups(records);
  verdicts::describe_read(read, output, out);
  verdicts::describe_rank_scaling(rank_groups(records), out);
  verdicts::describe_peers(peer_curves(records), read, out);
  const std::vector<TrainGroup> trained = train_groups(records);
  verdicts::describe_train(trained, out);
  verdicts::describe_grids(train_grids(records), out);
  verdicts::describe_saving(saving_groups(records), trained, output, out);
  const std::set<const Record*> older = superseded(records);
  Shown shown;
  for (const Record& record : records)
    if (!older.contains(&record)) shown.push_back(&record);
  const auto about = [&](const char* section, const auto& say) {
    const std::size_t before = out.size();
    say();
    verdicts::rest_on(section, before, out);
  };
  about("environment", [&] { describe_emulated(shown, out); });
  about("records", [&] {
    describe_older(older.size(), out);
    describe_noise(shown, out);
    describe_unverified(shown, out);
  });
  about("environment", [&] { describe_hosts(shown, out); });
  about("records", [&] { describe_verdicts(shown, out); });
  std::stable_sort(out.begin(), out.end(),
                   [](const Sentence& a, const Sentence& b) { return a.tone < b.tone; });
  return out;
}

}  // namespace penstock
