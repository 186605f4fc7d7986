// How records of `tiers --probe` are shown: names, sentences, tiles.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "benchmarks/probe/probe_report.hpp"
#include "benchmarks/probe/view/probe_parts.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/record_view.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr std::string_view kOpRateEnd = ".ops_per_s";

constexpr std::array<ProbeKind, 6> kProbeKinds{{
    {"read.sequential.", "reads sequentially", "sequential reads"},
    {"read.random.4k.", "reads blocks of 4 KiB at random", "random reads of 4 KiB"},
    {"read.small_files.", "reads small files", "small files read"},
    {"write.sequential.", "writes sequentially", "sequential writes"},
    {"write.small_files.", "writes small files", "small files written"},
    {"metadata.create", "creates files", "files created"},
}};

std::vector<std::string> parts_of_name(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name)
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// "4k" -> "4 KiB".
std::string block_text(std::string part) {
  if (part.empty()) return part;
  const char unit = part.back();
  if (unit == 'k' || unit == 'm') part.pop_back();
  return part + (unit == 'k' ? " KiB" : unit == 'm' ? " MiB" : "");
}

std::string clients_text(const Record& record) {
  const auto clients = verdicts::threads_of(record);
  if (!clients) return "";
  std::string text = *clients == 1 ? "1 client" : fmt::format("{} clients", *clients);
  if (const auto ranks = whole_number(record, "ranks", 2)) text = fmt::format("{} ranks of {}", *ranks, text);
  return text;
}

std::string figure_text(const BestProbe& best, const Output& output) {
  return fmt::format("{} {}", probe_text(*best.metric, output), probe_unit(best.probe, output));
}

// How a tier was at its best: "2 clients, depth 8".
std::string where_text(const BestProbe& best) {
  const auto depth = probe_depth(best.probe);
  return clients_text(*best.record) + (depth ? fmt::format(", depth {}", *depth) : "");
}

// Whether `fast` is proven to be faster than `slow`.
bool is_proven(const BestProbe& fast, const BestProbe& slow) {
  const auto ratio = ratio_of_any(fast.metric, slow.metric);
  const size_t least_samples = std::min(fast.metric->samples.size(), slow.metric->samples.size());
  return ratio && least_samples > 1 && ratio->least > 1 &&
         ratio->middle - 1 > std::max(spread(fast.metric->samples), spread(slow.metric->samples));
}

void describe_kind(const RecordList& records, const ProbeKind& kind, const Output& output,
                   std::vector<Sentence>& out) {
  std::vector<BestProbe> best;
  for (const std::string& tier : probed_tiers(records))
    if (BestProbe found = best_probe(records, tier, kind); found.metric != nullptr) best.push_back(found);
  if (best.empty()) return;
  std::sort(best.begin(), best.end(),
            [](const BestProbe& a, const BestProbe& b) { return a.metric->value() > b.metric->value(); });
  std::string text = fmt::format("{} {} at {} ({})", tier_name(*best[0].record), kind.does,
                                 figure_text(best[0], output), where_text(best[0]));
  for (size_t i = 1; i < best.size(); ++i)
    text += fmt::format(
        "{} {} at {}{}", i == 1 ? ", and" : ",", tier_name(*best[i].record), figure_text(best[i], output),
        is_proven(best[0], best[i])
            ? fmt::format(", a factor of {:.3g}", best[0].metric->value() / best[i].metric->value())
            : fmt::format(", which is within the spread: repeats differ by up to {}",
                          format_percent(
                              std::max(spread(best[0].metric->samples), spread(best[i].metric->samples)))));
  const bool single = best[0].metric->samples.size() < 2;
  out.push_back({single ? Tone::caution : Tone::finding, "probe." + std::string(kind.start),
                 text + (single ? " (from one repeat)." : "."), "probe"});
}

size_t noisy_count(const RecordList& records, size_t& all) {
  size_t noisy = 0;
  all = 0;
  for (const Record* const record : records) {
    const Record* const one[] = {record};
    for (const std::string& probe : probe_names(one))
      if (const Metric* const metric = probe_metric(*record, probe)) {
        ++all;
        if (spread(metric->samples) > kNoisySpread) ++noisy;
      }
  }
  return noisy;
}

void describe_probes(std::span<const Record> records, const Output& output, std::vector<Sentence>& out) {
  const RecordList probes = probe_records(records);
  if (probes.empty()) return;
  for (const ProbeKind& kind : kProbeKinds) describe_kind(probes, kind, output, out);
  size_t all = 0;
  if (const size_t noisy = noisy_count(probes, all); noisy > 0)
    out.push_back({Tone::caution, "probe.noise",
                   fmt::format("{} of {} are noisy: their repeats differ by more than {}. They are marked in "
                               "the tables.",
                               noisy, count_of(all, "probe result"), format_percent(kNoisySpread)),
                   "probe"});
}

// The conclusion about several tiers. `slowest` is the tier that reads sequentially slowest.
std::vector<std::string> tiers_compared(const RecordList& records, const std::vector<std::string>& tiers,
                                        const Output& output) {
  size_t proven = 0;
  size_t contrary = 0;
  size_t compared = 0;
  std::string slowest = tiers[0];
  std::string fastest = tiers[0];
  const auto sequential = [&](const std::string& tier) {
    const BestProbe best = best_probe(records, tier, kProbeKinds[0]);
    return best.metric == nullptr ? 0.0 : best.metric->value();
  };
  for (const std::string& tier : tiers) {
    if (sequential(tier) < sequential(slowest)) slowest = tier;
    if (sequential(tier) > sequential(fastest)) fastest = tier;
  }
  std::vector<std::string> amounts;
  for (const ProbeKind& kind : kProbeKinds) {
    const BestProbe fast = best_probe(records, fastest, kind);
    const BestProbe slow = best_probe(records, slowest, kind);
    if (fast.metric == nullptr || slow.metric == nullptr || slowest == fastest) continue;
    ++compared;
    if (is_proven(slow, fast)) ++contrary;
    if (!is_proven(fast, slow)) continue;
    ++proven;
    if (amounts.size() < 3)
      amounts.push_back(
          fmt::format("{} {:.3g} times as fast", kind.does, fast.metric->value() / slow.metric->value()));
  }
  size_t all = 0;
  const size_t noisy = noisy_count(records, all);
  std::string first =
      fmt::format("{} is the slower tier in {} of {} kinds of work", slowest, proven, compared);
  if (proven == 0)
    first = fmt::format("Which of {} is slower is unknown: no difference is larger than the noise",
                        verdicts::enumerate(tiers));
  else if (contrary > 0)
    first += fmt::format(", and the faster one in {}", contrary);
  return {first + ".",
          amounts.empty() ? fmt::format("{} reads sequentially at {}.", fastest,
                                        figure_text(best_probe(records, fastest, kProbeKinds[0]), output))
                          : fmt::format("{} {}.", fastest, verdicts::enumerate(amounts)),
          3 * noisy > all
              ? fmt::format(
                    "Run the same command on a quiet machine with --min-time 5s --repeat 9, because {} of "
                    "{} are noisy.",
                    noisy, count_of(all, "result"))
              : "Measure your own data with 'penstock read' on both tiers before you decide."};
}

std::vector<std::string> probe_bottom_line(std::span<const Record> records, const Output& output) {
  const RecordList probes = probe_records(records);
  if (probes.empty()) return {};
  const std::vector<std::string> tiers = probed_tiers(probes);
  if (tiers.size() > 1 && best_probe(probes, tiers[0], kProbeKinds[0]).metric != nullptr)
    return tiers_compared(probes, tiers, output);
  std::vector<std::string> amounts;
  for (const ProbeKind& kind : kProbeKinds)
    if (const BestProbe best = best_probe(probes, tiers[0], kind);
        best.metric != nullptr && amounts.size() < 3)
      amounts.push_back(fmt::format("{} at {}", kind.does, figure_text(best, output)));
  return {fmt::format("What limits a job on {} is unknown from its probes alone.", tiers[0]),
          fmt::format("{} {}.", tiers[0], verdicts::enumerate(amounts)),
          "Add a second --tier to compare, or measure your own data with 'penstock read'."};
}

std::vector<std::string> probe_tiles(std::span<const Record> records, report::PageState& state) {
  const RecordList probes = probe_records(records);
  std::vector<std::string> tiles;
  for (const std::string& tier : probed_tiers(probes))
    for (const size_t kind : {size_t(0), size_t(3)})
      if (const BestProbe best = best_probe(probes, tier, kProbeKinds[kind]); best.metric != nullptr)
        tiles.push_back(report::tile_html(
            probe_text(*best.metric, state.output), probe_unit(best.probe, state.output),
            fmt::format("{}, {}, highest rate: {}", tier, kProbeKinds[kind].heading, where_text(best)),
            report::colour_of(state.tiers, tier)));
  return tiles;
}

std::vector<TierFigure> probe_figures(std::span<const Record> records, const Output& output) {
  const RecordList probes = probe_records(records);
  std::vector<TierFigure> figures;
  for (const std::string& tier : probed_tiers(probes))
    for (const ProbeKind& kind : kProbeKinds)
      if (const BestProbe best = best_probe(probes, tier, kind); best.metric != nullptr)
        figures.push_back({tier, fmt::format("probe: {}, {}", kind.heading, probe_unit(best.probe, output)),
                           best.metric->unit == "B/s" ? best.metric->value() / report::chart_unit(output)
                                                      : best.metric->value(),
                           best.record});
  return figures;
}

std::vector<std::string> probe_record_names(ShownRecords records) {
  std::vector<std::string> names;
  for (const Record* const record : records)
    names.push_back(is_probe(*record) ? tier_name(*record) + " with " + clients_text(*record)
                                      : record->command);
  return names;
}

std::vector<std::string> probe_label(const Record& record) {
  return {clients_text(record)};
}

void add_no_superseded(std::span<const Record>, std::set<const Record*>&) {}

}  // namespace

bool is_probe(const Record& record) {
  return record.command == "tiers" && is_usable(record) &&
         std::any_of(record.metrics.begin(), record.metrics.end(),
                     [](const auto& entry) { return entry.first.ends_with(kOpRateEnd); });
}

RecordList probe_records(std::span<const Record> records) {
  RecordList found;
  for (const Record& record : records)
    if (is_probe(record)) found.push_back(&record);
  return found;
}

std::vector<std::string> probe_names(std::span<const Record* const> records) {
  std::vector<std::string> names;
  for (const Record* const record : records)
    for (std::string& name : probes_of(*record))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  std::sort(names.begin(), names.end(), is_before_by_numbers);
  return names;
}

std::optional<uint64_t> probe_depth(std::string_view probe) {
  const std::string_view last = probe.substr(probe.rfind('.') + 1);
  constexpr size_t kMostDigits = 9;
  if (last.empty() || last.size() > kMostDigits) return std::nullopt;
  uint64_t depth = 0;
  for (const char c : last) {
    if (c < '0' || c > '9') return std::nullopt;
    depth = depth * 10 + uint64_t(c - '0');
  }
  return depth;
}

std::string probe_title(const std::string& probe) {
  const std::vector<std::string> parts = parts_of_name(probe);
  if (parts.size() == 2 && parts[0] == "metadata")
    return parts[1] == "list" ? "list entries" : parts[1] + " files";
  if (parts.size() != 4) return probe;
  const std::string what = parts[0] == "read" ? "reads" : "writes";
  std::string text = parts[1] == "small_files"
                         ? fmt::format("{} of small files ({})", what, block_text(parts[2]))
                         : fmt::format("{} {} of {}", parts[1], what, block_text(parts[2]));
  return text + (parts[3] == "best" ? ", best found" : ", depth " + parts[3]);
}

const Metric* probe_metric(const Record& record, const std::string& probe) {
  const bool in_bytes = probe_unit(probe, {}).ends_with("B/s");
  return find_metric(record, probe + (in_bytes ? ".bytes_per_s" : std::string(kOpRateEnd)));
}

std::string probe_unit(const std::string& probe, const Output& output) {
  if (probe.starts_with("metadata.")) return probe.ends_with(".list") ? "entries/s" : "files/s";
  if (probe.find(".small_files.") != std::string::npos) return "files/s";
  if (probe.find(".random.") != std::string::npos) return "IOPS";
  return std::string(rate_unit(output));
}

std::string probe_text(const Metric& metric, const Output& output) {
  return metric.unit == "B/s" ? format_rate(metric.value(), output) : format_number(metric.value(), output);
}

std::span<const ProbeKind> probe_kinds() {
  return kProbeKinds;
}

std::vector<std::string> probed_tiers(std::span<const Record* const> records) {
  std::vector<std::string> tiers;
  for (const Record* const record : records)
    if (std::find(tiers.begin(), tiers.end(), tier_name(*record)) == tiers.end())
      tiers.push_back(tier_name(*record));
  return tiers;
}

BestProbe best_probe(std::span<const Record* const> records, const std::string& tier, const ProbeKind& kind) {
  BestProbe best;
  for (const Record* const record : records) {
    if (tier_name(*record) != tier) continue;
    for (const std::string& probe : probes_of(*record)) {
      const Metric* const metric = probe.starts_with(kind.start) ? probe_metric(*record, probe) : nullptr;
      if (metric != nullptr && (best.metric == nullptr || metric->value() > best.metric->value()))
        best = {record, probe, metric};
    }
  }
  return best;
}

extern const RecordView view_tiers;
const RecordView view_tiers{.name = "tiers",
                            .order = 4,
                            .topic = "tier probe",
                            .has_row = is_probe,
                            .add_superseded = add_no_superseded,
                            .names = probe_record_names,
                            .labels = probe_label,
                            .describe = describe_probes,
                            .bottom_line = probe_bottom_line,
                            .tiles = probe_tiles,
                            .figures = probe_figures,
                            .section = report::probe_section};

}  // namespace penstock
