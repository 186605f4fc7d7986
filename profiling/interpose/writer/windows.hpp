// The current file as a window: its number in this process, and its label. The label comes from the program,
// or it names the training steps in the file.
//
// Threads: the holder of Control (recording.hpp), with all signals blocked. Exceptions: note_step() is for
// any thread, and label_with_steps() is also called when the process ends.
// Locks: none of its own.
// Memory: nothing is allocated on the program's heap.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// The steps in a window, from the environment when the library is loaded, or from the program; 0: steps begin
// no windows. Any thread reads it.
extern std::atomic<std::uint32_t> steps_per_window;

// A file has begun. It has no number and no label yet.
void begin_window() noexcept;
// Writes a label to the file. At the first call the file also gets its number. Null or "": no label.
void label_window(const char* label) noexcept;
// Writes a label that the program gave; label_with_steps() does not replace it. Null or "": no label.
void set_program_label(const char* label) noexcept;

// Step `number` has ended, and belongs to the current file. Step last_switch_step() is ignored: it belongs to
// the previous file. Any thread; takes no lock.
void note_step(std::uint64_t number) noexcept;
// When the file ends: labels it with the steps that ended in it, unless the program gave it a label.
void label_with_steps() noexcept;

constexpr std::uint64_t kNoStep = ~std::uint64_t{0};  // the result of last_switch_step() before the first cut
// The step after which the last file was ended. If another accelerator reports the same step later, it
// belongs to the previous file.
std::uint64_t last_switch_step() noexcept;
void set_last_switch_step(std::uint64_t number) noexcept;

// In a fork's child: it has no windows yet, and counts its own from 1.
void forget_parents_windows() noexcept;

}  // namespace penstock::interpose
