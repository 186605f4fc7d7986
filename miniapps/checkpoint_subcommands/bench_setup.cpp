#include "miniapps/checkpoint_subcommands/bench_setup.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

constexpr std::chrono::hours kLongestStep{24};
constexpr double kMostProcessors = 4096;
constexpr uint64_t kBenchKeeps = 5;  // durable checkpoints that stay if --keep is not given

Result<std::vector<std::string_view>> arms_of(const std::string& arm_list, bool has_fast) {
  std::vector<std::string_view> arms;
  for (size_t at = 0; at <= arm_list.size();) {
    const size_t comma = std::min(arm_list.find(',', at), arm_list.size());
    const std::string word = arm_list.substr(at, comma - at);
    at = comma + 1;
    const auto* const found = std::find(std::begin(kSavingArms), std::end(kSavingArms), word);
    if (found == std::end(kSavingArms) || std::find(arms.begin(), arms.end(), word) != arms.end())
      return make_error(Errc::invalid_argument,
                        "--arms: '{}': use direct, burst-buffer, snapshot, each at most once", word);
    if (*found == kBurstBufferArm && !has_fast)
      return make_error(Errc::invalid_argument, "--arms burst-buffer needs --burst-buffer TIER");
    arms.push_back(*found);
  }
  return arms;
}

}  // namespace

Result<BenchSetup> resolve_bench(const CommandContext& context) {
  const Options& options = context.options;
  if (context.positionals.size() != 1)
    return make_error(Errc::invalid_argument,
                      "bench takes one STORE, the slow one; name the fast one with --burst-buffer");
  BenchSetup setup;
  std::vector<std::string> arguments{context.positionals[0]};
  if (options.given("burst-buffer")) arguments.push_back(options.text("burst-buffer"));
  PENSTOCK_ASSIGN(setup.tiers, open_store_tiers(arguments, context.named_tiers));
  const bool has_fast = setup.tiers.size() > 1;
  const std::string default_arms = has_fast ? "direct,burst-buffer" : "direct";
  PENSTOCK_ASSIGN(setup.arms, arms_of(options.given("arms") ? options.text("arms") : default_arms, has_fast));
  PENSTOCK_ASSIGN(setup.payload,
                  find_payload(options.given("payload") ? options.text("payload") : "alexnet-adam"));
  setup.steps = uint64_t(options.integer("steps"));
  setup.save_every = uint64_t(options.integer("every"));
  setup.step_time = options.duration("step-time");
  if (setup.step_time > kLongestStep)
    return make_error(Errc::invalid_argument, "--step-time {} is too long: use at most {}",
                      format_duration(setup.step_time), format_duration(kLongestStep));
  setup.processors = options.real("burn");
  if (setup.processors > kMostProcessors)
    return make_error(Errc::invalid_argument, "--burn {} is too large: use at most {}",
                      format_number(setup.processors), kMostProcessors);
  if (setup.processors > 0) {
    PENSTOCK_ASSIGN(setup.burner, Burner::make(setup.processors));
  }
  if (setup.save_every > setup.steps)
    return make_error(Errc::invalid_argument,
                      "--every {} is more than --steps {}, so nothing would be saved: lower --every",
                      setup.save_every, setup.steps);
  PENSTOCK_TRY(check_mtbf(options.duration("mtbf")));
  setup.repeat = uint64_t(options.integer("repeat"));
  setup.mtbf_s = std::chrono::duration<double>(options.duration("mtbf")).count();
  setup.policy = policy_of(options);
  if (!options.given("keep")) setup.policy.keep_on_slow = kBenchKeeps;
  return setup;
}

bool is_volatile(const Tier& tier) {
  return tier.facts.memory || tier.backend->caps().volatile_memory;
}

}  // namespace penstock
