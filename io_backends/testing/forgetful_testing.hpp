// For tests only: a machine with disks whose power can be cut at any operation. When it is switched on again,
// it has what the model of forgetful_disk_testing.hpp leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "io_backends/backend/backend_info.hpp"

namespace penstock {

// What is left of unsynced data when the machine is switched on again: all (only the processes were killed),
// nothing, or a random part.
enum class Kept : uint8_t { all, none, some };

// A machine whose disks lose power together. Their operations are counted together: each new folder, create,
// append, write_at, sync of an object or folder, naming, rename, removal and lock counts as one. Reads do not
// count. publish() is several operations: it syncs the bytes, gives the name and syncs the folders. So the
// power can be cut between these steps.
//
// Any thread may call it. It must exist longer than its back ends.
class ForgetfulMachine {
 public:
  ForgetfulMachine();
  ~ForgetfulMachine();
  ForgetfulMachine(const ForgetfulMachine&) = delete;
  ForgetfulMachine& operator=(const ForgetfulMachine&) = delete;

  // Makes a back end on the disk with this name. The disk is empty at its first use. The back end stays
  // usable after cuts. Readers, Writers and Locks from before a cut fail with io. Its caps are those of a
  // file system on a disk, without native paths; its root folder is on the disk.
  std::unique_ptr<Backend> backend(std::string_view disk);
  void wipe(std::string_view disk);  // replaces the disk by an empty one

  // The number of operations that started since the machine was made or last switched on.
  uint64_t operations() const;

  // Cuts the power at operation n, counted from 1. That operation and everything later, also reads, fail with
  // io. cut() cuts the power at once.
  void cut_at(uint64_t n);
  void cut();
  bool off() const;

  // Switches the machine on: drops unsynced data as `kept` says, even if the machine was on. Locks end, and a
  // planned cut is cancelled.
  void power_on(Kept kept, uint64_t seed = 0);

  struct State;

 private:
  const std::unique_ptr<State> state_;
};

// Describes the back end `forgetful`. Each path is one disk of a common machine. So the contract test can
// test it like any other back end.
extern const BackendInfo backend_forgetful;

}  // namespace penstock
