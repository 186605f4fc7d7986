#include "results/cells/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/import/foreign.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace verdicts {

std::string enumerate(const std::vector<std::string>& texts, size_t most) {
  std::string text;
  const bool shortened = texts.size() > most + 1;
  const size_t shown_count = shortened ? most : texts.size();
  for (size_t i = 0; i < shown_count; ++i) {
    if (i > 0) text += i + 1 == shown_count && !shortened ? " and " : ", ";
    text += texts[i];
  }
  if (shortened) text += fmt::format(" and {} more", texts.size() - shown_count);
  return text;
}

std::string threads_text(uint64_t threads) {
  return count_of(threads, "thread");
}

std::optional<uint64_t> threads_of(const Record& record) {
  const auto threads = parameter_number(record, "threads");
  if (!threads || *threads < 0 || *threads >= 1e9) return std::nullopt;
  return uint64_t(*threads);
}

void link_sentences(const std::string& anchor, size_t first_index, std::vector<Sentence>& out) {
  for (size_t at = first_index; at < out.size(); ++at)
    if (out[at].anchor.empty()) out[at].anchor = anchor;
}

}  // namespace verdicts

std::string group_anchor(std::string_view section, size_t index) {
  return fmt::format("{}-{}", section, index + 1);
}

namespace {

using verdicts::enumerate;

using Names = std::map<const Record*, std::string>;

// The name of each record in a sentence. It comes from the record's view; without a view it is the command's
// name.
Names names_of(ShownRecords records) {
  std::map<std::string, std::vector<const Record*>> by_command;
  for (const Record* const record : records) by_command[record->command].push_back(record);
  Names names;
  for (const auto& [command, found] : by_command) {
    const RecordView* const view = find_view(command);
    std::vector<std::string> view_names =
        view == nullptr ? std::vector<std::string>(found.size(), command) : view->names(found);
    for (size_t i = 0; i < found.size(); ++i) names[found[i]] = std::move(view_names[i]);
  }
  return names;
}

// The names of the records, in the records' order, each only once.
std::vector<std::string> distinct_names(ShownRecords records, const Names& names) {
  std::vector<std::string> unique_names;
  std::set<std::string> seen_names;
  for (const Record* const record : records)
    if (seen_names.insert(names.at(record)).second) unique_names.push_back(names.at(record));
  return unique_names;
}

// The reason for the verdict of the records, in brackets. If their reasons differ, it is the reason of the
// first record, and the text says so.
std::string reason_text(const std::vector<const Record*>& records) {
  std::string reason = records.front()->reason;
  const bool same_reason = std::all_of(records.begin(), records.end(),
                                       [&](const Record* record) { return record->reason == reason; });
  if (reason.empty()) return "";
  reason = printable(reason);
  return same_reason || records.size() == 1 ? " (" + reason + ")" : " (first: " + reason + ")";
}

// The words of a sentence for each verdict, in the order of the enum Verdict.
constexpr std::string_view kVerdictTexts[] = {"",
                                              "measured for too short a time",
                                              "limited by this machine's own processors, not by the tier",
                                              "exceeded the measured ceiling",
                                              "lacked samples or parts",
                                              "still not warm, so without a number",
                                              "still not cold, so without a number",
                                              "delivered wrong bytes",
                                              "timed out",
                                              "failed",
                                              "skipped",
                                              "interrupted"};

void describe_verdicts(ShownRecords records, const Names& names, std::vector<Sentence>& out) {
  std::map<Verdict, std::vector<const Record*>> by_verdict;
  for (const Record* record : records)
    if (record->verdict != Verdict::ok) by_verdict[record->verdict].push_back(record);
  for (const auto& [verdict, found] : by_verdict) {
    const std::string count_text = count_of(found.size(), "cell");
    verdicts::add_sentence(out, verdict_exit_code(verdict) == 0 ? Tone::caution : Tone::failure,
                           "verdict." + std::string(verdict_name(verdict)), "{} {}: {}{}.", count_text,
                           kVerdictTexts[size_t(verdict)], enumerate(distinct_names(found, names)),
                           reason_text(found));
  }
}

void describe_unverified(ShownRecords records, std::vector<Sentence>& out) {
  // (tier, requested cache state, the other program whose results they are, or "") -> number of such records.
  std::map<std::tuple<std::string, std::string, std::string_view>, size_t> cells;
  for (const Record* record : records) {
    const Importer* const importer = find_importer(record->command);
    const std::string found = cache_text(*record, "client_data");
    if (is_usable(*record) && (found == "unverified" || (importer != nullptr && found == "unknown")))
      ++cells[{tier_name(*record), requested_cache_state(*record),
               importer == nullptr ? std::string_view() : importer->program}];
  }
  for (const auto& [key, count] : cells) {
    const auto& [tier, wanted, program] = key;
    const std::string state =
        wanted.empty() || wanted == "unverified" || wanted == "unknown" || wanted == "asis" ? "cached"
                                                                                            : wanted;
    verdicts::add_sentence(out, Tone::caution, "unverified",
                           "Whether {} was {} is unverified in {}: {} does not report what is in {} cache.",
                           tier, state, count_of(count, "cell"), program.empty() ? "this machine" : program,
                           program.empty() ? "its" : "the");
  }
}

void describe_noise(ShownRecords records, const Names& names, std::vector<Sentence>& out) {
  double largest_spread = 0;
  std::vector<const Record*> noisy_records;
  for (const Record* record : records) {
    const Metric* const metric = throughput(*record);
    if (!is_usable(*record) || metric == nullptr) continue;
    const double repeat_spread = spread(metric->samples);
    if (repeat_spread <= kNoisySpread) continue;
    largest_spread = std::max(largest_spread, repeat_spread);
    noisy_records.push_back(record);
  }
  if (noisy_records.empty()) return;
  verdicts::add_sentence(out, Tone::caution, "noise",
                         "Repeats differ by up to {} ({}): smaller differences there mean nothing.",
                         format_percent(largest_spread), enumerate(distinct_names(noisy_records, names)));
}

void describe_hosts(ShownRecords records, std::vector<Sentence>& out) {
  std::set<std::string> hosts;
  for (const Record* record : records)
    if (const std::string host = environment_text(*record, "host"); !host.empty()) hosts.insert(host);
  if (hosts.size() > 1)
    verdicts::add_sentence(
        out, Tone::caution, "hosts",
        "These records come from {} machines ({}); only cells of one machine are compared.", hosts.size(),
        enumerate({hosts.begin(), hosts.end()}));
}

void describe_emulated(ShownRecords records, std::vector<Sentence>& out) {
  std::set<std::string> emulated_clauses;
  for (const Record* record : records) {
    if (const std::string options = emulation(*record); !options.empty())
      emulated_clauses.insert(fmt::format("{} is emulated ({})", tier_name(*record), options));
    for (const auto& [role, tier] : record->tiers.items())
      if (role != "data" && tier.is_object())
        if (const std::string options = emulation(tier); !options.empty())
          emulated_clauses.insert(fmt::format("{} is emulated ({})", role_name(*record, role), options));
  }
  for (const std::string& clause : emulated_clauses)
    out.push_back(
        {Tone::caution, "emulated", clause + ": its figures show the requested limits, not a device."});
}

void describe_older(size_t older_count, std::vector<Sentence>& out) {
  if (older_count > 0)
    verdicts::add_sentence(out, Tone::caution, "older", "{} of older runs of the same work {} not shown.",
                           count_of(older_count, "row"), older_count == 1 ? "is" : "are");
}

}  // namespace

Scaling measure_scaling(std::span<const ScalingPoint> curve) {
  Scaling scaling;
  if (curve.size() < 2 || curve.front().rate <= 0) return scaling;
  const auto peak = std::max_element(curve.begin(), curve.end(),
                                     [](const auto& a, const auto& b) { return a.rate < b.rate; });
  auto stop = curve.begin();
  const auto best_rate_after = [&](auto from) {
    double best_rate = 0;
    for (auto at = from + 1; at != curve.end(); ++at) best_rate = std::max(best_rate, at->rate);
    return best_rate;
  };
  while (stop + 1 != curve.end() && best_rate_after(stop) >= stop->rate * (1 + kLeastScalingGain)) ++stop;
  scaling.useful_count = stop->threads;
  scaling.still_gains = stop + 1 == curve.end();
  scaling.peak_count = peak->threads;
  if (const double lost = 1 - curve.back().rate / peak->rate; lost >= kLeastScalingGain)
    scaling.loss_after_peak = lost;
  return scaling;
}

std::vector<const RecordView*> ordered_views() {
  const auto present = view_registry().present();
  std::vector<const RecordView*> views(present.begin(), present.end());
  std::stable_sort(views.begin(), views.end(),
                   [](const RecordView* a, const RecordView* b) { return a->order < b->order; });
  return views;
}

const RecordView* find_view(std::string_view command) {
  for (const RecordView* const view : view_registry().present())
    if (view->name == command) return view;
  return nullptr;
}

std::vector<Sentence> sentences(std::span<const Record> records, const Output& output) {
  std::vector<Sentence> out;
  std::set<const Record*> older_records;
  for (const RecordView* const view : ordered_views()) {
    view->describe(records, output, out);
    view->add_superseded(records, older_records);
  }
  std::vector<const Record*> shown_records;
  for (const Record& record : records)
    if (!older_records.contains(&record)) shown_records.push_back(&record);
  const Names names = names_of(shown_records);
  const auto add_for_section = [&](const char* section, const auto& describe) {
    const size_t sentences_before = out.size();
    describe();
    verdicts::link_sentences(section, sentences_before, out);
  };
  add_for_section("environment", [&] { describe_emulated(shown_records, out); });
  add_for_section("records", [&] {
    describe_older(older_records.size(), out);
    describe_noise(shown_records, names, out);
    describe_unverified(shown_records, out);
  });
  add_for_section("environment", [&] { describe_hosts(shown_records, out); });
  add_for_section("records", [&] { describe_verdicts(shown_records, names, out); });
  std::stable_sort(out.begin(), out.end(),
                   [](const Sentence& a, const Sentence& b) { return a.tone < b.tone; });
  std::set<std::string> texts;
  std::erase_if(out, [&](const Sentence& sentence) { return !texts.insert(sentence.text).second; });
  return out;
}

std::vector<const Sentence*> leading_sentences(const std::vector<Sentence>& all, Tone tone, size_t most) {
  std::map<std::string_view, size_t> count_by_kind;
  std::vector<std::pair<size_t, const Sentence*>> by_turn;  // how many of its kind come before each sentence
  for (const Sentence& sentence : all)
    if (sentence.tone == tone && !sentence.is_secondary)
      by_turn.emplace_back(count_by_kind[sentence.kind]++, &sentence);
  // In one array, so that the order of pointers is that of `all`.
  std::sort(by_turn.begin(), by_turn.end());
  by_turn.resize(std::min(by_turn.size(), most));
  std::vector<const Sentence*> leading;
  for (const auto& [turn, sentence] : by_turn) leading.push_back(sentence);
  std::sort(leading.begin(), leading.end());
  return leading;
}

std::vector<std::string> bottom_line(std::span<const Record> records, const Output& output) {
  for (const RecordView* const view : ordered_views())
    if (std::vector<std::string> lines = view->bottom_line(records, output); !lines.empty()) return lines;
  const auto failed =
      std::find_if(records.begin(), records.end(), [](const Record& record) { return !is_usable(record); });
  if (!records.empty() && std::none_of(records.begin(), records.end(), is_usable))
    return {"What limits is unknown, because no record has a usable number.",
            fmt::format("The first of them ({}) is {}{}.", printable(failed->command),
                        verdict_name(failed->verdict),
                        failed->reason.empty() ? "" : ": " + printable(failed->reason)),
            "Remove the cause, and run the same command again."};
  std::set<std::string> commands;
  for (const Record& record : records) commands.insert(printable(record.command));
  return {fmt::format("What limits is unknown from records of {} alone.",
                      enumerate({commands.begin(), commands.end()})),
          "Their figures are in the tables of the report.",
          "Run 'penstock read DIR --threads 1,2,4,8' to measure how fast a tier delivers its data."};
}

}  // namespace penstock
