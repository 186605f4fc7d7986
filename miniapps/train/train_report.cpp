#include "miniapps/train/train_report.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/stage_times.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"

namespace penstock {
namespace {

std::string cell(const Record& record, const MetricInfo& metric, std::string (*format)(double)) {
  return or_dash(metric_value(record, metric), format);
}

std::string whole_text(double value, const Output& output) {
  return format_count(uint64_t(value), output);
}

// The start of a sentence: who shares a step, such as "3 ranks of 2 accelerators, each with ". "" for one
// rank with one accelerator.
std::string sharers_text(const Record& record) {
  const auto ranks = uint64_t(parameter_number(record, "ranks").value_or(1));
  const auto accelerators = uint64_t(parameter_number(record, "accelerators").value_or(1));
  if (ranks < 2 && accelerators < 2) return "";
  const std::string accelerators_text = fmt::format("{} accelerators", accelerators);
  if (ranks < 2) return accelerators_text + ", each with ";
  return fmt::format("{} ranks{}, each with ", ranks, accelerators < 2 ? "" : " of " + accelerators_text);
}

std::string threads_of(const Record& record) {
  const std::string threads = parameter_text(record, "threads");
  return threads + (threads == "1" ? " thread" : " threads");
}

// The settings for decoding and transforming pictures, as text. Settings with default values are left out.
std::string transform_of(const Record& record) {
  std::string text;
  const std::string decode = parameter_text(record, "decode");
  const std::string resize = parameter_text(record, "resize");
  if (!decode.empty() && decode != "full")
    text += ", --decode " + decode + (decode == "crop" ? " (random crops)" : "");
  if (!resize.empty() && resize != "bilinear") text += ", --resize " + resize;
  return text;
}

std::string heading(const Record& record, const Output& output) {
  if (record.corpus.empty()) return "";  // empty: the run failed before the corpus was known
  const auto member = [&](const char* name) -> double {
    const auto at = record.corpus.find(name);
    return at != record.corpus.end() && at->is_number() ? at->get<double>() : 0.0;
  };
  const std::string cache = cache_text(record, "client_data");
  return fmt::format(
      "{}: {}, {}; {}batches of {} ({}{}), {}, prefetch {}, accelerator {}; client data {}\n\n",
      parameter_text(record, "app"), count_of(uint64_t(member("samples")), "sample", output),
      format_bytes(member("bytes"), output), sharers_text(record), parameter_text(record, "batch"),
      parameter_text(record, "layout"), transform_of(record), threads_of(record),
      parameter_text(record, "prefetch"), parameter_text(record, "accelerator"),
      cache.empty() ? "unknown" : cache);
}

// The table cell for input_overlap. A negative value only means that the run was too short for the
// comparison.
std::string overlap_cell(const Record& record) {
  const std::optional<double> overlap = metric_value(record, train_metrics::kInputOverlap);
  if (!overlap) return "-";
  return *overlap < 0 ? "none" : format_percent(*overlap);
}

std::string summary_table(std::span<const Record> records, const Output& output) {
  Table table({{"tier", Align::left},
               {"steps"},
               {"samples/s"},
               {std::string(rate_unit(output))},
               {"AU"},
               {"first batch"},
               {"waited"},
               {"wall"},
               {"overlap"},
               {"verdict", Align::left}});
  for (const Record& record : records) {
    const std::optional<double> rate = metric_value(record, train_metrics::kPayloadRate);
    table.row({tier_name(record), or_dash(metric_value(record, train_metrics::kSteps), whole_text, output),
               or_dash(metric_value(record, train_metrics::kSampleRate), format_number, output),
               rate ? format_rate(*rate, output) : "-",
               cell(record, train_metrics::kUtilization, format_percent),
               cell(record, train_metrics::kFirstBatch, format_seconds),
               cell(record, train_metrics::kInputWait, format_seconds),
               cell(record, shared_metrics::kWall, format_seconds),
               parameter_text(record, "prefetch") == "0" ? "-" : overlap_cell(record),
               std::string(verdict_name(record.verdict))});
  }
  return table.text();
}

std::string stage_table(std::span<const Record> records) {
  Table table(
      {{"tier", Align::left}, {"stage", Align::left}, {"busy"}, {"starved"}, {"blocked"}, {"busy share"}});
  for (const Record& record : records) {
    for (const StageTally& stage : stage_times(record)) {
      table.row({tier_name(record), stage.stage, format_seconds(stage.busy_s),
                 format_seconds(stage.starved_s), format_seconds(stage.blocked_s),
                 busy_share_text(record, stage)});
    }
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string option_text(const OptionSpec& spec) {
  const std::string_view value = spec.type == OptionType::boolean ? "0|1" : spec.value;
  return fmt::format("--set {}={} ({}{})", spec.name, value, spec.help,
                     spec.fallback.empty() ? "" : fmt::format("; default {}", spec.fallback));
}

// A sentence for a run without prefetching, in which reading and computing alternate.
std::string alternation_sentence(const Record& record) {
  const std::optional<double> input_wait = metric_value(record, train_metrics::kInputWait);
  const std::optional<double> wall = metric_value(record, shared_metrics::kWall);
  const std::optional<double> step_s = parameter_number(record, "step_s");
  const std::optional<double> steps = metric_value(record, train_metrics::kSteps);
  if (parameter_number(record, "ranks").value_or(1) > 1 ||
      parameter_number(record, "accelerators").value_or(1) > 1 ||
      metric_value(record, train_metrics::kValidation) || metric_value(record, train_metrics::kModelSave) ||
      metric_value(record, saving_metrics::kBlockTime))
    return "";  // with these, reading and computing do not simply alternate
  if (parameter_text(record, "prefetch") != "0" || !input_wait || !wall || !steps || step_s.value_or(0) <= 0)
    return "";
  return fmt::format(
      "Without prefetch, input and steps alternate on {}: {} of input plus {} of steps take {}.\n",
      tier_name(record), format_seconds(*input_wait), format_seconds(*steps * *step_s),
      format_seconds(*wall));
}

// Describes the saves: "4 checkpoints of 64 MiB held the training on disk for 31 ms each (median); ..."
std::string saving_sentence(const Record& record, const Output& output) {
  const std::optional<double> block_s = metric_value(record, saving_metrics::kBlockTime);
  const std::optional<double> bytes = metric_value(record, train_metrics::kModelBytes);
  if (!block_s || !bytes) return "";
  const std::optional<double> durable_s = metric_value(record, train_metrics::kTimeToDurable);
  const std::optional<double> final_drain_s = metric_value(record, train_metrics::kFinalize);
  return fmt::format(
      "{} of {} blocked the training on {} for {} each (median){}{}.\n",
      count_of(uint64_t(metric_value(record, saving_metrics::kSaves).value_or(0)), "checkpoint"),
      format_bytes(*bytes, output), tier_name(record), format_seconds(*block_s),
      durable_s ? fmt::format(", and became durable after {}", format_seconds(*durable_s)) : "",
      final_drain_s ? fmt::format("; the drain after the last step took {}", format_seconds(*final_drain_s))
                    : "");
}

// The app's own defaults for --threads, --epochs and --steps, written as flags.
std::string default_flags(const MiniAppDefaults& defaults) {
  std::string text;
  if (defaults.threads != 0) text += fmt::format(" --threads {}", defaults.threads);
  if (defaults.epochs != 0) text += fmt::format(" --epochs {}", defaults.epochs);
  if (defaults.steps != 0) text += fmt::format(" --steps {}", defaults.steps);
  return text;
}

}  // namespace

std::string training_report(std::span<const Record> records, const Output& output) {
  if (records.empty()) return "";
  std::string out = heading(records.front(), output) + summary_table(records, output) + stage_table(records);
  const std::vector<Sentence> report_sentences = sentences(records, output);
  out += "\n";
  for (const Record& record : records) out += alternation_sentence(record);
  for (const Record& record : records) out += saving_sentence(record, output);
  for (const Sentence& sentence : report_sentences) out += sentence.text + "\n";
  return out;
}

std::string list_miniapps(bool json) {
  std::string out;
  for (const MiniAppInfo* app : miniapp_registry().present()) {
    if (json) {
      Json options = Json::array();
      for (const OptionSpec& spec : app->options)
        options.push_back({{"name", spec.name}, {"default", spec.fallback}, {"help", spec.help}});
      out += Json{{"name", app->name},
                  {"summary", app->summary},
                  {"reproduces", app->reproduces},
                  {"codec", app->codec},
                  {"batch", app->defaults.batch},
                  {"prefetch", app->defaults.prefetch},
                  {"accelerator", app->defaults.accelerator},
                  {"shuffle", app->defaults.shuffle},
                  {"threads", app->defaults.threads},
                  {"epochs", app->defaults.epochs},
                  {"steps", app->defaults.steps},
                  {"options", options}}
                 .dump() +
             "\n";
      continue;
    }
    out += fmt::format(
        "{}: {}\n  reproduces  {}\n  defaults    --batch {} --prefetch {} --shuffle {} --accelerator {}{}\n",
        app->name, app->summary, app->reproduces, app->defaults.batch, app->defaults.prefetch,
        app->defaults.shuffle, app->defaults.accelerator, default_flags(app->defaults));
    for (const OptionSpec& spec : app->options) out += "  options     " + option_text(spec) + "\n";
  }
  for (const MissingPlugin& missing : miniapp_registry().missing())
    if (!json) out += fmt::format("{}: missing: {}\n", missing.name, missing.reason);
  return out;
}

}  // namespace penstock
