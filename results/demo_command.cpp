#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/subprocess.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#include "io_backends/tiers/temporary_folder.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/cells/cells.hpp"
#include "results/record/store.hpp"
#include "results/record/time_plan.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCommandLog = "commands.sh";  // a folder that has this file was made by a demo

constexpr OptionSpec kDemoOptions[] = {
    {.name = "out",
     .role = OptionRole::target,
     .value = "DIR",
     .fallback = "penstock-demo",
     .help = "where the report and the records go",
     .group = "Demo"},
    {.name = "quick",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "take about 20 seconds instead of 2 minutes",
     .group = "Demo"},
    {.name = "tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "one more tier to measure",
     .group = "Demo",
     .repeated = true},
    kTimeLimitOption,
    {.name = "samples",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "pictures to make (default 2000; 400 with --quick)",
     .group = "Demo",
     .at_least = 64},
    {.name = "keep-data",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "keep the data sets where they were made",
     .group = "Demo"},
    {.name = "seed",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "7",
     .help = "of the pictures and of every order",
     .group = "Demo",
     .at_least = 0},
};

// A tier for the demo's data. The data is removed at the end of the demo, unless the user asks to keep it.
struct DemoTier {
  std::string name;
  std::string tier;         // the tier as an argument of --tier
  std::string description;  // "tmpfs at /dev/shm", for the user
  // The tier that contains the folder of the data. The folder comes after it, because it borrows the tier.
  std::unique_ptr<Tier> base{};
  std::unique_ptr<TemporaryFolder> folder{};
};

// How much the demo measures. With two processors, a quick demo should take half a minute and a full demo
// less than three minutes.
struct Budget {
  uint64_t samples;
  std::string threads;
  std::string min_time;
  std::string repeats;
  std::string steps;
  std::string calibration_steps;
  double longest_step_s;
};

uint64_t free_bytes(const fs::path& folder) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  return failed ? 0 : space.available;
}

std::string describe_folder(const TierFacts& facts) {
  return fmt::format("{} at {}", facts.fs_type, facts.mount_point);
}

constexpr std::string_view kDataFolder = "data";  // in the temporary folder, next to its lock

// Makes a temporary folder on the tier `text`, after it has removed those of killed demos.
Result<DemoTier> demo_tier(std::string_view name, const std::string& text, NamedTiers named) {
  DemoTier tier;
  PENSTOCK_ASSIGN(Tier base, open_tier(text, named));
  PENSTOCK_ASSIGN(const TierSpec spec, parse_tier(text, named));
  tier.base = std::make_unique<Tier>(std::move(base));
  sweep_dead_folders(*tier.base, kDemoFolderPrefix, note, warn);
  tier.folder = std::make_unique<TemporaryFolder>(*tier.base, kDemoFolderPrefix, warn);
  tier.folder->occupy();
  tier.name = name.empty() ? tier.base->name : std::string(name);
  tier.tier = fmt::format("{}={}:{}{}{}", tier.name, spec.backend,
                          (fs::path(spec.path) / tier.folder->folder(kDataFolder)).string(),
                          spec.options.empty() ? "" : ",", options_text(spec.options, ","));
  tier.description = describe_folder(tier.base->facts);
  return tier;
}

// Looks through some usual folders and returns the first that is writable and has room for `bytes`. If
// `memory` is true, the folder must be in memory, otherwise on a disk. Absent if there is none.
std::optional<fs::path> find_folder(bool memory, const fs::path& out, uint64_t bytes) {
  std::vector<fs::path> candidates{out, "/dev/shm", "/var/tmp", "/tmp"};
  for (const char* variable : {"TMPDIR", "HOME", "XDG_RUNTIME_DIR"})
    if (const char* value = std::getenv(variable); value != nullptr && *value == '/')
      candidates.emplace_back(value);
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (!fs::is_directory(candidate, ignored) || ::access(candidate.c_str(), W_OK) != 0) continue;
    const TierFacts facts = inspect_path(candidate);
    if (facts.memory == memory && free_bytes(candidate) >= bytes) return candidate;
  }
  return std::nullopt;
}

// A path as the text of a tier.
std::string posix_tier(const fs::path& path) {
  std::string text = "posix:";
  for (const char c : path.string()) text += c == ',' ? std::string("%2C") : std::string(1, c);
  return text;
}

// Whether this machine is a virtual one; absent if /proc/cpuinfo does not tell.
std::optional<bool> is_virtual_machine() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line))
    if (line.starts_with("flags")) return line.find(" hypervisor") != std::string::npos;
  return std::nullopt;
}

class Demo {
 public:
  explicit Demo(const CommandContext& context)
      : context_(context), plan_(context), start_(std::chrono::steady_clock::now()) {}
  ~Demo() {
    if (context_.options.flag("keep-data"))
      for (const DemoTier& tier : tiers_) tier.folder->keep();
  }
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  Result<int> run() {
    PENSTOCK_TRY(prepare());
    PENSTOCK_TRY(choose_tiers());
    plan_time();
    PENSTOCK_TRY(plan_.settle("--quick"));
    PENSTOCK_TRY(measure());
    PENSTOCK_TRY(step("report", "The report", {"report", records().string(), "--output", report().string()}));
    plan_.end();
    report_end();
    return exit_code_;
  }

 private:
  fs::path records() const { return out_ / "records"; }
  fs::path report() const { return out_ / "report.html"; }
  bool quick() const { return context_.options.flag("quick"); }

  void print(std::string_view text) const {
    std::FILE* stream = context_.output.json ? stderr : stdout;
    print_text(text, stream);
    std::fflush(stream);
  }

  Result<void> prepare() {
    PENSTOCK_ASSIGN(program_, this_program());
    out_ = fs::absolute(context_.options.text("out")).lexically_normal();
    std::error_code failed;
    const fs::file_status status = fs::status(out_, failed);
    if ((fs::exists(status) && !fs::is_directory(status)) || failed == std::errc::not_a_directory)
      return make_error(Errc::invalid_argument, "'{}' is a file or below one; --out needs a folder",
                        out_.string());
    const bool is_old_demo = fs::exists(out_ / kCommandLog, failed);
    if (fs::exists(out_, failed) && !fs::is_empty(out_, failed) && !is_old_demo) {
      return make_error(Errc::already_exists, "'{}' holds something else: name an empty folder with --out",
                        out_.string());
    }
    if (is_old_demo) {
      print(fmt::format("replacing the demo that was in {}\n", out_.string()));
      fs::remove_all(records(), failed);
      fs::remove_all(out_ / "data", failed);  // of an earlier version
      fs::remove(report(), failed);
    }
    fs::create_directories(records(), failed);
    if (failed) return errno_error(failed.value(), "cannot make the folder", records().string());
    log_.open(out_ / kCommandLog, std::ios::trunc);
    if (!log_) return errno_error(errno, "cannot write", (out_ / kCommandLog).string());
    log_ << "# What the demo ran, one command a line.\n";
    return success();
  }

  Budget budget() const {
    const unsigned cpus = usable_cpus();
    Budget plan = quick() ? Budget{400, "1,2,4", "200ms", "1", "20", "6", 0.2}
                          : Budget{2000, "1,2,4,8", "500ms", "3", "100", "10", 0.3};
    if (cpus > 4) plan.threads = fmt::format("1..{}*2", 2 * cpus);
    if (context_.options.given("samples")) plan.samples = uint64_t(context_.options.integer("samples"));
    return plan;
  }

  Result<void> choose_tiers() {
    const uint64_t bytes = budget().samples * 160'000 * 5 / 4;
    const std::optional<fs::path> disk = find_folder(false, out_, bytes);
    const std::optional<fs::path> memory = find_folder(true, out_, bytes);
    if (!disk && !memory) {
      return make_error(Errc::no_space, "found no folder with {} to spare: name one with --out or --tier",
                        format_size(bytes));
    }
    const auto add_tier = [&](std::string_view name, const fs::path& folder) -> Result<void> {
      PENSTOCK_ASSIGN(DemoTier tier, demo_tier(name, posix_tier(folder), kNoNamedTiers));
      tiers_.push_back(std::move(tier));
      return success();
    };
    if (disk) PENSTOCK_TRY(add_tier("disk", *disk));
    if (memory) PENSTOCK_TRY(add_tier("memory", *memory));
    for (const std::string& text : context_.options.texts("tier")) {
      PENSTOCK_ASSIGN(DemoTier tier, demo_tier("", text, context_.named_tiers));
      tiers_.push_back(std::move(tier));
    }
    print("penstock demo: tiers of this machine\n");
    for (const DemoTier& tier : tiers_)
      print(fmt::format("  {:<8} {}  ({})\n", tier.name, tier.description, tier.tier));
    if (!disk) print("  no disk with room was found: only memory is measured (name one with --tier)\n");
    if (!memory) print("  no memory-backed file system with room was found\n");
    return success();
  }

  Result<void> measure() {
    const Budget plan = budget();
    const DemoTier& first_tier = tiers_.front();
    const std::string seed = fmt::format("{}", context_.options.integer("seed"));
    PENSTOCK_TRY(step("data set", "A data set like ImageNet's",
                      {"generate", "imagenet", "--out", first_tier.tier, "--samples",
                       fmt::format("{}", plan.samples), "--seed", seed}));
    PENSTOCK_TRY(step("data set", "What it is", {"describe", first_tier.tier}));
    for (size_t i = 1; i < tiers_.size(); ++i)
      PENSTOCK_TRY(step("copies", fmt::format("A verified copy on {}", tiers_[i].name),
                        {"copy", first_tier.tier, "--to", tiers_[i].tier}));

    const std::vector<std::string> read_arguments{
        "read",        first_tier.tier, "--threads",  plan.threads, "--min-time",
        plan.min_time, "--repeat",      plan.repeats, "--seed",     seed};
    // The tiers after the first two are those of the user; the second may be memory, which is never cold.
    const auto read_with = [&](std::string_view cache, size_t first_other_tier) {
      std::vector<std::string> arguments = read_arguments;
      arguments.insert(arguments.end(), {"--cache", std::string(cache)});
      for (size_t i = first_other_tier; i < tiers_.size(); ++i)
        arguments.insert(arguments.end(), {"--tier", tiers_[i].tier});
      return arguments;
    };
    PENSTOCK_TRY(step("cold reads", "Reading it cold: what the storage delivers", read_with("cold", 2)));
    PENSTOCK_TRY(
        step("warm reads", "Reading it from the page cache: what the client can do", read_with("warm", 1)));

    return train(plan, first_tier, seed);
  }

  // Trains without an accelerator, to measure how long the input of a step takes. Then trains with an
  // emulated accelerator, without and with prefetching. Its steps take a little longer than the input: so
  // with prefetching the whole input can be read during the steps, and the demo shows the effect.
  Result<void> train(const Budget& plan, const DemoTier& first_tier, const std::string& seed) {
    const auto train_arguments = [&](std::string_view prefetch, const std::string& steps,
                                     const std::string& accelerator) {
      return std::vector<std::string>{"train",         "alexnet",
                                      "--data",        first_tier.tier,
                                      "--steps",       steps,
                                      "--prefetch",    std::string(prefetch),
                                      "--threads",     fmt::format("{}", std::max(2U, usable_cpus())),
                                      "--accelerator", accelerator,
                                      "--seed",        seed};
    };
    if (plan_.left_out("trainings") > 0) return success();
    PENSTOCK_TRY(step("trainings", "Training without an accelerator: how long the input of a step takes",
                      train_arguments("4", plan.calibration_steps, "none")));
    PENSTOCK_ASSIGN(const double input_s, seconds_a_step());
    const auto step_ms = uint64_t(std::clamp(input_s * 1.3, 0.02, plan.longest_step_s) * 100 + 1) * 10;
    const std::string accelerator = fmt::format("emulated:step={}ms", step_ms);
    for (const std::string_view prefetch : {"0", "4"})
      PENSTOCK_TRY(step("trainings", fmt::format("Training, prefetch {}", prefetch),
                        train_arguments(prefetch, plan.steps, accelerator)));
    return success();
  }

  Result<double> seconds_a_step() const {
    const fs::path folders[] = {records()};
    PENSTOCK_ASSIGN(const RecordSet stored, read_records(folders));
    for (auto found = stored.records.rbegin(); found != stored.records.rend(); ++found) {
      const auto& metrics = found->record.metrics;
      if (found->record.command != "train" || !metrics.contains("wall_s") || !metrics.contains("steps"))
        continue;
      return metrics.at("wall_s").value() / std::max(1.0, metrics.at("steps").value());
    }
    return make_error(Errc::internal, "the training run left no record");
  }

  // Runs one penstock command as a program of its own, and logs its command line, unless the plan leaves it
  // out. If the command measures, its records go into the demo's folder.
  Result<void> step(std::string_view part, std::string_view title, std::vector<std::string> words) {
    PENSTOCK_TRY(check_interrupt());
    if (!plan_.begin(part, title)) return success();
    const std::string& command = words.front();
    const bool measures = command == "generate" || command == "read" || command == "train";
    if (measures) words.insert(words.end(), {"--results", records().string()});
    const std::string line = "penstock " + shell_line(words);
    print(fmt::format("\n== {}\n$ {}\n", title, line));
    log_ << line << '\n';
    log_.flush();
    words.insert(words.begin(), program_.string());
    words.insert(words.end(), {"--progress", context_.options.text("progress"), "--no-config"});
    PENSTOCK_ASSIGN(const int code, run_program(words, context_.output.json));
    PENSTOCK_TRY(check_interrupt());
    // Exit code 1 of `read` means that the data could not be proven cold in some cell. That is a result for
    // the user, so the demo continues.
    if (code == 1 && command == "read") {
      exit_code_ = 1;
      return success();
    }
    if (code != 0)
      return make_error(code == 77 ? Errc::unsupported : Errc::io,
                        fmt::format("'{}' ended with exit code {}", line, code));
    return success();
  }

  // One sentence with the result that matters most: how many accelerators the first tier can feed when
  // nothing is cached.
  std::string result_sentence() const {
    constexpr double kImagesPerS = 200;  // of one accelerator, as in the report
    const fs::path folders[] = {records()};
    const Result<RecordSet> stored = read_records(folders);
    const DemoTier& tier = tiers_.front();
    const Metric* best = nullptr;
    const Record* unusable = nullptr;
    if (stored.ok())
      for (const StoredRecord& one : stored->records) {
        const Record& record = one.record;
        if (record.command != "read" || tier_name(record) != tier.name ||
            requested_cache_state(record) != "cold")
          continue;
        const Metric* const rate = find_metric(record, "samples_per_s");
        if (!is_usable(record) || rate == nullptr)
          unusable = &record;
        else if (best == nullptr || rate->value() > best->value())
          best = rate;
      }
    if (best == nullptr)
      return fmt::format("How fast {} ({}) is without cache could not be measured here{}.", tier.name,
                         tier.description,
                         unusable == nullptr || unusable->reason.empty() ? "" : ": " + unusable->reason);
    const double least = *std::min_element(best->samples.begin(), best->samples.end());
    return fmt::format(
        "Without cache, {} ({}) delivers {} images/s: enough for {:.0f} accelerators that each take {:.0f} "
        "images/s (calculated).",
        tier.name, tier.description, format_number(best->value()), std::floor(least / kImagesPerS),
        kImagesPerS);
  }

  void report_end() {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    size_t files = 0;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(records(), failed))
      files += entry.is_regular_file() ? 1U : 0U;
    const bool keeps_data = context_.options.flag("keep-data");
    if (context_.output.json) {
      const Json line{{"kind", "demo"},        {"report", report().string()}, {"records", records().string()},
                      {"record_files", files}, {"wall_s", seconds},           {"data_kept", keeps_data},
                      {"plan", plan_.json()}};
      fmt::print("{}\n", line.dump());
      return;
    }
    const size_t cpus = usable_cpus();
    print(fmt::format("\n== Done in {:.0f} s\nReport:   {}\nRecords:  {} ({})\nCommands: {}\n", seconds,
                      report().string(), records().string(), count_of(files, "file"),
                      (out_ / kCommandLog).string()));
    print(keeps_data ? "Data:     kept:" : "Data:     removed:");
    for (const DemoTier& tier : tiers_) print(" " + tier.tier.substr(tier.tier.find('=') + 1));
    print("\n");
    if (cpus <= 4 || is_virtual_machine().value_or(true)) {
      print(fmt::format(
          "\nLimits of a machine with {} {}processor{}: reading, decoding and the emulated accelerator share "
          "them. So\n"
          "more threads hide waiting, but do not decode faster, and a fast device may wait for the client.\n"
          "{}. Publish figures from longer runs (--min-time 30s) on the machine that matters.\n",
          cpus, is_virtual_machine().value_or(false) ? "virtual " : "", cpus == 1 ? "" : "s",
          is_virtual_machine().value_or(true)
              ? "\"Cold\" is verified inside this machine only, because its host may cache the disk"
              : "A run this short does not show bursts and other users"));
    }
    print(fmt::format("\nIn one sentence: {}\n", result_sentence()));
  }

  // How long the demo takes. The commands themselves print better plans, but only when they start.
  void plan_time() {
    const Budget budget_ = budget();
    const auto cpus = double(usable_cpus());
    const auto samples = double(budget_.samples);
    const auto tiers = double(tiers_.size());
    const double min_time_s = std::chrono::duration<double>(parse_duration(budget_.min_time).value()).count();
    const auto rows = double(parse_list(budget_.threads).value().size());
    const double repeats = std::stod(budget_.repeats);
    constexpr TimeRange kMadeSample_s{0.0004, 0.003};     // of one processor
    constexpr TimeRange kCopiedSample_s{0.00003, 0.001};  // with its check
    constexpr TimeRange kDecodedSample_s{0.0009, 0.002};  // of one processor
    constexpr TimeRange kProgram_s{0.03, 0.3};            // to start and to end a program
    constexpr double kBatch = 128;
    // A repeat and its baseline, and the ceiling of the row.
    const TimeRange row =
        (2 * repeats + 2) * TimeRange{0.95 * min_time_s, 1.2 * min_time_s} + TimeRange{0, 0.8};
    const TimeRange input = kBatch / cpus * kDecodedSample_s;
    const auto step_s = [&](double input_s) {
      return std::clamp(1.3 * input_s, 0.02, budget_.longest_step_s);
    };
    const auto trainings_s = [&](double input_s) {
      const double steps = std::stod(budget_.steps);
      const double alone_s = 2 * std::min(20.0, steps * input_s);
      return std::stod(budget_.calibration_steps) * input_s + steps * (step_s(input_s) + input_s) +
             steps * std::max(step_s(input_s), input_s) + alone_s;
    };
    const auto add = [&](const char* name, uint64_t asked, const TimeRange& all, uint64_t least) {
      plan_.add({.name = name,
                 .asked = asked,
                 .each = kProgram_s + 1 / double(std::max<uint64_t>(1, asked)) * all,
                 .least = least,
                 .group = asked});
    };
    add("data set", 2, samples / cpus * kMadeSample_s, 2);
    add("copies", tiers_.size() - 1, (tiers - 1) * samples * kCopiedSample_s, tiers_.size() - 1);
    add("cold reads", 1, std::max(1.0, tiers - 1) * rows * TimeRange{row.low_s, 1.3 * row.high_s}, 1);
    add("report", 1, {0.1, 1}, 1);
    add("trainings", 3, {trainings_s(input.low_s), trainings_s(input.high_s)}, 0);
    add("warm reads", 1, tiers * rows * row, 0);
  }

  const CommandContext& context_;
  TimePlan plan_;
  const std::chrono::steady_clock::time_point start_;
  fs::path program_;
  fs::path out_;
  std::ofstream log_;
  std::vector<DemoTier> tiers_;
  int exit_code_ = 0;
};

Result<int> run_demo(const CommandContext& context) {
  return Demo(context).run();
}

}  // namespace

extern const CommandInfo command_demo;
const CommandInfo command_demo{
    .name = "demo",
    .summary = "generate data, read it, train on it, and write a report, all on this machine",
    .options = kDemoOptions,
    .run = run_demo,
    .synopsis = "penstock demo [--out DIR] [--quick] [--tier TIER]... [options]",
    .examples =
        {"penstock demo                          # about 2 minutes; ends in penstock-demo/report.html",
         "penstock demo --quick --tier nvme=posix:/mnt/nvme   # about 20 s, with one more tier"},
};

}  // namespace penstock
