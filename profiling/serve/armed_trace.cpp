#include "profiling/serve/armed_trace.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kOften{50};
constexpr int kShare = 10;  // look() may take at most 1/kShare of the time
constexpr std::size_t kMostProcesses = 1000;

}  // namespace

Result<void> ArmedTrace::arm(std::chrono::seconds time) {
  if (armed()) {
    static_cast<void>(window_->look());
    if (window_->over()) disarm();
  }
  if (!armed()) {
    auto window =
        std::make_unique<TraceWindow>(TraceTargets{.folders = {folder_}, .processes = {}, .ranks = {}});
    PENSTOCK_TRY(window->look());
    window_ = std::move(window);
  }
  next_look_ = Clock::now();
  until_ = next_look_ + time;
  return success();
}

void ArmedTrace::disarm() {
  if (!armed()) return;
  window_->end();
  until_ = {};
}

void ArmedTrace::look() {
  const Clock::time_point now = Clock::now();
  if (!armed()) return;
  if (now >= until_) return disarm();
  if (now < next_look_) return;
  static_cast<void>(window_->look());  // if the folder was deleted, there is nothing to trace
  const Clock::time_point looked = Clock::now();
  next_look_ = looked + std::max<Clock::duration>(kOften, kShare * (looked - now));
}

Json ArmedTrace::json() const {
  const double left =
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
                           {"failed", one.failed}});
    }
  }
  return Json{{"armed", armed()},
              {"seconds_left", left},
              {"running", window_ == nullptr ? 0 : window_->running()},
              {"processes", std::move(processes)}};
}

}  // namespace penstock
