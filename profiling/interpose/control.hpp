// Recording is begun, ended and cut into windows while the program runs: by its own calls
// (penstock_profile.h), by steps that it makes, and from outside (session_abi.h, penstock_request).
#pragma once

#include <cstdint>

namespace penstock::interpose {

// When the library is loaded: what the environment says of windows.
void note_window_steps() noexcept;

// In a fork's child.
void forget_parents_control() noexcept;

// The file that is written has the steps that were told since it began: says so in it. When it ends.
void name_last_steps() noexcept;

// Of steps that spans tell: the step of that number has ended.
extern std::uint32_t steps_per_window;  // 0: no windows by steps
void step_ended(std::uint64_t number) noexcept;
// The program calls penstock_profile_step(): its spans, which may come later, are not told as steps once
// more.
bool calls_its_steps() noexcept;

}  // namespace penstock::interpose
