// Threads: the thread of a rank calls the steps. If there are several ranks, all_ok() runs
// accept_existing_objects() and make_share() on another thread. The thread of the rank can then call stop()
// when another rank fails. The threads of parallel_for() call accept_existing_object() and make_object(),
// each with its own Worker. They share done_objects_, ObjectResults (no two threads record the same object),
// JournalWriter (which has a lock), Progress and stopped_. No other member changes while they run.
// Memory: the constructor allocates for each object and sample of the share. A Worker allocates while it
// makes objects.
// Ctrl-C: parallel_for() checks before each object. An object that was started is finished. make_share() then
// flushes the journal and returns the error.
// Crash: an object is published before its rows are in the journal. After a kill, objects without rows are
// made again. The manifest is published after sync_.sync() on all ranks. After a power cut, the journal may
// name an object whose bytes are lost, so a resume compares checksums.
#include "datagen/generate/generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "datagen/objects/object_check.hpp"
#include "datagen/target/target_room.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr size_t kMostUnflushedSamples = 65536;

}  // namespace

Generator::Generator(const Generation& generation, Tier& tier, TargetSync sync, unsigned threads, bool resume,
                     Communicator& ranks, Progress& progress)
    : generation_(generation),
      backend_(*tier.backend),
      ranks_(ranks),
      share_(share_of(generation, ranks.rank(), ranks.size())),
      threads_(unsigned(std::clamp<uint64_t>(share_.objects(), 1, std::max(threads, 1U)))),
      resume_(resume),
      sync_(std::move(sync)),
      progress_(progress),
      labels_(generation.recipe->label_names()),
      companions_(generation.recipe->companions()),
      builder_(facts()),
      object_results_(generation, ranks, builder_),
      done_objects_(share_.objects()) {
  for (unsigned i = 0; i < threads_; ++i)
    workers_.emplace_back(MakerSetup{generation_, backend_, sync_.object_durability(), resume_, labels_});
}

void Generator::start_journal(uint64_t next_segment) {
  journal_.emplace(backend_, journal_key(generation_.state), next_segment + uint64_t(ranks_.rank()),
                   uint64_t(ranks_.size()));
}

GeneratedCounts Generator::counts() const {
  GeneratedCounts sum;
  for (const Worker& worker : workers_) sum.add(worker.counts);
  sum.seconds = making_seconds_;
  return sum;
}

ManifestFacts Generator::facts() const {
  return {.recipe = generation_.state.recipe,
          .format = generation_.state.format,
          .codec =
              fmt::format("{}{}", generation_.recipe->fields().front().codec, generation_.format->wrapping()),
          .seed = generation_.state.seed,
          .settings = generation_.state.settings,
          .checksums = true,
          .object_checksums = true,
          .label_names = labels_};
}

Result<void> Generator::name_objects() {
  SamplePlan plan;
  for (uint64_t object = 0; object < generation_.objects; ++object) {
    if (object % 1024 == 0) PENSTOCK_TRY(check_interrupt());
    generation_.recipe->plan(generation_.first_sample(object), plan);
    builder_.add_object(generation_.object_name(object, plan), 0);
  }
  for (const Companion& companion : companions_)
    builder_.add_object(companion_name(*generation_.format, companion), 0);
  builder_.resize_samples(generation_.state.samples);
  return success();
}

Result<JournalRead> Generator::accept_existing_objects() {
  sync_.sync_before_checks();
  // The objects of several segments are checked together, to keep all threads busy. A segment names the
  // objects that one worker made between two flushes (1 to 30 s). If objects are large, these are only a few.
  constexpr size_t kObjectsAtOnce = 4096;
  constexpr size_t kSamplesAtOnce = size_t{1} << 18;
  JournalSegment gathered;
  const auto check_gathered = [&]() -> Result<void> {
    PENSTOCK_TRY(parallel_for(gathered.objects.size(), threads_, 1, [&](unsigned worker, uint64_t i) {
      const JournalObject& object = gathered.objects[i];
      return stopped()
                 ? success()
                 : accept_existing_object(workers_[worker], object.published, gathered.samples_of(object));
    }));
    gathered.clear();
    return success();
  };
  const auto gather = [&](const JournalSegment& segment) -> Result<void> {
    gathered.append(segment);
    const bool is_full =
        gathered.objects.size() >= kObjectsAtOnce || gathered.samples.size() >= kSamplesAtOnce;
    return is_full ? check_gathered() : success();
  };
  PENSTOCK_ASSIGN(const JournalRead journal, read_journal(backend_, journal_key(generation_.state), gather));
  PENSTOCK_TRY(check_gathered());
  return journal;
}

Result<void> Generator::accept_existing_object(Worker& worker, PublishedObject published,
                                               std::span<const JournalSample> samples) {
  const uint64_t first = samples.front().index;
  if (first < share_.first_sample || first >= share_.end_sample) return success();
  const uint64_t object = generation_.object_of(first);
  if (first != generation_.first_sample(object) || samples.size() != generation_.samples_of(object))
    return success();
  if (done_objects_.is_set(object - share_.first_object)) return success();
  const auto intact = is_intact(worker, worker.maker.name(object), published);
  if (!intact.ok() && !concerns_object(intact.error())) return intact.error();
  if (!intact.ok() || !*intact) {
    ++worker.counts.damaged_objects;
    return success();
  }
  // Another thread may have accepted this object just now. This happens if an earlier --resume made the
  // object again, because the journal then names it twice.
  if (!done_objects_.set(object - share_.first_object)) return success();
  worker.labels.clear();
  for (const JournalSample& sample : samples) worker.labels.push_back(worker.maker.label(sample.index));
  record_object(worker, object, published, samples);
  worker.counts.samples_kept += samples.size();
  return success();
}

Result<bool> Generator::is_intact(Worker& worker, std::string_view name, PublishedObject published) {
  PENSTOCK_TRY(sync_.drop_from_cache(name));
  PENSTOCK_ASSIGN(const auto reader, backend_.open(name));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  if (size != published.bytes) return false;
  PENSTOCK_ASSIGN(const uint32_t crc, crc32c_of(*reader, 0, size, worker.buffer));
  return crc == published.crc32c;
}

void Generator::record_object(const Worker& worker, uint64_t object, PublishedObject published,
                              std::span<const JournalSample> samples) {
  object_results_.record(object, published, samples, worker.labels);
  progress_.advance(samples.size());
}

Result<void> Generator::make_share() {
  start_time_ = Clock::now();
  for (Worker& worker : workers_) worker.last_flush = start_time_;
  Result<void> made = parallel_for(share_.objects(), threads_, 4, [this](unsigned worker, uint64_t i) {
    return stopped() || done_objects_.is_set(i) ? success()
                                                : make_object(workers_[worker], share_.first_object + i);
  });
  if (made.ok()) {
    made = flush_all();
  } else {
    // Saves the rows of finished objects for --resume. Errors are ignored: if the target is full, some rows
    // may be lost, and --resume makes their samples again.
    for (Worker& worker : workers_) static_cast<void>(flush(worker).ok());
  }
  if (made.ok() && !stopped() && ranks_.root()) made = make_companions();
  // Every rank syncs here, before send_to_root(). So all ranks have synced when the manifest is published.
  if (made.ok() && !stopped()) made = sync_.sync();
  making_seconds_ = std::chrono::duration<double>(Clock::now() - start_time_).count();
  return made;
}

Result<void> Generator::make_object(Worker& worker, uint64_t object) {
  std::vector<JournalSample>& rows = worker.unflushed_rows.samples;
  const size_t begin = rows.size();
  PENSTOCK_ASSIGN(const PublishedObject published, worker.maker.make(object, rows, worker.labels));
  const JournalObject& made =
      worker.unflushed_rows.objects.emplace_back(JournalObject{published, begin, rows.size()});
  const std::span<const JournalSample> samples = worker.unflushed_rows.samples_of(made);
  worker.counts.samples_made += samples.size();
  for (const JournalSample& sample : samples) worker.counts.bytes_made += sample.length;
  record_object(worker, object, published, samples);
  return flush_if_due(worker, object - share_.first_object);
}

Result<void> Generator::make_companions() {
  for (size_t i = 0; i < companions_.size(); ++i) {
    PENSTOCK_ASSIGN(
        const PublishedObject published,
        write_companion(*generation_.format, backend_, companions_[i], sync_.object_durability()));
    const auto object = uint32_t(generation_.objects + i);
    builder_.set_object_bytes(object, published.bytes);
    builder_.set_object_crc32c(object, published.crc32c);
  }
  return success();
}

bool Generator::has_spare_inodes(uint64_t objects_made) const {
  const Result<FreeSpace> space = free_space_of(backend_);
  if (!space.ok() || !space->inodes) return true;
  // Inodes that are kept free for a last segment, the manifest and other small files at the end.
  constexpr uint64_t kReservedInodes = 16;
  return *space->inodes >
         generation_.objects - objects_made + generation_.folders() + companions_.size() + kReservedInodes;
}

Result<void> Generator::flush_if_due(Worker& worker, uint64_t objects_made) {
  const Clock::time_point now = Clock::now();
  const auto interval = std::clamp<Clock::duration>((now - start_time_) / 20, std::chrono::seconds(1),
                                                    std::chrono::seconds(30));
  if (now - worker.last_flush < interval && worker.unflushed_rows.samples.size() < kMostUnflushedSamples)
    return success();
  worker.last_flush = now;
  if (has_spare_inodes(objects_made)) return flush(worker);
  // No segment is written, because inodes are scarce: the journal's files could take the inodes that the data
  // set needs. If there are too many rows in memory, they are dropped. After a kill, --resume makes their
  // samples again.
  if (worker.unflushed_rows.samples.size() >= kMostUnflushedSamples) worker.unflushed_rows.clear();
  return success();
}

Result<void> Generator::flush_all() {
  Worker& first_worker = workers_.front();
  for (Worker& worker : workers_) {
    if (&worker == &first_worker) continue;
    if (first_worker.unflushed_rows.samples.size() + worker.unflushed_rows.samples.size() >
        kMostUnflushedSamples)
      PENSTOCK_TRY(flush(first_worker));
    first_worker.unflushed_rows.append(worker.unflushed_rows);
    worker.unflushed_rows.clear();
  }
  return flush(first_worker);
}

Result<void> Generator::flush(Worker& worker) {
  PENSTOCK_TRY(journal_->append(worker.unflushed_rows));
  worker.counts.samples_journaled += worker.unflushed_rows.samples.size();
  worker.unflushed_rows.clear();
  return success();
}

Result<void> Generator::publish_manifest() {
  // Removes an old manifest first. It must not exist next to the new objects, even if publish() fails.
  PENSTOCK_TRY(remove_if_there(backend_.names(), kManifestName));
  return builder_.publish(backend_);
}

}  // namespace penstock
