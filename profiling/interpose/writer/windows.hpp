// What the file that is written is, as a window of the program's time: its number in this process, and the
// name that the program gave it or the steps of training that it holds.
//
// For who holds Control (recording.hpp), but for note_step(), and where the process ends.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// From the environment when the library is loaded, or from the program; 0: no windows by steps. Any thread
// reads it.
extern std::atomic<std::uint32_t> steps_per_window;

// A file began, of which nothing was said yet.
void begin_window() noexcept;
// Says so in the file; the first time it gets its number. Null or "": it has no name.
void label_window(const char* label) noexcept;
// Likewise, and what the program calls it holds, whatever its steps are.
void name_window(const char* label) noexcept;

// Any thread, no lock: a step of that number has ended. Behind `last_cut_step` it is the next file's.
void note_step(std::uint64_t number) noexcept;
// The file has the steps that were told since it began: says so in it, unless it has a name. When it ends.
void name_last_steps() noexcept;

// The step behind which a file was cut last: another accelerator's step of that number is the file's before.
constexpr std::uint64_t kNoStep = ~std::uint64_t{0};  // no file was cut behind one
std::uint64_t last_cut_step() noexcept;
void set_last_cut_step(std::uint64_t number) noexcept;

// In a fork's child, whose windows are its own.
void forget_parents_windows() noexcept;

}  // namespace penstock::interpose
