#include "miniapps/train/step_saving.hpp"

#include <utility>

#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

constexpr const char* kDependentFlags[] = {
    "burst-buffer",    "payload",  "keep",  "keep-fast", "run",  "on-full",
    "on-full-timeout", "oversize", "grace", "ack-log",   "mtbf", "resume"};

Result<void> check_dependent_flags(const Options& options) {
  const bool saves_steps = options.given("checkpoint-every");
  if (saves_steps && !options.given("checkpoint-to"))
    return make_error(Errc::invalid_argument, "--checkpoint-every needs --checkpoint-to TIER");
  if (saves_steps) return success();
  for (const char* name : kDependentFlags)
    if (options.given(name))
      return make_error(Errc::invalid_argument, "--" + std::string(name) +
                                                    " goes with --checkpoint-every N and --checkpoint-to "
                                                    "TIER");
  return success();
}

Result<CheckpointPolicy> policy_of(const Options& options) {
  CheckpointPolicy policy;
  if (options.given("run")) policy.run = options.text("run");
  PENSTOCK_TRY(check_run_name(policy.run));
  if (options.given("keep")) policy.keep_on_slow = uint64_t(options.integer("keep"));
  if (options.given("keep-fast")) policy.keep_on_fast = uint64_t(options.integer("keep-fast"));
  if (options.given("on-full-timeout")) policy.block_for = options.duration("on-full-timeout");
  policy.on_full = on_full_of(options.text("on-full"));
  policy.fail_oversize = options.text("oversize") == "fail";
  return policy;
}

// Opens a tier for checkpoints. If the user gives the tier no name, its path becomes its name, as in
// `penstock checkpoint`. Otherwise two tiers on the same mount would have the same name.
Result<Tier> open_checkpoint_tier(const std::string& text, NamedTiers named) {
  PENSTOCK_ASSIGN(TierSpec spec, parse_tier(text, named));
  if (spec.name.empty()) spec.name = spec.path;
  return open_tier(spec);
}

std::string_view on_full_name(OnFull on_full) {
  switch (on_full) {
    case OnFull::block:
      return "block";
    case OnFull::skip:
      return "skip";
    case OnFull::writethrough:
      return "writethrough";
  }
  return "";
}

}  // namespace

PlanStart ResumePoint::start() const {
  return {.batches = manifest.id.step,
          .epoch = manifest.trainer.epoch,
          .used_samples = manifest.trainer.consumed};
}

Result<std::optional<StepSaving>> step_saving(const Options& options, NamedTiers named) {
  PENSTOCK_TRY(check_dependent_flags(options));
  if (!options.given("checkpoint-every")) return std::optional<StepSaving>();
  StepSaving saving;
  saving.every_steps = uint64_t(options.integer("checkpoint-every"));
  PENSTOCK_ASSIGN(saving.policy, policy_of(options));
  PENSTOCK_ASSIGN(saving.payload,
                  find_payload(options.given("payload") ? options.text("payload") : "alexnet-adam"));
  PENSTOCK_ASSIGN(saving.slow, open_checkpoint_tier(options.text("checkpoint-to"), named));
  if (options.given("burst-buffer")) {
    PENSTOCK_ASSIGN(saving.fast, open_checkpoint_tier(options.text("burst-buffer"), named));
    if (saving.fast->name == saving.slow.name)
      return make_error(Errc::invalid_argument, "--burst-buffer and --checkpoint-to have the same name '" +
                                                    saving.slow.name + "': name two different tiers");
  }
  saving.ack_log = options.text("ack-log");
  if (options.given("grace")) saving.grace = options.duration("grace");
  if (options.given("mtbf")) saving.mtbf = options.duration("mtbf");
  PENSTOCK_TRY(check_mtbf(saving.mtbf));
  saving.resume = options.flag("resume");
  return std::optional<StepSaving>(std::move(saving));
}

Result<void> take_checkpoints(const Options& options, TrainRequest& request) {
  PENSTOCK_ASSIGN(request.saving, step_saving(options, request.named_tiers));
  if (request.saving) request.saving->policy.log = request.warn;
  if (!options.given("checkpoint-to")) return success();
  if (!request.saving) {
    if (!request.app->writes_checkpoints)
      return make_error(Errc::invalid_argument,
                        "--checkpoint-to alone has no effect on '" + std::string(request.app->name) +
                            "', which writes no checkpoints after epochs: add --checkpoint-every N");
    PENSTOCK_ASSIGN(request.checkpoint_tier, open_tier(options.text("checkpoint-to"), request.named_tiers));
    return success();
  }
  if (options.given("tier"))
    return make_error(Errc::invalid_argument,
                      "checkpoints need a single training, and each --tier adds one: leave out --tier");
  if (options.text("on-error") == "skip")
    return make_error(Errc::invalid_argument,
                      "with skipped samples, a checkpoint cannot store the position in the epoch: leave out "
                      "--on-error skip");
  return success();
}

void describe_saving(const StepSaving& saving, Trial& trial) {
  const CheckpointPolicy& policy = saving.policy;
  trial.parameter("checkpoint_every", saving.every_steps);
  trial.parameter("payload", saving.payload.name);
  trial.parameter("payload_bytes", saving.payload.bytes);
  trial.parameter("run", policy.run);
  trial.parameter("keep", policy.keep_on_slow);
  trial.parameter("keep_fast", policy.keep_on_fast);
  trial.parameter("on_full", on_full_name(policy.on_full));
  trial.parameter("on_full_timeout_s", std::chrono::duration<double>(policy.block_for).count());
  trial.parameter("oversize", policy.fail_oversize ? "fail" : "writethrough");
  trial.parameter("grace_s", std::chrono::duration<double>(saving.grace).count());
  trial.parameter("mtbf_s", std::chrono::duration<double>(saving.mtbf).count());
  trial.parameter("resume", saving.resume);
  if (!saving.resumed) return;
  trial.parameter("restart", saving.resumed->restart);
  trial.parameter("resumed_step", saving.resumed->manifest.id.step);
  trial.parameter("resumed_from", saving.resumed->tier);
  trial.sample(train_metrics::kRestartChoose, saving.resumed->find_s);
  trial.sample(train_metrics::kRestart, saving.resumed->restore_s);
  trial.sample(train_metrics::kRestartBytes, double(saving.resumed->manifest.bytes()));
}

}  // namespace penstock
