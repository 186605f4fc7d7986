// For tests only: a machine with disks whose power can be cut at any operation. After power_on() the disks
// have what the model in forgetful_disk_testing.hpp leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// What survives of the unsynced data: all (only the processes were killed), nothing, or a random part.
enum class Kept : std::uint8_t { all, none, some };

// A cut hits all disks of the machine. Their operations are counted together. Each of these is one operation:
// making one folder, create, append, write_at, syncing an object or a folder, giving a name, rename, remove,
// lock. Reads are not counted. publish() syncs the bytes, gives the name and syncs the folders one after
// another, so a cut can come between these steps.
//
// Any thread. It must outlive its back ends.
class ForgetfulMachine {
 public:
  ForgetfulMachine();
  ~ForgetfulMachine();
  ForgetfulMachine(const ForgetfulMachine&) = delete;
  ForgetfulMachine& operator=(const ForgetfulMachine&) = delete;

  // Returns one of the disks; a new name is an empty disk. The back end can be used across cuts. Readers,
  // Writers and Locks from before a cut fail with io. Caps are those of a disk's file system without paths.
  // Its root folder is on the disk.
  std::unique_ptr<Backend> backend(std::string_view disk);
  void wipe(std::string_view disk);  // replaces the disk by an empty one

  // The number of operations since the machine was made or last switched on.
  std::uint64_t operations() const;

  // cut_at(): operation n, counted from 1, is not done. It and all later calls fail with io, also reads.
  // cut(): the power is cut at once.
  void cut_at(std::uint64_t n);
  void cut();
  bool off() const;

  // Loses unsynced data and all locks, also if the machine was not off, and switches it on. A planned cut is
  // cancelled.
  void power_on(Kept kept, std::uint64_t seed = 0);

  struct State;

 private:
  const std::unique_ptr<State> state_;
};

// A back end plug-in for the contract test: each path is a disk of one machine.
extern const BackendInfo backend_forgetful;

}  // namespace penstock
