#include "results/record/trial.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Whether an option is left out of the parameters. Only options that do not describe the work are left out,
// and only if all measuring commands have them. Some of these options have a field of their own in the
// record.
bool has_own_field(const OptionSpec& option) {
  if (option.role == OptionRole::work) return false;
  for (const OptionTable table : {common_options(), measuring_options()})
    for (const OptionSpec& spec : table)
      if (spec.name == option.name) return true;
  return false;
}

// The value of an option as JSON of the option's type. `text` is what Options::visit() passes: nullptr if the
// option has no value.
Json typed_value(OptionType type, const std::string* text) {
  if (text == nullptr) return type == OptionType::flag ? Json(false) : Json();
  switch (type) {
    case OptionType::flag:
    case OptionType::boolean:
      return *text != "0";
    case OptionType::integer:
    case OptionType::size:
    case OptionType::rate:
    case OptionType::real: {
      // Numbers such as "4096" and "0.5" are valid JSON, so the JSON parser can read them.
      const std::optional<Json> number = Json::try_parse(*text);
      if (number && number->is_number()) return *number;
      break;
    }
    case OptionType::list: {
      if (const auto list = Json::try_parse("[" + *text + "]")) return *list;
      break;
    }
    case OptionType::duration:
      if (const auto duration = parse_duration(*text))
        return std::chrono::duration<double>(*duration).count();
      break;
    case OptionType::text:
    case OptionType::choice:
      break;
  }
  return *text;
}

// Adds a parameter. If an option is given several times, its parameter becomes a list.
void add_parameter(Json& parameters, const std::string& name, Json value) {
  if (!parameters.contains(name)) {
    parameters[name] = std::move(value);
    return;
  }
  Json& values = parameters[name];
  if (!values.is_array()) values = Json::array({values});
  values.push_back(std::move(value));
}

Result<std::map<std::string, std::string>> parse_labels(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const auto divider = text.find('=');
    if (divider == 0 || divider == std::string::npos)
      return make_error(Errc::invalid_argument, "--label takes KEY=VALUE, not '" + text + "'");
    labels[text.substr(0, divider)] = text.substr(divider + 1);
  }
  return labels;
}

Json pair_json(std::string_view suite, uint64_t index, std::string_view arm) {
  return Json{{"suite", suite}, {"index", index}, {"arm", arm}};
}

// Parses "SUITE,INDEX,ARM", the value of --pair; the suite may contain commas. If the text is "", the run is
// not one of a pair, and the result is {}.
Result<Json> parse_pair(const std::string& text) {
  if (text.empty()) return Json::object();
  const auto index_end = text.rfind(',');
  const auto suite_end =
      index_end == std::string::npos || index_end == 0 ? index_end : text.rfind(',', index_end - 1);
  if (suite_end != std::string::npos && suite_end > 0 && index_end > suite_end && index_end + 1 < text.size())
    if (const auto index =
            parse_count(std::string_view(text).substr(suite_end + 1, index_end - suite_end - 1)))
      return pair_json(text.substr(0, suite_end), *index, text.substr(index_end + 1));
  return make_error(Errc::invalid_argument, "--pair takes SUITE,INDEX,ARM, not '" + text + "'");
}

// Sets `device` to the device that has `path`. If `path` does not exist, its nearest existing parent folder
// counts. Returns false if there is none.
bool device_of(fs::path path, dev_t& device) {
  std::error_code code;
  path = fs::absolute(path, code);
  for (;; path = path.parent_path()) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) {
      device = facts.st_dev;
      return true;
    }
    if (!path.has_relative_path()) return false;
  }
}

constexpr std::string_view kInterruptedReason = "stopped before its measurement was complete";

// Returns the function by which all ranks of the job use the numbers of rank 0. Collective.
TimePlan::FromRoot from_root(Communicator& ranks) {
  if (ranks.size() == 1) return {};
  return [&ranks](double value) {
    const Result<double> of_root = on_root(ranks, [&]() -> Result<double> { return value; });
    return of_root.ok() ? *of_root : value;  // the next collective call of the command fails as well
  };
}

}  // namespace

void Trial::tier(std::string_view role, const Tier& tier) {
  record_.tiers[std::string(role)] = tier_json(tier);
}

void Trial::pair(std::string_view suite, uint64_t index, std::string_view arm) {
  record_.pair = pair_json(suite, index, arm);
}

void Trial::sample(const MetricInfo& family, std::string_view part, double value) {
  add_sample(record_, family, part, value);
  assert(record_.metrics.at(family.with(part)).unit == family.unit && "a metric keeps its unit");
}

void Trial::verdict(Verdict verdict, std::string_view reason) {
  add_verdict(record_.verdict, record_.reason, verdict, reason);
}

void Trial::fail(const Error& error) {
  Verdict failure = Verdict::failed;
  if (error.code == Errc::interrupted) failure = Verdict::interrupted;
  if (error.code == Errc::timed_out) failure = Verdict::timed_out;
  if (error.code == Errc::unsupported) failure = Verdict::skipped;
  verdict(failure, error.message());
}

Run::Run(const CommandContext& context)
    : context_(context),
      plan_(context, from_root(context.communicator)),
      results_folder_(context.options.text("results")) {}

Result<Run> Run::begin(const CommandContext& context) {
  Run run(context);
  PENSTOCK_ASSIGN(run.prototype_.label, parse_labels(context.options.texts("label")));
  PENSTOCK_ASSIGN(run.prototype_.pair, parse_pair(context.options.text("pair")));
  if (run.results_folder_.empty()) return make_error(Errc::invalid_argument, "--results needs a folder");
  PENSTOCK_TRY(
      all_ok(context.communicator, run.root() ? check_results_folder(run.results_folder_) : success()));
  run.prototype_.id = random_id(16);
  run.prototype_.command = context.command;
  run.prototype_.argv.assign(context.argv.begin(), context.argv.end());
  run.prototype_.seed = context.seed;
  context.options.visit([&](const OptionSpec& option, const std::string* text) {
    const std::string name = parameter_name(option.name, option.type);
    run.roles_[name] = option.role;
    if (!has_own_field(option) && (text != nullptr || option.role == OptionRole::work))
      add_parameter(run.prototype_.parameters, name, typed_value(option.type, text));
  });
  run.prototype_.parameters["ranks"] = context.communicator.size();
  run.prototype_.environment = inspect_environment();
  run.prototype_.environment["results"] = run.results_folder_;
  run.last_throttled_s_ = throttled_seconds();
  PENSTOCK_TRY(run.inspect_ranks());
  return run;
}

Result<void> Run::inspect_ranks() {
  if (ranks() == 1) return success();
  PENSTOCK_ASSIGN(rank_records_,
                  gather_ranks(context_.communicator, prototype_.environment["host"], rank_records_));
  return success();
}

Trial Run::trial() const {
  Trial trial;
  trial.record_ = prototype_;
  trial.record_.started = utc_now();
  trial.record_.work = work_of(trial.record_.parameters);
  return trial;
}

std::vector<std::string> Run::work_of(const Json& parameters) const {
  const std::span<const std::string_view> findings = context_.findings;
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters.items()) {
    const auto option = roles_.find(name);
    const bool is_work = option == roles_.end()
                             ? std::find(findings.begin(), findings.end(), name) == findings.end()
                             : option->second == OptionRole::work;
    if (is_work) names.push_back(name);
  }
  return names;
}

// The quota is that of the whole group, so other processes of the group may have used it up. The kernel adds
// up over the processors how long the group could not run on each, so the sum may be longer than the time
// elapsed.
void Run::add_throttling(Trial& trial) {
  constexpr double kLeastShare = 0.05;
  const auto now = std::chrono::steady_clock::now();
  const double elapsed_s = std::chrono::duration<double>(now - std::exchange(last_added_, now)).count();
  const std::optional<double> throttled_s = throttled_seconds();
  const std::optional<double> before_s = std::exchange(last_throttled_s_, throttled_s);
  if (!throttled_s || !before_s) return;
  const double share_s = *throttled_s - *before_s;
  if (share_s < 0) return;  // the process was moved to another group
  trial.record_.environment["throttled_s"] = share_s;
  const double cpus = prototype_.environment["cgroup"].value("cpus", 0.0);
  if (share_s <= 0 || cpus <= 0 || share_s < kLeastShare * elapsed_s * std::max(1.0, cpus)) return;
  const std::string text = fmt::format(
      "the quota of this cgroup, {:.3g} processors, was used up: in {:.3g} s its threads could not run "
      "for {:.3g} s, added up over the processors",
      cpus, elapsed_s, share_s);
  if (root()) context_.warn(text);
  trial.verdict(Verdict::client_bound, text);
}

void Run::add_stops(Trial& trial) {
  const unsigned continued = times_continued();
  const unsigned times = continued - std::exchange(last_continued_, continued);
  if (times == 0) return;
  trial.record_.environment["continued"] = times;
  // Who ends a process often sends SIGCONT, too (timeout(1), systemd), so that a stopped one ends as well.
  if (interrupted()) return;
  const std::string text = fmt::format(
      "this process got SIGCONT {} while it measured, so it was probably stopped (SIGSTOP, Ctrl-Z): its "
      "times "
      "include the pause",
      count_of(times, "time"));
  if (root()) context_.warn(text);
  trial.verdict(Verdict::client_bound, text);
}

void Run::log_remark(const std::string& tier, const std::string& remark) {
  const std::string text = tier + ": " + remark;
  if (logged_remarks_.insert(text).second) context_.log(text);
}

void Run::add(Trial trial) {
  add_throttling(trial);
  add_stops(trial);
  if (root())
    for (const auto& tier : trial.record_.tiers)
      for (const Json& remark : tier.value("remarks", Json::array()))
        if (remark.is_string()) log_remark(tier.value("name", ""), remark.get<std::string>());
  if (interrupted()) trial.verdict(Verdict::interrupted, kInterruptedReason);
  for ([[maybe_unused]] const auto& [name, metric] : trial.record_.metrics)
    assert((context_.metrics.empty() || is_declared(name, metric, context_.metrics)) &&
           "a metric is in its command's table");
  Record& record = records_.emplace_back(std::move(trial.record_));
  record.id = prototype_.id + "-" + std::to_string(records_.size() - 1);
  record.work = work_of(record.parameters);
  if (!warnings_.empty()) record.environment["warnings"] = warnings_;
  if (!rank_records_.empty()) record.environment["ranks"] = rank_records_;
  if (Json plan = plan_.json(); !plan.is_null()) record.environment["plan"] = std::move(plan);
  if (context_.output.json && root()) {
    print_json(to_json(record));
    std::fflush(stdout);
  }
}

void Run::check_tier(const Tier& tier) {
  if (context_.live_tiers != nullptr) watched_tiers_.push_back(context_.live_tiers->add(tier));
  if (root())
    for (const std::string& remark : tier.remarks()) log_remark(tier.name, remark);
  // The results folder cannot be on a tier without a file system, so there is nothing to warn about.
  if (tier.facts.memory || tier.facts.fs_type.empty()) return;
  dev_t results_device = 0;
  dev_t tier_device = 0;
  if (!device_of(results_folder_, results_device) || !device_of(tier.root, tier_device) ||
      results_device != tier_device)
    return;
  std::error_code unknown;
  const fs::path inside = fs::weakly_canonical(results_folder_, unknown)
                              .lexically_relative(fs::weakly_canonical(tier.root, unknown));
  const bool is_inside = !unknown && !inside.empty() && *inside.begin() != "..";
  const std::string text =
      is_inside
          ? "the results folder '" + results_folder_ + "' is in the measured tier '" + tier.name +
                "': a scan of that folder finds the records, too (--results DIR moves them)"
          : "the results folder '" + results_folder_ + "' is on the same file system as the measured tier '" +
                tier.name + "'; it is written after the measurement ends (--results DIR moves it)";
  if (std::find(warnings_.begin(), warnings_.end(), text) != warnings_.end()) return;
  // On the same file system, nothing is written while the measurement lasts: the record says so, and that is
  // enough.
  if (root() && is_inside) context_.warn(text);
  warnings_.push_back(text);
}

Result<std::string> Run::finish() {
  if (interrupted() && std::none_of(records_.begin(), records_.end(), [](const Record& record) {
        return record.verdict == Verdict::interrupted;
      })) {
    Trial unfinished = trial();
    unfinished.verdict(Verdict::interrupted, "stopped after " + std::to_string(records_.size()) +
                                                 " complete cells; the others were not measured");
    add(std::move(unfinished));
  }
  if (records_.empty() || !root()) return std::string();
  PENSTOCK_ASSIGN(const fs::path path, write_records(results_folder_, records_));
  context_.log("record: " + path.string());
  return path.string();
}

int Run::exit_code() const {
  int worst_code = 0;
  for (const Record& record : records_) {
    const int code = verdict_exit_code(record.verdict);
    if (code == 1) return 1;
    worst_code = std::max(worst_code, code);
  }
  return worst_code;
}

}  // namespace penstock
