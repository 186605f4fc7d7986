// Threads: the main thread of a rank calls run_saving() and write_ceiling(). ByteSeries has its own thread,
// which reads only the byte counters of the tiers.
// Lock: ByteSeries::mutex_ guards ended_. No I/O happens while it is held.
// Ranks: run_saving(), train_and_save(), wait_until_durable() and write_ceiling() are collective. A rank with
// an error still makes the next collective call, because the others wait there.
// Memory: the thread of ByteSeries allocates for its series. If that fails, the process ends.
// Ctrl-C: ends the steps and the wait for the drain. Then the run is removed from both stores, as after an
// error.
// Crash: the run remains in the stores. The next `checkpoint bench` or `checkpoint gc` removes the runs of
// dead benches.
#include "miniapps/checkpoint_subcommands/saving_run.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/drain_progress.hpp"
#include "miniapps/checkpoint/store.hpp"
#include "results/record/time_plan.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFinalizePoll{50};
constexpr std::chrono::seconds kLongRun{60};  // a run this long or longer has intervals of 1 s

double seconds_since(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Counts the bytes that are written to each tier in each interval, on its own thread.
class ByteSeries {
 public:
  // The constructor reads the counters. Call start() before bytes move.
  ByteSeries(const Tier& slow, const Tier* fast, std::chrono::nanoseconds interval)
      : slow_(slow),
        fast_(fast),
        interval_(interval),
        slow_before_(slow.backend->moved_bytes().written),
        fast_before_(fast == nullptr ? 0 : fast->backend->moved_bytes().written) {}
  ~ByteSeries() { end(); }

  Result<void> start() {
    return guarded([&]() -> Result<void> {
      thread_ = std::jthread([this] { count_loop(); });
      return success();
    });
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  // The bytes of each interval. The thread writes them without a lock: read them only after end(), which
  // joins it.
  std::vector<double> slow_bytes;
  std::vector<double> fast_bytes;

 private:
  void count_loop() {
    Clock::time_point next = begin_;
    Clock::time_point before = begin_;
    for (bool ended = false; !ended;) {
      next += interval_;
      {
        std::unique_lock lock(mutex_);
        ended = changed_.wait_until(lock, next, [&] { return ended_; });
      }
      const Clock::time_point now = Clock::now();
      const uint64_t slow_now = slow_.backend->moved_bytes().written;
      spread(slow_bytes, slow_now - std::exchange(slow_before_, slow_now), before, now);
      if (fast_ != nullptr) {
        const uint64_t fast_now = fast_->backend->moved_bytes().written;
        spread(fast_bytes, fast_now - std::exchange(fast_before_, fast_now), before, now);
      }
      before = now;
      next = std::max(next, begin_ + (now - begin_) / interval_ * interval_);
    }
  }
  // Adds `bytes` that were written from `from` to `to` evenly to the intervals of that time. On a busy
  // machine the thread wakes late, and this time spans several intervals. Whole bytes are added, so that no
  // byte is lost by rounding.
  void spread(std::vector<double>& series, uint64_t bytes, Clock::time_point from,
              Clock::time_point to) const {
    const auto first = size_t((from - begin_) / interval_);
    const auto last = size_t(std::max(to - begin_ - std::chrono::nanoseconds(1), from - begin_) / interval_);
    if (series.size() <= last) series.resize(last + 1, 0.0);
    const double length = std::max(1.0, double((to - from).count()));
    uint64_t added = 0;
    for (size_t i = first; i <= last; ++i) {
      const Clock::time_point end = begin_ + interval_ * int64_t(i + 1);
      const uint64_t so_far =
          i == last ? bytes
                    : std::min(bytes, uint64_t(double(bytes) * double((end - from).count()) / length));
      series[i] += double(so_far - added);
      added = so_far;
    }
  }

  const Tier& slow_;
  const Tier* const fast_;
  const std::chrono::nanoseconds interval_;
  const Clock::time_point begin_ = Clock::now();
  uint64_t slow_before_;
  uint64_t fast_before_;
  std::mutex mutex_;  // guards ended_
  std::condition_variable changed_;
  bool ended_ = false;
  std::jthread thread_;  // last: it uses the other members
};

uint64_t sum_of(const std::vector<double>& bytes) {
  return uint64_t(std::accumulate(bytes.begin(), bytes.end(), 0.0));
}

MovedBytes moved_since(const MovedBytes& before, const MovedBytes& now) {
  return {.read = now.read - before.read, .written = now.written - before.written};
}

Result<void> remove_run(const Tier& tier, const std::string& run) {
  PENSTOCK_ASSIGN(const std::unique_ptr<CheckpointStore> store, CheckpointStore::open(tier));
  // remove_bench_run() does nothing if another process holds a lock of the run. Such a process believes that
  // a killed `checkpoint bench` left the run behind, and removes it.
  return outcome_of(remove_bench_run(*store, run));
}

SaveRequest request_of(const PayloadState& state, uint64_t step, const Payload& payload) {
  SaveRequest request{.step = step, .payload = payload.name, .payload_seed = state.seed()};
  request.trainer.step_of_epoch = step;
  request.trainer.seed = state.seed();
  for (size_t i = 0; i < state.files().size(); ++i)
    request.files.push_back({.name = state.files()[i].name, .bytes = state.file(i)});
  return request;
}

// Collective. Waits until all checkpoints are durable, until the drain makes no progress for `patience`, or
// until a signal comes. The error names no command that drains the rest, since run_saving() removes it.
Result<void> wait_until_durable(Checkpointer& saver, DrainProgress progress,
                                std::chrono::nanoseconds patience, Communicator& ranks) {
  for (;;) {
    const Result<void> finalized = saver.finalize(kFinalizePoll);
    if (finalized.ok() || finalized.error().code != Errc::timed_out) return finalized;
    const auto check_progress = [&]() -> Result<void> {
      PENSTOCK_TRY(check_interrupt());
      return progress.stalled_for() < patience ? success() : finalized;
    };
    PENSTOCK_TRY(on_root(ranks, check_progress));
  }
}

// Collective. Runs the steps and the saves. An error of one rank ends the work of all ranks at the next save
// or, if there is none, at the end of all steps.
Result<void> train_and_save(const BenchSetup& setup, Checkpointer& saver, PayloadState& state,
                            Communicator& ranks, Clock::time_point begin, SavingRun& result,
                            const std::function<void()>& tick) {
  Result<void> own_result = success();
  for (uint64_t step = 1; step <= setup.steps; ++step) {
    if (own_result.ok()) {
      const Clock::time_point step_begin = Clock::now();
      own_result = setup.burner == nullptr ? sleep_until(step_begin + setup.step_time)
                                           : setup.burner->work(setup.step_time);
      result.steps.push_back({seconds_since(begin, step_begin), seconds_since(begin, Clock::now())});
    }
    tick();
    if (step % setup.save_every != 0) continue;
    PENSTOCK_TRY(all_ok(ranks, own_result));
    state.advance_to(step);
    PENSTOCK_TRY(outcome_of(saver.save(request_of(state, step, setup.payload))));
  }
  return all_ok(ranks, own_result);
}

}  // namespace

Result<SavingRun> run_saving(std::string_view arm, const std::string& name, const BenchSetup& setup,
                             PayloadState& state, Communicator& ranks, const std::function<void()>& tick) {
  CheckpointPolicy policy = setup.policy;
  policy.run = name;
  policy.by_snapshot = arm == kSnapshotArm;
  const Tier& slow = setup.slow();
  const Tier* const fast = arm == kDirectArm ? nullptr : setup.fast();
  SavingRun run;
  const auto measure = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(const std::unique_ptr<Checkpointer> saver, Checkpointer::open(policy, slow, fast, ranks));
    const MovedBytes slow_before = slow.backend->moved_bytes();
    const MovedBytes fast_before = fast == nullptr ? MovedBytes{} : fast->backend->moved_bytes();
    const bool is_long = std::chrono::duration<double>(setup.step_time) * double(setup.steps) >= kLongRun;
    const std::chrono::nanoseconds interval = std::chrono::milliseconds(is_long ? 1000 : 100);
    ByteSeries series(slow, fast, interval);
    PENSTOCK_TRY(all_ok(ranks, series.start()));
    const double offset_s = saver->now_s();
    const Clock::time_point begin = Clock::now();
    PENSTOCK_TRY(train_and_save(setup, *saver, state, ranks, begin, run, tick));
    const Clock::time_point trained_at = Clock::now();
    PENSTOCK_TRY(wait_until_durable(*saver, {*saver, slow, fast}, policy.block_for, ranks));
    const Clock::time_point drained_at = Clock::now();
    series.end();
    run.interval_s = std::chrono::duration<double>(interval).count();
    run.slow_bytes = std::move(series.slow_bytes);
    run.fast_bytes = std::move(series.fast_bytes);
    run.wall_s = seconds_since(begin, trained_at);
    run.finalize_s = seconds_since(trained_at, drained_at);
    run.slow = moved_since(slow_before, slow.backend->moved_bytes());
    if (fast != nullptr) run.fast = moved_since(fast_before, fast->backend->moved_bytes());
    // What a run wrote is what its series adds up to.
    run.slow.written = sum_of(run.slow_bytes);
    if (fast != nullptr) run.fast.written = sum_of(run.fast_bytes);
    run.counts = saver->counts();
    run.checkpoints = saver->times();
    for (CheckpointTimes& times : run.checkpoints) {
      times.save_begin_s -= offset_s;
      if (times.drain_begin_s) *times.drain_begin_s -= offset_s;
    }
    return success();
  };
  const Result<void> measured = measure();
  Result<void> removed = success();
  if (ranks.root()) {
    removed = remove_run(slow, policy.run);
    if (removed.ok() && fast != nullptr) removed = remove_run(*fast, policy.run);
  }
  PENSTOCK_TRY(all_ok(ranks, measured));
  PENSTOCK_TRY(on_root(ranks, [&] { return removed; }));
  return run;
}

Result<double> write_ceiling(const Tier& tier, const PayloadState& state, Communicator& ranks) {
  Backend& backend = *tier.backend;
  const std::string folder = std::string(kCeilingFolder) + "/";
  const auto write = [&]() -> Result<uint64_t> {
    uint64_t bytes = 0;
    for (size_t i = 0; i < state.files().size(); ++i) {
      std::span<const std::byte> rest = state.file(i);
      bytes += rest.size();
      PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer,
                      backend.create(folder + state.files()[i].name, rest.size()));
      while (!rest.empty()) {
        PENSTOCK_TRY(check_interrupt());
        const size_t piece = std::min<size_t>(kCheckpointChunk, rest.size());
        PENSTOCK_TRY(writer->append(rest.first(piece)));
        rest = rest.subspan(piece);
      }
      PENSTOCK_TRY(writer->publish(Durability::file_and_name));
    }
    return bytes;
  };
  PENSTOCK_TRY(ranks.barrier());
  const Clock::time_point begin = Clock::now();
  const Result<uint64_t> written = write();
  double took_s = seconds_since(begin, Clock::now());
  Result<void> removed = success();
  for (const PayloadFile& file : state.files()) {
    const Result<void> file_removed = backend.names().remove(folder + file.name);
    if (!file_removed.ok() && file_removed.error().code != Errc::not_found) removed = file_removed;
  }
  PENSTOCK_TRY(all_ok(ranks, written));
  PENSTOCK_TRY(all_ok(ranks, removed));
  if (ranks.root()) static_cast<void>(backend.names().remove(kCeilingFolder));
  uint64_t bytes = *written;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&bytes, 1), Reduction::sum));
  PENSTOCK_TRY(ranks.all_reduce(std::span(&took_s, 1), Reduction::max));
  return took_s > 0 ? double(bytes) / took_s : 0.0;
}

TimeRange saving_time(std::string_view arm, const BenchSetup& setup, const TimeRange& slow_s,
                      const TimeRange& fast_s) {
  constexpr TimeRange kCopiedByte_s{1 / 8e9, 1 / 1e9};  // to copy one byte in memory
  const double steps_s = double(setup.steps) * std::chrono::duration<double>(setup.step_time).count();
  const auto saves = double(setup.steps / setup.save_every);
  const double bytes = double(setup.payload.bytes);
  const TimeRange steps{steps_s, 1.1 * steps_s};
  if (arm == kDirectArm) return steps + saves * slow_s;
  const bool by_snapshot = arm == kSnapshotArm;
  const TimeRange blocks = saves * (by_snapshot ? bytes * kCopiedByte_s : fast_s);
  // The drain goes on during the steps, from the first save on, and the last save begins near their end.
  const double drained_s = steps_s * (saves - 1) / saves;
  const auto rest_s = [&](double each_s) { return std::max(each_s, saves * each_s - drained_s); };
  return steps + blocks + TimeRange{rest_s(slow_s.low_s), rest_s(slow_s.high_s)};
}

TimeRange estimate_write_time(const Tier& tier, const BenchSetup& setup) {
  constexpr uint64_t kLookBytes = 32U << 20U;
  constexpr TimeRange kUnknownByte_s{1 / 2e9, 1 / 50e6};
  constexpr double kFaster = 0.7;
  constexpr double kSlower = 1.6;
  const double payload = double(setup.payload.bytes);
  if (!may_try_speed(tier)) return payload * kUnknownByte_s;
  Backend& backend = *tier.backend;
  const std::string name = std::string(kCeilingFolder) + "/look";
  const std::vector<std::byte> bytes(std::min(kLookBytes, setup.payload.bytes), std::byte{0x5a});
  const Clock::time_point begin = Clock::now();
  const auto write = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, backend.create(name, bytes.size()));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(Durability::file_and_name);
  };
  const Result<void> written = write();
  const double took_s =
      seconds_since(begin, Clock::now()) * payload / double(std::max<size_t>(1, bytes.size()));
  static_cast<void>(backend.names().remove(name));
  static_cast<void>(backend.names().remove(kCeilingFolder));
  return written.ok() ? TimeRange{kFaster * took_s, kSlower * took_s} : payload * kUnknownByte_s;
}

}  // namespace penstock
