/* Lets a program control libpenstock_profile.so, from C or from any language that can call C. The library is
 * in the process if the program runs under `penstock profile run`, if a user attached to the program
 * (`penstock profile attach`), or if the program opens the library itself, as in Python:
 *
 *   import ctypes
 *   profile = ctypes.CDLL("libpenstock_profile.so")
 *   profile.penstock_profile_start(b"session", b"epoch 3")
 *   ...                                      # the part to be recorded
 *   profile.penstock_profile_stop()
 *
 * After the run, `penstock profile report session` prints the report.
 *
 * Any thread may call these functions while other threads run, but no signal handler may. They return 0 or an
 * errno value, and take about a millisecond. The declarations are weak: if the library is not in the process,
 * the functions are null. */
#ifndef PENSTOCK_PROFILE_H
#define PENSTOCK_PROFILE_H

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_PROFILE_CALL __attribute__((weak, visibility("default")))

/* Begins a window. What the program does from now until penstock_profile_stop() is recorded in a separate
 * file in the session's folder. Calls that are running now belong to the time before the window.
 *
 * If nothing is recorded yet, recording begins with the window. `folder` may be relative to the working
 * directory and is created if it does not exist; its parent must exist. A null `folder` means the environment
 * variable PENSTOCK_PROFILE_SESSION. If a session is recorded already, `folder` must be null or name that
 * session. `label` is the window's label; null: none.
 *
 * EALREADY: a window is open. EBUSY: another session is being recorded, or a thread was stopped inside the
 * profiler. EINVAL: no folder is given. ENOSYS: the kernel does not allow membarrier(). Other values come
 * from creating the folder or the file. */
PENSTOCK_PROFILE_CALL int penstock_profile_start(const char* folder, const char* label);

/* Ends the window. If recording began with the window, it ends as well: no call is recorded until the next
 * penstock_profile_start(). EINVAL: no window is open. */
PENSTOCK_PROFILE_CALL int penstock_profile_stop(void);

/* penstock_profile_step() reports that a training step has ended. While a session is recorded, a new window
 * begins after every `steps` steps. penstock_profile_every() or the environment variable
 * PENSTOCK_PROFILE_EVERY sets `steps`; 0 means that no window begins by steps. Programs that report spans of
 * PENSTOCK_TRAIN (span_abi.h) need not call penstock_profile_step(). */
PENSTOCK_PROFILE_CALL int penstock_profile_step(void);
PENSTOCK_PROFILE_CALL int penstock_profile_every(unsigned steps);

#undef PENSTOCK_PROFILE_CALL

#ifdef __cplusplus
}
#endif

#endif
