#include "benchmarks/probe/metadata_probe.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

// After object n of its folder, a client uses object n + kObjectStride, modulo the number of its objects. The
// stride is large, so that the two objects are not neighbours in the folder. It is prime, so that every
// object is used.
constexpr size_t kObjectStride = 7919;

}  // namespace

MetadataProbe::MetadataProbe(Backend& backend, const std::string& folder, unsigned clients)
    : backend_(backend) {
  for (unsigned i = 0; i < clients; ++i) {
    Client& client = clients_.emplace_back();
    client.folder = fmt::format("{}/{:03}", folder, i);
    for (size_t n = 0; n < kObjectsPerClient; ++n)
      client.objects.push_back(fmt::format("{}/{:05}", client.folder, n));
  }
}

RunTally MetadataProbe::run(const ReadSpec& spec, const Work& work) {
  RunTally tally;
  std::vector<uint64_t> operations_done(clients_.size());
  if (spec.at_gate) spec.at_gate();
  const Clock::time_point start = Clock::now();
  const auto time_is_up = [&, limit = time_limit(spec.end)] { return Clock::now() - start >= limit; };
  const auto client_work = [&](unsigned i) -> Result<void> {
    PENSTOCK_ASSIGN(operations_done[i], work(clients_[i], time_is_up));
    return success();
  };
  Result<void> outcome = on_threads(unsigned(clients_.size()), client_work, IfFewer::fail);
  tally.wall_s = tally.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (!outcome.ok()) tally.failure = std::move(outcome).error();
  for (const uint64_t count : operations_done) tally.samples += count;
  tally.passes = 1;
  return tally;
}

RunTally MetadataProbe::create(const ReadSpec& spec) {
  return run(spec, [&](Client& client, const TimeIsUp& time_is_up) -> Result<uint64_t> {
    client.created_objects = 0;
    for (const std::string& object : client.objects) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, backend_.create(object));
      PENSTOCK_TRY(writer->publish(Durability::visible));
      ++client.created_objects;
      if (time_is_up()) break;
    }
    return uint64_t{client.created_objects};
  });
}

RunTally MetadataProbe::remove(const ReadSpec& spec) {
  return run(spec, [&](Client& client, const TimeIsUp&) -> Result<uint64_t> {
    for (size_t n = 0; n < client.created_objects; ++n) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(backend_.names().remove(client.objects[n]));
    }
    return uint64_t{std::exchange(client.created_objects, 0)};
  });
}

RunTally MetadataProbe::run_over_objects(const ReadSpec& spec,
                                         const std::function<Result<void>(const std::string&)>& operation) {
  return run(spec, [&](Client& client, const TimeIsUp& time_is_up) -> Result<uint64_t> {
    uint64_t done = 0;
    do {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(operation(client.objects[done * kObjectStride % client.created_objects]));
      ++done;
    } while (!time_is_up());
    return done;
  });
}

RunTally MetadataProbe::stat(const ReadSpec& spec) {
  return run_over_objects(spec, [&](const std::string& object) -> Result<void> {
    PENSTOCK_TRY(backend_.names().stat(object));
    return success();
  });
}

RunTally MetadataProbe::open(const ReadSpec& spec) {
  return run_over_objects(spec, [&](const std::string& object) -> Result<void> {
    PENSTOCK_TRY(backend_.open(object));
    return success();
  });
}

RunTally MetadataProbe::list(const ReadSpec& spec) {
  return run(spec, [&](Client& client, const TimeIsUp& time_is_up) -> Result<uint64_t> {
    uint64_t entries = 0;
    do {
      PENSTOCK_TRY(check_interrupt());
      const uint64_t entries_before = entries;
      PENSTOCK_TRY(backend_.names().list(client.folder, [&](const Entry&) { return ++entries != 0; }));
      if (entries - entries_before != client.created_objects)
        return make_error(Errc::io, "'{}' lists only {} of its {} objects", client.folder,
                          entries - entries_before, client.created_objects);
    } while (!time_is_up());
    return entries;
  });
}

}  // namespace penstock
