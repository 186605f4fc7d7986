// What the program itself says while it runs: where windows begin and end, by its calls
// (penstock_profile.h) or by steps of training that it makes.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// When the library is loaded: what the environment says of windows.
void note_window_steps() noexcept;

// Of steps that spans tell: the step of that number has ended. Any thread.
void step_ended(std::uint64_t number) noexcept;
// The program calls penstock_profile_step(): its spans, which may come later, are not told as steps once
// more.
bool calls_its_steps() noexcept;

}  // namespace penstock::interpose
