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

// Measures the rate of metadata operations. Each of `clients` threads works in its own folder below `folder`.
// In each call all clients work at the same time, and one sample of the result is one operation. All calls
// except remove() end at the time limit of `spec`. create() also ends when each client has created
// kObjectsPerClient objects. After an interrupt, a call fails with `interrupted` and leaves its objects. The
// owner of `folder` removes them.
class MetadataProbe {
 public:
  static constexpr size_t kObjectsPerClient = 1024;

  MetadataProbe(Backend& backend, const std::string& folder, unsigned clients);

  RunTally create(const ReadSpec& spec);  // publishes each object with Durability::visible
  RunTally stat(const ReadSpec& spec);    // this and all calls below use the objects of create()
  RunTally open(const ReadSpec& spec);    // opens and closes each object
  RunTally list(const ReadSpec& spec);    // lists the client's folder repeatedly; one sample is one entry
  RunTally remove(const ReadSpec& spec);  // removes all objects of create()

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    std::string folder;
    std::vector<std::string> objects;
    size_t created_objects = 0;
  };
  // Returns true after the time limit.
  using TimeIsUp = std::function<bool()>;
  // The operations of one client. Returns how many there were.
  using Work = std::function<Result<uint64_t>(Client& client, const TimeIsUp& time_is_up)>;
  RunTally run(const ReadSpec& spec, const Work& work);
  // Calls `operation` for one object after another, and starts again after the last, until the time limit.
  RunTally run_over_objects(const ReadSpec& spec,
                            const std::function<Result<void>(const std::string&)>& operation);

  Backend& backend_;
  std::vector<Client> clients_;
};

}  // namespace penstock
