// Windows that the program controls: by the functions of penstock_profile.h, or by the training steps that it
// reports.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// Reads the number of steps in a window from PENSTOCK_PROFILE_EVERY. Called once, when the library is loaded.
void read_steps_per_window() noexcept;

// Begins a new window if step `number` is the last step of the current one. Called when a span or
// penstock_profile_step() reports that this step has ended.
// Any thread that holds no lock and is not inside an update (Update, counting.hpp) may call it. To begin the
// window, it takes Control, the lock for changing what is recorded (recording.hpp), and waits until no thread
// is inside an update.
void step_ended(uint64_t number) noexcept;
// True once the program has called penstock_profile_step(). From then on spans of steps do not count as
// steps, because each step would be counted twice.
bool program_reports_steps() noexcept;

}  // namespace penstock::interpose
