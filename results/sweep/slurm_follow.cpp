#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "results/sweep/slurm.hpp"
#include "results/sweep/state.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{250};       // at the journal, which is a file
constexpr milliseconds kAskFirst{1000};  // the controller
constexpr milliseconds kAskLast{10'000};
constexpr int kPatience = 6;  // answers in a row that know nothing of the job

}  // namespace

Result<JobState> follow_job(const std::string& job, const SweepSpec& spec, std::uint64_t turns,
                            bool progress) {
  Progress line(progress, fmt::format("sweep {}, job {}", spec.name, job), turns, "turns");
  std::uint64_t shown = 0;
  int unknown = 0;
  milliseconds pause = kAskFirst;
  auto ask_at = Clock::now();
  bool had_ended = false;
  bool ended = false;
  std::uintmax_t seen = 0;  // bytes of the journal: it only grows
  JobState state;
  while (true) {
    PENSTOCK_TRY(check_interrupt());
    std::error_code unreadable;
    const std::uintmax_t bytes =
        std::filesystem::file_size(SweepState::journal_file(spec.results, spec.name), unreadable);
    if (unreadable || bytes == seen) {
      // nothing that was not known
    } else if (const auto history = SweepState::look(spec.results, spec.name); history.ok()) {
      seen = bytes;
      const std::uint64_t done = history->turns.size();
      if (done > shown) line.advance(done - shown);
      shown = std::max(shown, done);
      ended = history->end && history->end->job == job;
    }
    if ((ended && !had_ended) || Clock::now() >= ask_at) {
      state = inspect_job(job);
      line.set_note(state.words);
      unknown = state.phase == JobPhase::unknown ? unknown + 1 : 0;
      if (state.phase == JobPhase::over || unknown >= kPatience) return state;
      pause = std::min(pause * 3 / 2, kAskLast);
      ask_at = Clock::now() + (ended ? kAskFirst : pause);
    }
    had_ended = ended;
    PENSTOCK_TRY(sleep_until(Clock::now() + kLook));
  }
}

}  // namespace penstock
