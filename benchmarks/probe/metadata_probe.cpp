#include "benchmarks/probe/metadata_probe.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

// A prime number: two consecutive operations use objects that are not neighbours in the folder.
constexpr std::size_t kStride = 7919;

}  // namespace

MetadataProbe::MetadataProbe(Backend& backend, const std::string& folder, unsigned clients)
    : backend_(backend) {
  for (unsigned i = 0; i < clients; ++i) {
    Client& client = clients_.emplace_back();
    client.folder = fmt::format("{}/{:03}", folder, i);
    for (std::size_t n = 0; n < kObjectsEach; ++n)
      client.objects.push_back(fmt::format("{}/{:05}", client.folder, n));
  }
}

RunTally MetadataProbe::run(const ReadSpec& spec, const Work& work) {
  RunTally tally;
  std::vector<std::uint64_t> done(clients_.size());
  if (spec.at_gate) spec.at_gate();
  const Clock::time_point start = Clock::now();
  const auto over = [&, limit = time_limit(spec.end)] { return Clock::now() - start >= limit; };
  const auto client_work = [&](unsigned i) -> Result<void> {
    PENSTOCK_ASSIGN(done[i], work(clients_[i], over));
    return success();
  };
  Result<void> all = on_threads(static_cast<unsigned>(clients_.size()), client_work, IfFewer::fail);
  tally.wall_s = tally.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (!all.ok()) tally.failure = std::move(all).error();
  for (const std::uint64_t count : done) tally.samples += count;
  tally.passes = 1;
  return tally;
}

RunTally MetadataProbe::create(const ReadSpec& spec) {
  return run(spec, [&](Client& client, const Over& over) -> Result<std::uint64_t> {
    client.made = 0;
    for (const std::string& object : client.objects) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, backend_.create(object));
      PENSTOCK_TRY(writer->publish(Durability::visible));
      ++client.made;
      if (over()) break;
    }
    return std::uint64_t{client.made};
  });
}

RunTally MetadataProbe::remove(const ReadSpec& spec) {
  return run(spec, [&](Client& client, const Over&) -> Result<std::uint64_t> {
    for (std::size_t n = 0; n < client.made; ++n) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(backend_.names().remove(client.objects[n]));
    }
    return std::uint64_t{std::exchange(client.made, 0)};
  });
}

RunTally MetadataProbe::run_over_objects(const ReadSpec& spec,
                                         const std::function<Result<void>(const std::string&)>& one) {
  return run(spec, [&](Client& client, const Over& over) -> Result<std::uint64_t> {
    std::uint64_t done = 0;
    do {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(one(client.objects[done * kStride % client.made]));
      ++done;
    } while (!over());
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
  return run(spec, [&](Client& client, const Over& over) -> Result<std::uint64_t> {
    std::uint64_t entries = 0;
    do {
      PENSTOCK_TRY(check_interrupt());
      const std::uint64_t before = entries;
      PENSTOCK_TRY(backend_.names().list(client.folder, [&](const Entry&) { return ++entries != 0; }));
      if (entries - before != client.made)
        return make_error(Errc::io, fmt::format("'{}' lists {} of its {} objects", client.folder,
                                                entries - before, client.made));
    } while (!over());
    return entries;
  });
}

}  // namespace penstock
