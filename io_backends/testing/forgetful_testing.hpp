// For tests only: a machine with disks whose power can be cut at any operation. It is switched on again with
// what forgetful_disk_testing.hpp says is left.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// What a machine that is switched on again still has of what was not synced: all (only the processes were
// killed), nothing, or some, by chance.
enum class Kept : std::uint8_t { all, none, some };

// All disks of a machine go off together, and their operations are counted together: each folder that is
// made, create, append, write_at, each object or folder that is synced, name that is given, renaming, removal
// and lock is one; reading is none. publish() syncs the bytes, gives the name and syncs the folders one after
// another, so that it can be cut in between.
//
// Any thread. It outlives its back ends.
class ForgetfulMachine {
 public:
  ForgetfulMachine();
  ~ForgetfulMachine();
  ForgetfulMachine(const ForgetfulMachine&) = delete;
  ForgetfulMachine& operator=(const ForgetfulMachine&) = delete;

  // One of its disks, empty when first named. Can be used across cuts; Readers, Writers and Locks of before
  // cannot: they fail with io. Caps are those of a disk's file system without paths; its root folder is on
  // the disk.
  std::unique_ptr<Backend> backend(std::string_view disk);
  void wipe(std::string_view disk);  // a new one takes its place

  // Operations that began since it was made or last switched on.
  std::uint64_t operations() const;

  // The n-th operation of those, counted from 1, is not done: it and all that comes later, reading too, fails
  // with io. cut(): from now on.
  void cut_at(std::uint64_t n);
  void cut();
  bool off() const;

  // Forgets what there is to forget, also where it was not off; locks go, and no later cut is planned.
  void power_on(Kept kept, std::uint64_t seed = 0);

  struct State;

 private:
  const std::unique_ptr<State> state_;
};

// A disk of one machine for each path: for the contract test, which takes it for a back end like the others.
extern const BackendInfo backend_forgetful;

}  // namespace penstock
