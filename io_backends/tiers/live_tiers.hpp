// What the running command has done on each tier so far, for other programs that watch it (--metrics-port).
//
// Nothing here costs a measured loop anything: the bytes are those that a back end counts anyway, and a
// command updates the other figures at the pace of its progress line.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io_backends/backend/backend.hpp"

namespace penstock {

struct Tier;

// What a command has done on one tier, apart from the bytes that its back end counts. Any thread may read it.
struct TierActivity {
  // Samples read, trained with or made; checkpoints saved; operations of a probe; runs of a sweep. Only
  // measured work counts, but no warm-up and no baseline.
  std::atomic<uint64_t> operations{0};
  std::atomic<uint64_t> errors{0};  // operations that failed
  std::atomic<uint64_t> repeat{0};  // the number of the present repeat or step, from 1; 0 before the first
  // Bytes that other processes have moved. Only a sweep counts them, since its runs are other processes.
  std::atomic<uint64_t> foreign_read_bytes{0};

  void raise_operations(uint64_t count);  // sets the count, unless it is already higher
};

// The tiers of the running command. Any thread may call all functions.
class LiveTiers {
 public:
  struct Figures {
    std::string tier;
    MovedBytes bytes{};
    uint64_t operations = 0;
    uint64_t errors = 0;
    uint64_t repeat = 0;
  };

  // Adds a tier. Its figures are read while the returned token exists, so the token must be destroyed before
  // the tier's back end. After that, figures() returns the last figures. Null if the tier is in the list
  // already.
  [[nodiscard]] std::shared_ptr<void> add(const Tier& tier);

  // One entry for each name of a tier, in the order of add().
  std::vector<Figures> figures() const;

 private:
  struct Entry {
    Figures last;  // the name, and the last figures when `activity` is null
    const Backend* backend = nullptr;
    const TierActivity* activity = nullptr;  // identifies the tier, which may move in memory

    Figures figures() const;
  };
  void remove(const TierActivity* activity);

  mutable std::mutex mutex_;  // guards entries_, and the life of the back ends in it
  std::vector<Entry> entries_;
};

}  // namespace penstock
