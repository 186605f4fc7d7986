#include "profiling/serve/armed_trace.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kUpdateInterval{50};
// The pause after an update is at least this many times as long as the update took.
constexpr int kPausePerUpdateTime = 10;
constexpr size_t kMostProcesses = 1000;

}  // namespace

Result<void> ArmedTrace::arm(std::chrono::seconds time) {
  if (armed()) {
    static_cast<void>(window_->update());
    if (window_->finished()) disarm();
  }
  if (!armed()) {
    auto window =
        std::make_unique<TraceWindow>(TraceTargets{.folders = {folder_}, .processes = {}, .ranks = {}});
    PENSTOCK_TRY(window->update());
    window_ = std::move(window);
  }
  next_update_ = Clock::now();
  until_ = next_update_ + time;
  return success();
}

void ArmedTrace::disarm() {
  if (!armed()) return;
  window_->end();
  until_ = {};
}

void ArmedTrace::update() {
  const Clock::time_point now = Clock::now();
  if (!armed()) return;
  if (now >= until_) return disarm();
  if (now < next_update_) return;
  // errors are ignored: if the folder was deleted, there is nothing to trace
  static_cast<void>(window_->update());
  const Clock::time_point updated = Clock::now();
  next_update_ = updated + std::max<Clock::duration>(kUpdateInterval, kPausePerUpdateTime * (updated - now));
}

Json ArmedTrace::json() const {
  const double seconds_left =
      armed() ? std::max(0.0, std::chrono::duration<double>(until_ - Clock::now()).count()) : 0.0;
  Json processes = Json::array();
  if (window_ != nullptr) {
    for (const TracedProcess& one : window_->processes()) {
      if (processes.size() == kMostProcesses) break;
      processes.push_back({{"pid", one.process.pid},
                           {"rank", one.process.rank < 0 ? Json(nullptr) : Json(one.process.rank)},
                           {"from_ns", one.from_ns},
                           {"to_ns", one.from_ns == 0 ? 0 : one.to_ns},
                           {"before", one.was_on},
                           {"failed", one.error_text}});
    }
  }
  return Json{{"armed", armed()},
              {"seconds_left", seconds_left},
              {"running", window_ == nullptr ? 0 : window_->running_count()},
              {"processes", std::move(processes)}};
}

}  // namespace penstock
