/* What a program may ask of libpenstock_profile.so, in C and through every language's way to call C. The
 * library is there if the program runs under `penstock profile run`, if somebody attached to it (`penstock
 * profile attach`), or if it opens the library itself, as in Python:
 *
 *   import ctypes
 *   profile = ctypes.CDLL("libpenstock_profile.so")
 *   profile.penstock_profile_start(b"session", b"epoch 3")
 *   ...                                      # what is to be seen
 *   profile.penstock_profile_stop()
 *
 * and then `penstock profile report session`.
 *
 * All calls: from any thread, while other threads run; 0, or an errno value. They take about a
 * millisecond, and must not be made from a signal's handler. In a program that links to none of this, the
 * declarations are weak: a function that is not there is null. */
#ifndef PENSTOCK_PROFILE_H
#define PENSTOCK_PROFILE_H

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_PROFILE_CALL __attribute__((weak, visibility("default")))

/* Begins a window: what is done from now to penstock_profile_stop() is in a file of its own in the
 * session's folder. Calls that are under way belong to what was before.
 *
 * Where nothing is recorded yet, recording begins with it: `folder` is made if it is not there (not its
 * parent), relative to the working directory; null stands for the environment's PENSTOCK_PROFILE_SESSION.
 * Where something is, `folder` is null or names the session that is written. `label` says what the window is;
 * null: nothing.
 *
 * EALREADY: a window is open. EBUSY: another session is being written; or a thread is stopped within the
 * profiler. EINVAL: no folder. Others: of making the folder or the file. */
PENSTOCK_PROFILE_CALL int penstock_profile_start(const char* folder, const char* label);

/* Ends it. Where recording began with the window, it ends with it: every call goes its own way again until
 * the next start. EINVAL: no window is open. */
PENSTOCK_PROFILE_CALL int penstock_profile_stop(void);

/* A step of training has ended. After each `steps` of them (penstock_profile_every(), or the environment's
 * PENSTOCK_PROFILE_EVERY; 0: never) a new window begins by itself, as long as something is recorded. Programs
 * that give spans of PENSTOCK_TRAIN (session_abi.h) need not call it. */
PENSTOCK_PROFILE_CALL int penstock_profile_step(void);
PENSTOCK_PROFILE_CALL int penstock_profile_every(unsigned steps);

#undef PENSTOCK_PROFILE_CALL

#ifdef __cplusplus
}
#endif

#endif
