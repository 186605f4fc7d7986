// Makes a back end fail on purpose, so that tests see the errors of real faults. Sets Caps::emulated.
//
// A fault is written [SCOPE[/NAME]:]KIND@WHEN. Several faults are joined by '+': "eio@0.01",
// "write:enospc@#3+flip@#1", "publish/MANIFEST:kill@#1".
//   SCOPE  open     opening and creating objects (also the first half of a whole-object read)
//          read     reading bytes
//          write    appending and writing
//          publish  giving an object its name
//          sync     publishing with more durability than `visible`, and syncing folders
//          names    listing, stat, renaming, removing, making folders, locking
//          any      all of these
//   NAME   only operations on objects and folders whose name contains it (for a rename, the old name); no
//          other operation counts
//   KIND   an errno in small letters (eio, enospc, edquot, efbig, eacces, eperm, erofs, emfile, enomem,
//          estale, enoent, ebusy, etimedout)
//          short      the object seems to end early
//          flip       one bit of the bytes read is wrong, without an error (not for a view() in place)
//          kill       the process kills itself (SIGKILL) before the operation
//          hang=TIME  the operation is done after this time; it fails with `interrupted` when the process
//                     is asked to stop; submitting to a Queue waits, too
//          lie        nothing is synced and success is reported, as by a device that ignores flushes
//   WHEN   a probability in [0, 1] (the same operations fail for the same seed), #N: only the N-th operation
//          of the scope, or #N..: the N-th and all later ones
// Without SCOPE, enospc, edquot and efbig apply to write; eacces, eperm, erofs, emfile and enoent to open;
// short and flip to read (no other scope is allowed); lie to sync (no other scope is allowed); the others to
// any.
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
  enum class Scope : uint8_t { open, read, write, publish, sync, names, any };
  enum class Kind : uint8_t { error, cut_short, flip, kill, hang, lie };

  Scope scope = Scope::any;
  std::string name{};  // text that the object's name contains; "": any object
  Kind kind = Kind::error;
  int sys_errno = 0;
  std::chrono::nanoseconds hang_time{0};
  double probability = 0;
  uint64_t first_operation = 0;  // counted from 1; 0: use `probability`
  uint64_t last_operation = 0;
};

// Parses the grammar above. Fails with invalid_argument for a wrong word; the message has that word and the
// valid ones.
Result<std::vector<Fault>> parse_faults(std::string_view text);

// Wraps a back end so that its calls have these faults. A flip happens after the call of the wrapped back
// end, and a lie leaves out its sync. Any other fault happens before the call. If a fault makes an operation
// of a Queue fail, the completion of that operation has the error. A Writer whose call failed by a fault
// cannot be used again and leaves no object.
std::unique_ptr<Backend> faulty(std::unique_ptr<Backend> inner, const std::vector<Fault>& faults,
                                uint64_t seed);

}  // namespace penstock
