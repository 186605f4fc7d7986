// The metadata probes of `tiers --probe`. They create, stat, open, list and remove empty objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// Measures how many metadata operations per second a tier does. Each of `clients` threads works in its own
// folder below `folder`, and all work at the same time. In a returned tally, one sample is one operation;
// only for list() it is one entry of a list.
// Limits: remove() ends when all objects are removed. create(), stat(), open() and list() end at the time
// limit of `spec`. create() also ends when each client has created kObjectsPerClient objects.
// Errors: after an interrupt, these functions fail with `interrupted` and leave the created objects. The
// caller must then remove `folder`.
class MetadataProbe {
 public:
  static constexpr size_t kObjectsPerClient = 1024;

  MetadataProbe(Backend& backend, const std::string& folder, unsigned clients);

  RunTally create(const ReadSpec& spec);  // publishes each object with Durability::visible
  RunTally stat(const ReadSpec& spec);    // stat() and the functions below need the objects of create()
  RunTally open(const ReadSpec& spec);    // opens and closes each object
  // Lists the client's folder repeatedly; in the tally, one sample is one entry of a list.
  RunTally list(const ReadSpec& spec);
  RunTally remove(const ReadSpec& spec);  // removes all objects of create()

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    std::string folder;
    std::vector<std::string> objects;
    size_t created_objects = 0;
  };
  // Returns true when the time limit has passed.
  using TimeIsUp = std::function<bool()>;
  // Does the operations of one client, and returns how many it did.
  using Work = std::function<Result<uint64_t>(Client& client, const TimeIsUp& time_is_up)>;
  RunTally run(const ReadSpec& spec, const Work& work);
  // Calls `operation` for one object after another until the time limit. After the last object it starts
  // again with the first.
  RunTally run_over_objects(const ReadSpec& spec,
                            const std::function<Result<void>(const std::string&)>& operation);

  Backend& backend_;
  std::vector<Client> clients_;
};

}  // namespace penstock
