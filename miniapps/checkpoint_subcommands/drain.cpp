// penstock checkpoint drain: makes durable what a training left on the fast tier, and frees its space.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/copy_checkpoint.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/quarantine.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

class Drain {
 public:
  Drain(CheckpointStore& fast, CheckpointStore& slow, std::string run, const CommandContext& context)
      : fast_(fast), slow_(slow), run_(std::move(run)), context_(context) {}

  // Drains all checkpoints of the run, and removes fast copies that are durable. Call it with the run's locks
  // of both stores held. The results are in the public members.
  Result<void> drain_all();

  uint64_t copied = 0, bytes = 0, evicted = 0, quarantined = 0, not_durable = 0;
  bool timed_out = false;
  std::vector<std::string> problems;
  double seconds = 0;

 private:
  // Drains one checkpoint. With `read_existing`, a slow copy that already exists is read and checked before
  // the checkpoint counts as durable.
  Result<void> drain(const FoundCheckpoint& found, bool read_existing, Progress& progress);
  // Returns an error if the time of --timeout is over or a signal came. Called after each piece that is
  // written, or read from an existing slow copy.
  Result<void> check_may_continue() const;
  // Records that a checkpoint is not durable and stays on the fast tier.
  Result<void> record_not_durable(std::string problem);
  void record_durable(const CheckpointManifest& copy, bool newly_durable);
  uint64_t keep_fast() const;
  Result<void> evict(const std::vector<FoundCheckpoint>& all);

  CheckpointStore& fast_;
  CheckpointStore& slow_;
  const std::string run_;
  const CommandContext& context_;
  const Clock::time_point start_ = Clock::now();
  std::vector<CheckpointId> durable_;  // durable checkpoints that are also on the fast tier
  CopyMemory memory_;
};

const ListedCheckpoint* copy_on(const FoundCheckpoint& found, const CheckpointStore& store) {
  for (const ListedCheckpoint& copy : found.copies)
    if (copy.store == &store) return &copy;
  return nullptr;
}

Result<void> Drain::check_may_continue() const {
  PENSTOCK_TRY(check_interrupt());
  if (context_.options.has("timeout") && Clock::now() - start_ >= context_.options.duration("timeout"))
    return make_error(Errc::timed_out, "--timeout is over");
  return success();
}

Result<void> Drain::record_not_durable(std::string problem) {
  problems.push_back(std::move(problem));
  ++not_durable;
  return success();
}

Result<void> Drain::drain(const FoundCheckpoint& found, bool read_existing, Progress& progress) {
  const ListedCheckpoint& source = *copy_on(found, fast_);
  if (!source.manifest.ok()) {
    const Error& why = source.manifest.error();
    PENSTOCK_ASSIGN(const bool moved, quarantine_if_wrong(fast_, run_, found.id, why));
    if (!moved) return record_not_durable(why.message());
    problems.push_back(why.message());
    ++quarantined;
    return success();
  }
  CopyRequest request{
      .read_back = context_.options.flag("read-back"), .read_existing = read_existing, .memory = &memory_};
  bool newly_durable = !found.is_durable();
  request.on_written = [&](uint64_t more) {
    progress.advance(more);
    return check_may_continue();
  };
  for (;;) {
    const Result<CheckpointManifest> copy = copy_checkpoint(fast_, slow_, *source.manifest, request);
    if (copy.ok()) {
      record_durable(*copy, newly_durable);
      return success();
    }
    const FailedDrain failed = look_into_failed_drain(fast_, slow_, *source.manifest, copy.error());
    quarantined += failed.quarantined ? 1U : 0U;
    PENSTOCK_TRY(failed.moved);
    switch (failed.fate) {
      case DrainFate::slow_quarantined:
        problems.push_back(failed.why);
        newly_durable = true;
        continue;
      case DrainFate::fast_wrong:
        problems.push_back(failed.why);
        return success();
      case DrainFate::name_taken:
        return record_not_durable(
            fmt::format("checkpoint {} of '{}' differs between '{}' and '{}': both are left unchanged",
                        short_name(found.id), run_, fast_.tier().name, slow_.tier().name));
      case DrainFate::try_again:
        if (!is_data_error(copy.error().code) && copy.error().code != Errc::already_exists)
          return copy.error();
        return record_not_durable(failed.why);
    }
  }
}

void Drain::record_durable(const CheckpointManifest& copy, bool newly_durable) {
  durable_.push_back(copy.id);
  if (!newly_durable) return;  // it was durable before
  ++copied;
  bytes += copy.bytes();
  slow_.hint_latest(run_, copy.id);
}

uint64_t Drain::keep_fast() const {
  return context_.options.given("keep-fast") ? uint64_t(context_.options.integer("keep-fast")) : 0;
}

Result<void> Drain::evict(const std::vector<FoundCheckpoint>& all) {
  uint64_t to_keep = keep_fast();
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    if (std::find(durable_.begin(), durable_.end(), found->id) == durable_.end()) continue;
    if (to_keep > 0) {
      --to_keep;
      continue;
    }
    PENSTOCK_TRY(fast_.remove(run_, found->id));
    ++evicted;
  }
  return success();
}

Result<void> Drain::drain_all() {
  PENSTOCK_ASSIGN(const std::optional<std::string> recorded_uuid, fast_.recorded_slow_store(run_));
  if (recorded_uuid && *recorded_uuid != slow_.uuid())
    return make_error(
        Errc::invalid_argument,
        "run '{}' drains from '{}' to the store {}, and '{}' is a different store: name that one", run_,
        fast_.tier().name, *recorded_uuid, slow_.tier().name);
  PENSTOCK_TRY(slow_.sweep(run_, "drain"));
  const std::vector<CheckpointStore*> both{&fast_, &slow_};
  PENSTOCK_ASSIGN(std::vector<FoundCheckpoint> all, find_checkpoints(both, run_));
  std::erase_if(all, [&](const FoundCheckpoint& found) { return copy_on(found, fast_) == nullptr; });
  // Whether the slow copy of checkpoint i is read before its fast copy is removed: the bytes of the slow copy
  // may have become wrong since it was written. The newest keep_fast() fast copies are never removed here, so
  // their slow copies need no read. With --read-back all slow copies are read.
  const auto read_existing = [&](size_t i) {
    return context_.options.flag("read-back") || all.size() - i > keep_fast();
  };
  uint64_t bytes_to_read = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].manifest() != nullptr && (!all[i].is_durable() || read_existing(i)))
      bytes_to_read += all[i].manifest()->bytes();
  Progress progress(context_.output.progress, "drain", bytes_to_read, "B");
  Result<void> done = success();
  for (size_t i = 0; i < all.size() && done.ok(); ++i) {
    done = drain(all[i], read_existing(i), progress);
    if (!done.ok()) not_durable += all.size() - i;
  }
  timed_out = !done.ok() && done.error().code == Errc::timed_out;
  PENSTOCK_TRY(evict(all));
  if (!done.ok() && !timed_out) return done.error();
  seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return success();
}

Json to_json(const std::string& run, const Drain& drained) {
  return {{"kind", "drain"},
          {"run", run},
          {"copied", drained.copied},
          {"bytes", drained.bytes},
          {"evicted", drained.evicted},
          {"quarantined", drained.quarantined},
          {"left", drained.not_durable},
          {"problems", drained.problems},
          {"wall_s", drained.seconds},
          {"verdict", drained.timed_out           ? "timed_out"
                      : !drained.problems.empty() ? "failed"
                                                  : "ok"}};
}

void print_drained(const std::string& run, const Drain& drained, const Output& output) {
  for (const std::string& problem : drained.problems) print_text("damaged: " + printable(problem) + "\n");
  std::string text =
      fmt::format("{}: {} ({}) drained to durable storage in {}", run,
                  drained.copied == 1 ? "1 checkpoint" : format_count(drained.copied) + " checkpoints",
                  format_bytes(double(drained.bytes), output), format_seconds(drained.seconds));
  if (drained.copied > 0 && drained.seconds > 0)
    text += fmt::format(", {} {}", format_rate(double(drained.bytes) / drained.seconds, output),
                        rate_unit(output));
  text += fmt::format("; {} evicted from the fast tier", format_count(drained.evicted));
  if (drained.quarantined > 0) text += fmt::format("; {} moved to quarantine", drained.quarantined);
  if (drained.not_durable > 0) text += fmt::format("; {} not durable", format_count(drained.not_durable));
  print_text(text + "\n");
}

// Checks that the command names one fast and one slow store. `stores` has the fast ones first.
Result<void> check_fast_and_slow(const std::vector<CheckpointStore*>& stores) {
  if (stores.size() == 2 && stores[0]->role() != stores[1]->role()) return success();
  std::string roles;
  for (const CheckpointStore* store : stores)
    roles +=
        fmt::format("{}'{}' is {}", roles.empty() ? "" : ", ", store->tier().name, role_name(store->role()));
  return make_error(Errc::invalid_argument, "drain needs one fast and one slow store: {}", roles);
}

Result<int> run_drain(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, false));
  const std::vector<CheckpointStore*> both = stores.existing();
  PENSTOCK_TRY(check_fast_and_slow(both));
  CheckpointStore& fast = *both[0];
  CheckpointStore& slow = *both[1];
  PENSTOCK_ASSIGN(const std::string run, one_run(both, context.options));
  PENSTOCK_ASSIGN(const auto fast_lock, fast.lock_run(run, "drain"));
  PENSTOCK_ASSIGN(const auto slow_lock, slow.lock_run(run, "drain"));
  Drain drained(fast, slow, run, context);
  PENSTOCK_TRY(drained.drain_all());
  if (context.output.json)
    print_json(to_json(run, drained));
  else
    print_drained(run, drained, context.output);
  if (drained.timed_out) {
    report_failed(
        context,
        make_error(Errc::timed_out,
                   "{} of run '{}' did not become durable within {}: to continue, run the same command again",
                   drained.not_durable, run, format_duration(context.options.duration("timeout"))));
    return kNotDurable;
  }
  return drained.problems.empty() ? 0 : 1;
}

constexpr OptionSpec kDrainOptions[] = {
    kOneRunOption,
    kTimeoutOption,
    kReadBackOption,
    keep_fast_option("number of durable checkpoints to keep on the fast tier as well (default 0)"),
};

}  // namespace

extern const CommandInfo checkpoint_drain;
const CommandInfo checkpoint_drain{
    .name = "checkpoint drain",
    .summary = "copy checkpoints that are only on the fast tier to the slow tier",
    .options = kDrainOptions,
    .run = &with_locks<run_drain>,
    .synopsis =
        "penstock checkpoint drain FAST SLOW [--run NAME] [--timeout TIME] [--read-back] [--keep-fast N]",
    .examples = {"penstock checkpoint drain /dev/shm/bb /pfs/ckpt --timeout 10m   # until all checkpoints "
                 "are durable"},
    .arguments = "FAST [SLOW]...",
    .has_placement = true,
};

}  // namespace penstock
