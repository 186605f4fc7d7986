// A back end that fails on purpose: tests inject faults where real ones would strike. Says Caps::emulated.
//
// A fault is written [SCOPE[/NAME]:]KIND@WHEN, several are joined by '+': "eio@0.01",
// "write:enospc@#3+flip@#1", "publish/MANIFEST:kill@#1".
//   SCOPE  open     opening and creating objects (the first half of a whole-object read, too)
//          read     reading bytes
//          write    appending and writing
//          publish  giving an object its name
//          sync     publishing with a durability beyond `visible`, and syncing folders
//          names    listing, looking at, renaming, removing, making folders, locking
//          any      all of these
//   NAME   only operations on objects and folders whose name contains it (of a renaming, the old one); no
//          other operation counts
//   KIND   an errno in small letters (eio, enospc, edquot, efbig, eacces, eperm, erofs, emfile, enomem,
//          estale, enoent, ebusy, etimedout); short: the object seems to end early; flip: one bit of what was
//          read is wrong and nothing is said (a view() in place stays right); kill: the process kills itself
//          (SIGKILL) before the operation is done; hang=TIME: the operation is done after that time, or fails
//          with `interrupted` when the process is asked to stop (submitting to a Queue waits, too); lie:
//          nothing is synced and success is reported, as by a device that lies
//   WHEN   a probability in [0, 1] (the same operations fail for the same seed), #N: the N-th operation of
//          the scope alone, or #N..: that one and all that follow
// Without SCOPE: enospc, edquot, efbig strike at write; eacces, eperm, erofs, emfile, enoent at open; short
// and flip at read (their only scope), lie at sync (its only one); the others at any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"

namespace penstock {

struct Fault {
  enum class Scope : std::uint8_t { open, read, write, publish, sync, names, any };
  enum class Kind : std::uint8_t { error, cut_short, flip, kill, hang, lie };

  Scope scope = Scope::any;
  std::string name{};  // a part of the object's name; "": any object
  Kind kind = Kind::error;
  int sys_errno = 0;
  std::chrono::nanoseconds hang{0};
  double probability = 0;
  std::uint64_t first = 0;  // counted from 1; 0: by probability
  std::uint64_t last = 0;
};

// invalid_argument, naming the word that is wrong and those that are right.
Result<std::vector<Fault>> parse_faults(std::string_view text);

// Faults strike before the wrapped back end is asked (a flip after it has answered). A Queue's operations
// fail as completions. A Writer that a fault struck is spent and leaves nothing behind.
std::unique_ptr<Backend> faulty(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                                std::uint64_t seed);

}  // namespace penstock
