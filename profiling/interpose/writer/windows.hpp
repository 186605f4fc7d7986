// Each session file is a window: a part of the recorded time. These functions give the current file its
// number in this process, and a label. The label comes from the program, or names the training steps in the
// file.
//
// Threads: the holder of Control (recording.hpp), with all signals blocked. Exceptions: note_step() is for
// any thread, and label_with_steps() is also called when the process ends or executes another program.
// Locks: none of its own.
// Memory: nothing is allocated on the program's heap.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// After this many training steps a new window begins; 0: steps begin no windows. Set from the environment
// when the library is loaded, or by the program. Any thread reads it.
extern std::atomic<uint32_t> steps_per_window;

// Begins the window of a new file; it has no number and no label yet. Called when a file has begun.
void begin_window() noexcept;
// Writes a label to the file. At the first call the file also gets its number. Null or "": no label.
void label_window(const char* label) noexcept;
// Writes a label that the program gave; label_with_steps() does not replace it. Null or "": no label.
void set_program_label(const char* label) noexcept;

// Notes that step `number` has ended, and so belongs to the current file. If `number` is last_switch_step(),
// nothing is noted, because that step belongs to the previous file. Any thread may call this; it takes no
// lock.
void note_step(uint64_t number) noexcept;
// Labels the file with the steps that ended in it, unless the program gave it a label. Called when the file
// ends.
void label_with_steps() noexcept;

constexpr uint64_t kNoStep =
    ~uint64_t{0};  // the value of last_switch_step() if no step has started a file yet
// The step whose end began the current file. That step belongs to the previous file, also if another
// accelerator reports it later.
uint64_t last_switch_step() noexcept;
void set_last_switch_step(uint64_t number) noexcept;

// Forgets the parent's windows. Called in a fork's child, which counts its own windows from 1.
void forget_parents_windows() noexcept;

}  // namespace penstock::interpose
