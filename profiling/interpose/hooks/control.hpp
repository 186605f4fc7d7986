// Windows that the program controls: by the functions of penstock_profile.h, or by the training steps that it
// reports.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// Reads the number of steps in a window from PENSTOCK_PROFILE_EVERY. Called once, when the library is loaded.
void read_steps_per_window() noexcept;

// Called when a span or penstock_profile_step() reports that step `number` has ended. If the step begins a
// new window, this takes Control (recording.hpp) and waits for updates of other threads. Any thread may call
// it, with no lock held and not inside an Update.
void step_ended(uint64_t number) noexcept;
// True once the program has called penstock_profile_step(). From then on its spans are not counted as steps,
// because each step would count twice.
bool program_reports_steps() noexcept;

}  // namespace penstock::interpose
