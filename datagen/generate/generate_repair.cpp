// Threads: the thread of a rank calls begin() and counts(). If there are several ranks, all_ok() runs
// make_share() on another thread. The thread of the rank can then call stop() when another rank fails. The
// threads of parallel_for() call make_again(), each with its own Worker. They share only stopped_ and
// Progress.
// Lock: this code takes none. Rank 0 holds the target's lock (generate.cpp).
// Memory: everything allocates; all_ok() turns a failed allocation into an error on every rank.
// Ctrl-C: parallel_for() checks before each object. An object that was started is finished.
// Crash: an old object is removed before it is made again. The new object gets its name only when its bytes
// are durable. The manifest does not change, so another --resume continues the repair.
#include "datagen/generate/generate_repair.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "datagen/objects/object_check.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

Error other_build_error(std::string_view name, std::string_view why) {
  return make_error(Errc::corrupt,
                    "'{}' {}: another build of penstock made the data set; resume with that build, or "
                    "generate the data set in another folder",
                    name, why);
}

}  // namespace

Result<std::vector<uint64_t>> wrong_objects(const Manifest& manifest, Tier& tier, unsigned threads) {
  PENSTOCK_ASSIGN(const std::vector<ObjectVerdict> verdicts,
                  check_object_sizes(tier.backend->names(), manifest, std::max(threads, 1U)));
  std::vector<uint64_t> wrong;
  for (const ObjectVerdict& one : verdicts) wrong.push_back(one.object);
  return wrong;
}

Repairer::Repairer(const Generation& generation, const Manifest& manifest, Backend& backend, TargetSync sync,
                   unsigned threads, Communicator& ranks, Progress& progress)
    : generation_(generation),
      manifest_(manifest),
      backend_(backend),
      threads_(std::max(threads, 1U)),
      ranks_(ranks),
      progress_(progress),
      sync_(std::move(sync)),
      durability_(std::max(sync_.object_durability(), Durability::file)),
      labels_(generation.recipe->label_names()),
      companions_(generation.recipe->companions()) {}

Result<void> Repairer::begin(std::span<const uint64_t> wrong) {
  if (ranks_.root()) {
    own_counts_.samples_kept = samples_kept(wrong);
    own_counts_.damaged_objects = wrong.size();
    progress_.advance(own_counts_.samples_kept);
  }
  if (manifest_.objects() == generation_.objects + companions_.size()) return success();
  return other_build_error(kManifestName, "lists other objects than this build makes");
}

GeneratedCounts Repairer::counts() const {
  GeneratedCounts sum = own_counts_;
  for (const Worker& worker : workers_) sum.add(worker.counts);
  return sum;
}

uint64_t Repairer::samples_kept(std::span<const uint64_t> wrong) const {
  uint64_t intact_samples = generation_.state.samples;
  for (const uint64_t object : wrong)
    if (object < generation_.objects) intact_samples -= generation_.samples_of(object);
  return intact_samples;
}

Result<void> Repairer::make_share(std::span<const uint64_t> wrong) {
  const auto share_begin = [&](int rank) { return wrong.size() * size_t(rank) / size_t(ranks_.size()); };
  const size_t first = share_begin(ranks_.rank());
  const std::span<const uint64_t> share = wrong.subspan(first, share_begin(ranks_.rank() + 1) - first);
  const Clock::time_point start = Clock::now();
  const auto threads = unsigned(std::clamp<uint64_t>(share.size(), 1, threads_));
  for (unsigned i = 0; i < threads; ++i)
    workers_.emplace_back(MakerSetup{generation_, backend_, durability_, true, labels_});
  Result<void> made = parallel_for(share.size(), threads, 1, [&](unsigned worker, uint64_t i) {
    return stopped() ? success() : make_again(workers_[worker], share[i]);
  });
  if (made.ok() && !stopped()) made = sync_.sync();
  own_counts_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return made;
}

Result<void> Repairer::make_again(Worker& worker, uint64_t object) {
  std::string name;
  manifest_.object_name(object, name);
  const auto check_unchanged = [&](const PublishedObject& written, std::span<const JournalSample> rows,
                                   std::span<const uint32_t> labels) -> Result<void> {
    if (matches_manifest(object, written, rows, labels)) return success();
    return other_build_error(name, "would get other bytes than the manifest lists");
  };
  if (object >= generation_.objects)
    return outcome_of(
        write_companion(*generation_.format, backend_, companions_[object - generation_.objects], durability_,
                        [&](const PublishedObject& written) { return check_unchanged(written, {}, {}); }));
  if (worker.maker.name(object) != name) return other_build_error(name, "is not a name that this build uses");
  worker.rows.clear();
  PENSTOCK_TRY(worker.maker.make(object, worker.rows, worker.labels, check_unchanged));
  worker.counts.samples_made += worker.rows.size();
  for (const JournalSample& row : worker.rows) worker.counts.bytes_made += row.length;
  progress_.advance(worker.rows.size());
  return success();
}

bool Repairer::matches_manifest(uint64_t object, const PublishedObject& written,
                                std::span<const JournalSample> rows, std::span<const uint32_t> labels) const {
  if (written.bytes != manifest_.object_bytes(object) ||
      written.crc32c != manifest_.object_crc32c(object).value_or(written.crc32c))
    return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SampleEntry& entry = manifest_.sample(rows[i].index);
    if (entry.object != object || entry.offset != rows[i].offset || entry.length != rows[i].length ||
        entry.label != labels[i] || (manifest_.facts().checksums && entry.crc32c != rows[i].crc32c))
      return false;
  }
  return true;
}

}  // namespace penstock
