// penstock checkpoint bench: saving straight to the slow tier, and through the fast one, by turns.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/command_output.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/random.hpp"
#include "io_backends/base/units.hpp"
#include "miniapps/checkpoint_verbs/saving_run.hpp"
#include "miniapps/checkpoint_verbs/verbs.hpp"
#include "miniapps/saving_record.hpp"
#include "results/statistics.hpp"
#include "results/table.hpp"
#include "results/trial.hpp"

namespace penstock {
namespace {

struct Setup {
  std::vector<Tier> tiers;  // the slow one, and the fast one where there is one
  std::vector<SavingArm> arms;
  SavingSchedule schedule;
  CheckpointPolicy policy;
  Payload payload;
  std::uint64_t repeat = 1;
  double mtbf_s = 0;

  const Tier& slow() const { return tiers.front(); }
  const Tier* fast() const { return tiers.size() > 1 ? &tiers[1] : nullptr; }
};

Result<std::vector<SavingArm>> arms_of(const std::string& words, bool fast) {
  std::vector<SavingArm> arms;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    at = comma + 1;
    std::optional<SavingArm> found;
    for (const SavingArm arm : {SavingArm::direct, SavingArm::burst_buffer, SavingArm::snapshot})
      if (arm_name(arm) == word) found = arm;
    if (!found || std::find(arms.begin(), arms.end(), *found) != arms.end())
      return make_error(
          Errc::invalid_argument,
          fmt::format("--arms: '{}': say direct, burst-buffer, snapshot, each at most once", word));
    if (*found == SavingArm::burst_buffer && !fast)
      return make_error(Errc::invalid_argument, "--arms burst-buffer needs one: --burst-buffer TIER");
    arms.push_back(*found);
  }
  return arms;
}

Result<Setup> resolve(const CommandContext& context, StoreNouns nouns) {
  const Options& options = context.options;
  if (nouns.size() != 1)
    return make_error(Errc::invalid_argument,
                      "bench takes one STORE, the slow one; --burst-buffer names the fast one");
  if (options.given("run"))
    return make_error(Errc::invalid_argument, "'bench' takes no --run: it names runs of its own");
  Setup setup;
  std::vector<std::string> places{nouns[0]};
  if (options.given("burst-buffer")) places.push_back(options.text("burst-buffer"));
  PENSTOCK_ASSIGN(setup.tiers, open_tiers(places));
  const bool fast = setup.tiers.size() > 1;
  const std::string usual = fast ? "direct,burst-buffer" : "direct";
  PENSTOCK_ASSIGN(setup.arms, arms_of(options.given("arms") ? options.text("arms") : usual, fast));
  PENSTOCK_ASSIGN(setup.payload,
                  find_payload(options.given("payload") ? options.text("payload") : "alexnet-adam"));
  setup.schedule = {.steps = static_cast<std::uint64_t>(options.integer("steps")),
                    .every = static_cast<std::uint64_t>(options.integer("every")),
                    .step = options.duration("step-time"),
                    .burn = options.real("burn")};
  if (setup.schedule.every > setup.schedule.steps)
    return make_error(Errc::invalid_argument,
                      fmt::format("--every {} is more than --steps {}: nothing would be saved",
                                  setup.schedule.every, setup.schedule.steps));
  setup.repeat = static_cast<std::uint64_t>(options.integer("repeat"));
  setup.mtbf_s = std::chrono::duration<double>(options.duration("mtbf")).count();
  setup.policy.keep = options.given("keep") ? static_cast<std::uint64_t>(options.integer("keep")) : 5;
  setup.policy.keep_fast =
      options.given("keep-fast") ? static_cast<std::uint64_t>(options.integer("keep-fast")) : 1;
  setup.policy.on_full = on_full_of(options.text("on-full"));
  setup.policy.block_for = options.duration("block-for");
  setup.policy.headroom = options.size("headroom");
  setup.policy.read_back = options.flag("read-back");
  return setup;
}

struct Ceilings {
  double slow = 0;
  std::optional<double> fast;
};

// What a tier of memory holds is gone with the machine, whatever was synced.
bool forgets(const Tier& tier) {
  return tier.facts.memory || tier.backend->caps().volatile_memory;
}

class Bench {
 public:
  Bench(const CommandContext& context, const Setup& setup, Run& run, TrainedState& state)
      : context_(context),
        setup_(setup),
        run_(run),
        state_(state),
        order_(context.seed, "checkpoint.bench") {}

  Result<void> measure() {
    const std::uint64_t turns = setup_.repeat * setup_.arms.size();
    Progress progress(context_.output.progress && context_.communicator.root(), "checkpoint bench",
                      turns * setup_.schedule.steps, "steps");
    for (std::uint64_t pair = 0; pair < setup_.repeat; ++pair) {
      PENSTOCK_ASSIGN(const Ceilings ceilings, look_at_ceilings());
      std::vector<SavingArm> arms = setup_.arms;
      for (std::size_t left = arms.size(); left > 1; --left)
        std::swap(arms[left - 1], arms[order_.below(pair * arms.size() + left, left)]);
      for (const SavingArm arm : arms) PENSTOCK_TRY(one(arm, pair, ceilings, progress));
    }
    return success();
  }

 private:
  // The better of two: a device has its moments.
  Result<double> look_at_ceiling(const Tier& tier) {
    PENSTOCK_ASSIGN(const double first, write_ceiling(tier, state_, context_.communicator));
    PENSTOCK_ASSIGN(const double second, write_ceiling(tier, state_, context_.communicator));
    return std::max(first, second);
  }

  Result<Ceilings> look_at_ceilings() {
    Ceilings ceilings;
    PENSTOCK_ASSIGN(ceilings.slow, look_at_ceiling(setup_.slow()));
    if (setup_.fast() == nullptr) return ceilings;
    PENSTOCK_ASSIGN(ceilings.fast, look_at_ceiling(*setup_.fast()));
    return ceilings;
  }

  Result<void> one(SavingArm arm, std::uint64_t pair, const Ceilings& ceilings, Progress& progress) {
    Trial trial = run_.trial();
    trial.parameter("arm", std::string(arm_name(arm)));
    trial.parameter("payload", setup_.payload.name);
    trial.parameter("payload_bytes", setup_.payload.bytes);
    trial.parameter("keep", setup_.policy.keep);
    trial.tier("checkpoint", setup_.slow());
    const bool fast = arm != SavingArm::direct && setup_.fast() != nullptr;
    if (fast) trial.tier("burst_buffer", *setup_.fast());
    trial.pair("checkpoint", pair, arm_name(arm));
    CheckpointPolicy policy = setup_.policy;
    policy.run = fmt::format("bench-{}-{:016x}", arm_name(arm), mix64(context_.seed + pair));
    const Result<SavingRun> done =
        run_saving(arm, policy, setup_.schedule, setup_.slow(), fast ? setup_.fast() : nullptr,
                   setup_.payload, state_, context_.communicator, [&] { progress.advance(1); });
    if (done.ok())
      record(*done, fast, arm == SavingArm::snapshot, ceilings, trial);
    else
      failed(arm, done.error(), trial);
    run_.keep(std::move(trial));
    if (!done.ok() && done.error().code == Errc::interrupted) return done.error();
    return success();
  }

  static void failed(SavingArm arm, const Error& error, Trial& trial) {
    trial.fail(error);
    if (error.code != Errc::interrupted) warn(fmt::format("{}: {}", arm_name(arm), error.message()));
  }

  void record(const SavingRun& done, bool fast, bool snapshot, const Ceilings& ceilings, Trial& trial) const {
    trial.value("ceiling_bytes_per_s.slow", "B/s", Better::higher, ceilings.slow);
    if (fast) trial.value("ceiling_bytes_per_s.fast", "B/s", Better::higher, *ceilings.fast);
    trial.value("wall_s", "s", Better::lower, done.wall_s);
    trial.value("finalize_s", "s", Better::lower, done.finalize_s);
    for (const Stretch& step : done.steps)
      trial.sample("step_s", "s", Better::neither, "step", step.end_s - step.begin_s);
    const double payload = static_cast<double>(setup_.payload.bytes) *
                           static_cast<double>(done.counts.saves - done.counts.skips);
    if (payload > 0 && context_.communicator.size() == 1)
      trial.value("write_amplification", "1", Better::lower,
                  static_cast<double>(done.slow.written + done.fast.written) / payload);
    trial.series("slow_bytes_written", {.interval_s = done.interval_s, .values = done.slow_bytes});
    if (fast) trial.series("fast_bytes_written", {.interval_s = done.interval_s, .values = done.fast_bytes});
    trial.series("steps_ended", {.interval_s = done.interval_s, .values = steps_ended(done)});
    record_saving({.checkpoints = done.checkpoints,
                   .counts = done.counts,
                   .steps = done.steps,
                   .wall_s = done.wall_s,
                   .fast_tier = fast,
                   .fast_is_volatile = fast && forgets(*setup_.fast()),
                   .snapshot = snapshot,
                   .mtbf_s = setup_.mtbf_s,
                   .fast_ceiling = ceilings.fast,
                   .slow_ceiling = ceilings.slow},
                  trial);
    if (!snapshot) judge_ceilings(done, ceilings, fast, trial);
  }

  // What goes faster than the best that was seen says that it was not the best.
  static void judge_ceilings(const SavingRun& done, const Ceilings& ceilings, bool fast, Trial& trial) {
    constexpr double kTolerance = 1.02;
    for (const CheckpointTimes& one : done.checkpoints) {
      const auto bytes = static_cast<double>(one.bytes);
      if (one.skipped) continue;
      const double ceiling = fast ? *ceilings.fast : ceilings.slow;
      const bool blocked =
          one.block_s > 0 && (!fast || one.fast_s) && bytes / one.block_s > kTolerance * ceiling;
      const bool drained =
          one.drain_s && *one.drain_s > 0 && bytes / *one.drain_s > kTolerance * ceilings.slow;
      if (!blocked && !drained) continue;
      trial.verdict(
          Verdict::ceiling_invalid,
          fmt::format(
              "the checkpoint of step {} was {} faster than the best that was measured of the {} tier",
              one.id.step, blocked ? "saved" : "drained", blocked && fast ? "fast" : "slow"));
      return;
    }
  }

  static std::vector<double> steps_ended(const SavingRun& done) {
    std::vector<double> ended(done.slow_bytes.size());
    for (const Stretch& step : done.steps) {
      const auto at = static_cast<std::size_t>(step.end_s / done.interval_s);
      if (at < ended.size()) ended[at] += 1;
    }
    return ended;
  }

  const CommandContext& context_;
  const Setup& setup_;
  Run& run_;
  TrainedState& state_;
  const RandomStream order_;
};

std::optional<double> over_runs(std::span<const Record> records, std::string_view arm,
                                const std::string& metric, double (*of)(std::span<const double>)) {
  std::vector<double> all;
  for (const Record& record : records) {
    const auto at = record.metrics.find(metric);
    if (record.parameters.value("arm", "") != arm || at == record.metrics.end()) continue;
    all.insert(all.end(), at->second.samples.begin(), at->second.samples.end());
  }
  if (all.empty()) return std::nullopt;
  return of(all);
}

double greatest(std::span<const double> values) {
  return *std::max_element(values.begin(), values.end());
}
double middle(std::span<const double> values) {
  return median(values);
}

template <class Format>
std::string cell(const std::optional<double>& value, Format format) {
  return value ? format(*value) : std::string("-");
}

std::string tables(const Setup& setup, std::span<const Record> records, const Output& output) {
  Table table({{"saved", Align::left},
               {"block"},
               {"longest"},
               {"to fast"},
               {"to durable"},
               {fmt::format("drain {}", rate_unit(output))},
               {"of ceiling"},
               {"overlap"},
               {"steps"},
               {"skips"}});
  const auto rate = [&](double value) { return format_rate(value, output); };
  for (const SavingArm arm : setup.arms) {
    const std::string_view name = arm_name(arm);
    const auto of = [&](const char* metric) { return over_runs(records, name, metric, middle); };
    table.row({std::string(name), cell(of("checkpoint_block_s"), format_seconds),
               cell(over_runs(records, name, "checkpoint_block_s", greatest), format_seconds),
               cell(of("checkpoint_fast_s"), format_seconds),
               cell(of("checkpoint_durable_s"), format_seconds), cell(of("drain_bytes_per_s"), rate),
               cell(of("drain_of_ceiling"), format_percent), cell(of("drain_overlap"), format_percent),
               cell(of("step_inflation"), format_ratio), cell(of("checkpoint_skips"), format_number)});
  }
  Table lost({{"lost on average when", Align::left},
              {"processes end"},
              {"the node is lost"},
              {"power fails"},
              {"every (Young)"},
              {"(Daly)"}});
  for (const SavingArm arm : setup.arms) {
    const std::string_view name = arm_name(arm);
    const auto of = [&](const char* metric) {
      return cell(over_runs(records, name, metric, middle), format_seconds);
    };
    lost.row({std::string(name), of("lost_work_s.process"), of("lost_work_s.node"), of("lost_work_s.power"),
              of("checkpoint_interval_s.young"), of("checkpoint_interval_s.daly")});
  }
  return table.text() + "\n" + lost.text();
}

std::string heading(const Setup& setup, const Output& output, int ranks) {
  return fmt::format("{} ({}{}), every {} of {} steps of {}; {}{}\n\n", setup.payload.name,
                     format_bytes(static_cast<double>(setup.payload.bytes), output),
                     ranks > 1 ? fmt::format(" over {} ranks", ranks) : "", setup.schedule.every,
                     setup.schedule.steps,
                     format_seconds(std::chrono::duration<double>(setup.schedule.step).count()),
                     printable(setup.slow().name),
                     setup.fast() == nullptr ? ""
                                             : fmt::format(" behind {}{}", printable(setup.fast()->name),
                                                           forgets(*setup.fast()) ? " (volatile)" : ""));
}

// In words: what the fast tier saved the training, and what it could have.
std::string findings(const Setup& setup, std::span<const Record> records, const Output& output) {
  const auto direct = over_runs(records, "direct", "checkpoint_block_s", middle);
  const auto burst = over_runs(records, "burst-buffer", "checkpoint_block_s", middle);
  const auto slow = over_runs(records, "burst-buffer", "ceiling_bytes_per_s.slow", middle);
  const auto fast = over_runs(records, "burst-buffer", "ceiling_bytes_per_s.fast", middle);
  if (!direct || !burst || !slow || !fast || *burst <= 0) return "";
  const char* const forgetful = forgets(*setup.fast()) ? " (volatile)" : "";
  return fmt::format(
      "\nThrough {}{} a save holds the training {} as long as straight to {}; what either tier takes at best "
      "({} and "
      "{} {}) would allow {}.\n",
      printable(setup.fast()->name), forgetful, format_ratio(*burst / *direct), printable(setup.slow().name),
      format_rate(*fast, output), format_rate(*slow, output), rate_unit(output), format_ratio(*slow / *fast));
}

}  // namespace

Result<int> checkpoint_bench(const CommandContext& context, StoreNouns nouns) {
  PENSTOCK_ASSIGN(const Setup setup, resolve(context, nouns));
  Communicator& ranks = context.communicator;
  const auto rank = static_cast<std::uint64_t>(ranks.rank());
  const SignalsForAll signals(ranks);
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  for (const Tier& tier : setup.tiers) run.measured_tier(tier);
  Result<std::unique_ptr<TrainedState>> state = TrainedState::make(
      setup.payload.shard(rank, static_cast<std::uint64_t>(ranks.size())), rank, context.seed);
  PENSTOCK_TRY(agree(ranks, outcome_of(state)));
  const Result<void> measured = Bench(context, setup, run, **state).measure();
  PENSTOCK_TRY(run.look_at_ranks());
  if (!context.output.json && ranks.root())
    print_text(heading(setup, context.output, ranks.size()) + tables(setup, run.records(), context.output) +
               findings(setup, run.records(), context.output));
  PENSTOCK_TRY(run.finish());
  PENSTOCK_TRY(measured);
  return run.exit_code();
}

}  // namespace penstock
