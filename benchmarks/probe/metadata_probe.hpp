// The metadata probes of tiers --probe: empty objects made, looked at, opened, listed and removed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// That many clients, each with a folder of its own below `folder`. Each call works with all of them at once,
// and a sample of what it returns is one operation. All but remove() end at the time limit of `spec`,
// create() at kObjectsEach of each client, too. An interrupt is a failure, `interrupted`; what is there then
// is left to whoever removes the folder.
class MetadataProbe {
 public:
  static constexpr std::size_t kObjectsEach = 1024;

  MetadataProbe(Backend& backend, const std::string& folder, unsigned clients);

  RunTally create(const ReadSpec& spec);  // publishes with Durability::visible
  RunTally stat(const ReadSpec& spec);    // of what create() made; so the others
  RunTally open(const ReadSpec& spec);    // and close
  RunTally list(const ReadSpec& spec);    // again and again the client's folder; a sample is an entry
  RunTally remove(const ReadSpec& spec);  // all of them

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    std::string folder;
    std::vector<std::string> objects;
    std::size_t made = 0;
  };
  // `work` returns how many operations it did; `over` says that the time is.
  using Over = std::function<bool()>;
  using Work = std::function<Result<std::uint64_t>(Client& client, const Over& over)>;
  RunTally run(const ReadSpec& spec, const Work& work);
  // `one` for object after object, round and round.
  RunTally run_over_objects(const ReadSpec& spec, const std::function<Result<void>(const std::string&)>& one);

  Backend& backend_;
  std::vector<Client> clients_;
};

}  // namespace penstock
