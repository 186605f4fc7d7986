#include "benchmarks/read/read_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "benchmarks/read/block_manifest.hpp"
#include "benchmarks/read/read_metrics.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

std::string cache_text(const Record& record) {
  const auto text = [&](const char* layer) { return record.cache.value(layer, "unknown"); };
  const std::string client_state = text("client_data");
  if (client_state == "memory") return "in memory; the cache state does not apply";
  std::string line = client_state == "none" ? "no client cache" : "client data " + client_state;
  if (record.cache.contains("resident_fraction_before") &&
      record.cache["resident_fraction_before"].is_number())
    line += fmt::format(" ({:.1f}% resident)", 100 * record.cache["resident_fraction_before"].get<double>());
  if (client_state == "unverified") {
    const std::string method = text("method");
    line += " (the kernel does not report cached pages";
    if (method == "evict") line += "; eviction was requested";
    if (record.cache.contains("device_bytes_fraction") && record.cache["device_bytes_fraction"].is_number())
      line += fmt::format("; {:.0f}% of the bytes came from the device",
                          100 * record.cache["device_bytes_fraction"].get<double>());
    line += ")";
  }
  if (text("client_metadata") == "cold") line += "; client metadata cold";
  const std::string server_state = text("server");
  line += "; server cache: " + (server_state == "none" ? std::string("none (local disk)") : server_state);
  return line + "; host cache: " + text("host");
}

Json data_tier(const Record& record) {
  const auto data = record.tiers.find("data");
  return data == record.tiers.end() || !data->is_object() ? Json::object() : *data;
}

// The tier of a record as text: back end, path and options.
std::string location_text(const Record& record) {
  const Json data = data_tier(record);
  std::string text = data.value("backend", "") + ":" + data.value("root", "");
  if (const auto spec = parse_tier(data.value("spec", ""), kNoNamedTiers);
      spec.ok() && !spec->options.empty())
    text += "," + options_text(spec->options, ",");
  return text;
}

// Whether the name of the record's tier differs only by a number from another tier's name. That is so if the
// user gave neither tier a name, and both have the same mount point. Then the table must also show where each
// tier is (location_text()).
bool has_numbered_name(const Record& record, std::span<const Record> records) {
  const auto is_unnamed = [](const Json& data) {
    const auto spec = parse_tier(data.value("spec", ""), kNoNamedTiers);
    return spec.ok() && spec->name.empty();
  };
  const auto mount_of = [](const Json& data) {
    const std::string point = data.value("mount_point", "");
    return point.empty() ? data.value("backend", "") : point;
  };
  const Json data = data_tier(record);
  return is_unnamed(data) && std::any_of(records.begin(), records.end(), [&](const Record& other) {
           const Json other_data = data_tier(other);
           return tier_name(other) != tier_name(record) && is_unnamed(other_data) &&
                  mount_of(other_data) == mount_of(data);
         });
}

// Formats a latency in ms, or in us.
std::string latency_ms(double ns, const Output& output) {
  return ns < 1e5 ? fmt::format("{:.3f}", ns * 1e-6) : format_ms(ns, output);
}
std::string latency_us(double ns, const Output& output) {
  return ns < 1e5 ? fmt::format("{:.2f}", ns * 1e-3) : digits_text(fmt::format("{:.0f}", ns * 1e-3), output);
}

// Whether a table shows latencies in us: a read from the page cache may take less than 0.001 ms.
bool has_short_latency(std::span<const Record> records) {
  return std::any_of(records.begin(), records.end(), [](const Record& record) {
    return metric_value(record, read_metrics::kLatencyP50).value_or(1e9) < 1e4;
  });
}

std::string possible_text(std::optional<double> ratio, double most, std::string (*format)(double)) {
  return ratio && *ratio > most ? "impossible" : or_dash(ratio, format);
}

}  // namespace

std::string baseline_text(std::optional<double> ratio, std::string (*format)(double)) {
  return possible_text(ratio, kImpossibleBaselineRatio, format);
}

std::string ceiling_text(std::optional<double> fraction) {
  return possible_text(fraction, kCeilingTolerance, format_percent);
}

std::string read_heading(const Corpus& corpus, std::span<const Record> records, const Output& output) {
  const Manifest& manifest = corpus.manifest;
  const std::string& name = manifest.facts().codec;
  const std::string codec = name.empty() || name == "mixed" || name == "raw" ? "" : upper_case(name) + " ";
  const BlockRest rest = rest_of_blocks(manifest);
  std::string contents = manifest.one_object_per_sample()
                             ? count_of(manifest.samples(), codec + "file", output)
                             : fmt::format("{} in {}", count_of(manifest.samples(), codec + "sample", output),
                                           count_of(manifest.objects(), "object", output));
  if (rest.bytes > 0)
    contents = fmt::format("{} in {} of {}", count_of(manifest.samples(), "block", output),
                           format_count(manifest.objects() - rest.objects, output),
                           count_of(manifest.objects(), "object", output));
  std::string text = fmt::format("{}: {}, {}, median {}", corpus.name, contents,
                                 format_bytes(double(bytes_of_samples(manifest)), output),
                                 format_bytes(sample_sizes(manifest).percentile(50), output));
  text += rest.bytes > 0 ? "; " + format_bytes(double(rest.bytes), output) + " in no whole block\n" : "\n";
  const bool has_unchecked =
      manifest.facts().checksums && !records.empty() && !records[0].parameters.value("verify", false);
  const std::string_view unchecked =
      has_unchecked ? "; checksums of samples were not verified: to do so, add --verify" : "";
  if (manifest.forms() > 0)
    text += fmt::format(
        "samples are in compressed streams or chunks: the rates count stored bytes. A pass reads {} from "
        "{} of objects; bytes that several samples share may come from a cache, also in a cold repeat{}\n",
        format_bytes(double(manifest.payload_bytes()), output),
        format_bytes(double(bytes_of_objects(manifest)), output), unchecked);
  if (const uint64_t ranks = records.empty() ? 1 : records[0].parameters.value("ranks", uint64_t{1});
      ranks > 1)
    text += fmt::format(
        "{} ranks share the samples of every pass (strong scaling); threads are per rank, and a repeat ends "
        "with its slowest rank\n",
        ranks);
  if (!records.empty() && parameter_number(records[0], "stonewall_s"))
    text += fmt::format(
        "stonewall at {}: all ranks continued until each had read what the fastest rank had read by then; "
        "rates include that\n",
        format_seconds(records[0].parameters["stonewall_s"].get<double>()));
  std::set<std::string> printed_tiers;
  for (const Record& record : records) {
    if (record.cache.empty() || !record.metrics.contains("wall_s")) continue;
    const std::string tier = tier_name(record);
    if (!printed_tiers.insert(tier).second) continue;
    const std::string emulated = emulation(record);
    const bool numbered = has_numbered_name(record, records);
    text += fmt::format("{}{}: {}{}\n", tier, numbered ? " (" + location_text(record) + ")" : "",
                        emulated.empty() ? "" : "emulated (" + emulated + "); ", cache_text(record));
  }
  return text;
}

std::string read_table(const Corpus& corpus, std::span<const Record> records, const Output& output) {
  const bool in_us = has_short_latency(records);
  const bool reads_blocks = !records.empty() && !parameter_text(records.front(), "block").empty();
  const auto latency = [&](double ns) { return in_us ? latency_us(ns, output) : latency_ms(ns, output); };
  Table table({{"tier", Align::left},
               {"threads"},
               {reads_blocks                              ? "IOPS"
                : corpus.manifest.one_object_per_sample() ? "files/s"
                                                          : "samples/s"},
               {std::string(rate_unit(output))},
               {"spread"},
               {"scaling"},
               {"baseline"},
               {"of ceiling"},
               {in_us ? "p50 us" : "p50 ms"},
               {in_us ? "p99 us" : "p99 ms"},
               {"", Align::left}});
  for (const Record& record : records) {
    const bool is_shown = is_usable(record) || record.verdict == Verdict::interrupted;
    const auto value = [&](const MetricInfo& name) {
      return is_shown ? metric_value(record, name) : std::nullopt;
    };
    const auto payload_rate = value(read_metrics::kPayloadRate);
    const Metric* rates = is_shown ? find_metric(record, read_metrics::kPayloadRate) : nullptr;
    table.row({tier_name(record), parameter_text(record, "threads"),
               or_dash(value(read_metrics::kSampleRate), format_number, output),
               payload_rate ? format_rate(*payload_rate, output) : "-",
               rates && rates->samples.size() > 1 ? format_percent(spread(rates->samples)) : "-",
               or_dash(value(read_metrics::kScaling), format_ratio, output),
               baseline_text(is_shown ? baseline_ratio(record) : std::nullopt, format_ratio),
               ceiling_text(value(read_metrics::kCeilingFraction)),
               or_dash(value(read_metrics::kLatencyP50), latency),
               or_dash(value(read_metrics::kLatencyP99), latency),
               record.verdict == Verdict::ok ? "" : std::string(verdict_name(record.verdict))});
  }
  return table.text();
}

std::string scaling_note(std::span<const Record> records) {
  std::map<std::string, std::string> first_threads;
  bool needs_note = false;
  bool has_baseline = false;
  for (const Record& record : records) {
    const std::string threads = parameter_text(record, "threads");
    const bool is_first = first_threads.try_emplace(tier_name(record), threads).first->second == threads;
    const Metric* scaling = find_metric(record, read_metrics::kScaling);
    if (!is_usable(record) && record.verdict != Verdict::interrupted) continue;
    needs_note = needs_note || (!is_first && scaling != nullptr && scaling->samples.size() > 1);
    has_baseline = has_baseline || baseline_ratio(record).has_value();
  }
  if (!needs_note) return "";
  return fmt::format(
      "scaling{} medians of per-repeat ratios, so they may differ from the ratios of the medians shown\n",
      has_baseline ? " and baseline are" : " values are");
}

std::string read_report(const Corpus& corpus, std::span<const Record> records, const Output& output) {
  std::string text = read_heading(corpus, records, output) + "\n" + read_table(corpus, records, output) +
                     scaling_note(records);
  for (const Sentence& sentence : sentences(records, output)) text += sentence.text + "\n";
  return text;
}

}  // namespace penstock
