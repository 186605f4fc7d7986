#include "datagen/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/companions.hpp"
#include "datagen/generate_target.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/object_check.hpp"
#include "datagen/parallel.hpp"
#include "io_backends/base/buffer.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/posix_root.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// One bit an object, set by any thread.
class DoneBits {
 public:
  explicit DoneBits(std::uint64_t count) : words_((count + 63) / 64) {}
  void set(std::uint64_t i) {
    words_[i / 64].fetch_or(std::uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  bool get(std::uint64_t i) const {
    return ((words_[i / 64].load(std::memory_order_relaxed) >> (i % 64)) & 1) != 0;
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
};

struct alignas(128) Worker {
  std::unique_ptr<SampleMaker> maker;
  SamplePlan plan;
  std::uint64_t planned = UINT64_MAX;  // the sample that `plan` is of
  std::vector<FieldBytes> fields;
  std::vector<std::uint32_t> labels;  // of the samples of the object at hand
  JournalSegment unflushed;
  Clock::time_point last_flush;
  Generated made;
  Buffer buffer;
};

class Generator {
 public:
  Generator(const Generation& generation, Tier& tier, unsigned threads, bool resume, Progress& progress)
      : generation_(generation),
        backend_(*tier.backend),
        threads_(
            static_cast<unsigned>(std::clamp<std::uint64_t>(generation.objects, 1, std::max(threads, 1U)))),
        resume_(resume),
        // Where there is a file system, settle() comes at the end.
        durability_(backend_.native_path("") ? Durability::leaving : Durability::file),
        progress_(progress),
        labels_(generation.recipe->label_names()),
        companions_(generation.recipe->companions()),
        builder_(facts()),
        done_(generation.objects),
        workers_(threads_) {}

  Result<void> run(Generated& out) {
    PENSTOCK_TRY(name_objects());
    std::uint64_t next_segment = 0;
    if (resume_) {
      PENSTOCK_ASSIGN(const JournalRead read, keep_what_is_right());
      next_segment = read.next_segment;
      out.journal_damaged = read.damaged;
    }
    journal_.emplace(backend_, journal_key(generation_.state), next_segment);
    const Clock::time_point start = Clock::now();
    start_ = start;
    for (Worker& worker : workers_) worker.last_flush = start;
    Result<void> made =
        parallel_for(generation_.objects, threads_, 4, [this](unsigned worker, std::uint64_t object) {
          return done_.get(object) ? success() : make(workers_[worker], object);
        });
    // Where the target is full, the journal may not fit either: its samples are made again then.
    for (Worker& worker : workers_) {
      Result<void> flushed = flush(worker);
      if (made.ok()) made = std::move(flushed);
    }
    if (made.ok()) made = make_companions();
    if (made.ok()) made = settle(backend_);
    out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const Worker& worker : workers_) add(out, worker.made);
    PENSTOCK_TRY(std::move(made));
    return finish();
  }

  // Makes these objects of a finished data set again.
  Result<void> mend(const Manifest& manifest, std::span<const WrongObject> wrong, Generated& out) {
    PENSTOCK_TRY(name_objects());
    if (manifest.objects() != builder_.objects())
      return of_another_build(kManifestName, "names other objects than this build makes");
    out.samples_kept = generation_.state.samples;
    for (const WrongObject& one : wrong)
      if (one.object < generation_.objects)
        out.samples_kept -= generation_.end_sample(one.object) - generation_.first_sample(one.object);
    out.damaged = wrong.size();
    progress_.advance(out.samples_kept);
    const Clock::time_point start = Clock::now();
    Result<void> made = parallel_for(wrong.size(), threads_, 1, [&](unsigned worker, std::uint64_t i) {
      return make_as(workers_[worker], manifest, wrong[i].object);
    });
    if (made.ok()) made = settle(backend_);
    out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const Worker& worker : workers_) add(out, worker.made);
    return made;
  }

 private:
  Error of_another_build(std::string_view name, std::string_view why) const {
    return make_error(Errc::corrupt,
                      fmt::format("'{}' {}: the data set was made by another build of penstock; go on with "
                                  "that one, or make all of it anew in another folder",
                                  name, why));
  }

  // The same object as the manifest has it, or none.
  Result<void> make_as(Worker& worker, const Manifest& manifest, std::uint64_t object) {
    std::string name;
    manifest.object_name(object, name);
    PublishedObject whole;
    if (object < generation_.objects) {
      if (object_name(worker, object) != name)
        return of_another_build(name, "is no name that this build gives");
      PENSTOCK_ASSIGN(whole, make_object(worker, object));
      worker.unflushed.clear();
    } else {
      PENSTOCK_ASSIGN(whole, write_companion(*generation_.format, backend_,
                                             companions_[object - generation_.objects], durability_));
    }
    if (whole.bytes == manifest.object_bytes(object) &&
        whole.crc32c == manifest.object_crc32c(object).value_or(whole.crc32c))
      return success();
    PENSTOCK_TRY(backend_.names().remove(name));
    return of_another_build(name, "would be made of other bytes than those that the manifest has");
  }

  ManifestFacts facts() const {
    return {.recipe = generation_.state.recipe,
            .format = generation_.state.format,
            .codec = fmt::format("{}{}", generation_.recipe->fields().front().codec,
                                 generation_.format->wrapping()),
            .seed = generation_.state.seed,
            .settings = generation_.state.settings,
            .checksums = true,
            .object_checksums = true,
            .label_names = labels_};
  }

  static void add(Generated& sum, const Generated& one) {
    sum.samples_made += one.samples_made;
    sum.bytes_made += one.bytes_made;
    sum.samples_kept += one.samples_kept;
    sum.samples_journaled += one.samples_journaled;
    sum.damaged += one.damaged;
  }

  Result<void> name_objects() {
    SamplePlan plan;
    for (std::uint64_t object = 0; object < generation_.objects; ++object) {
      if (object % 1024 == 0) PENSTOCK_TRY(check_interrupt());
      generation_.recipe->plan(generation_.first_sample(object), plan);
      builder_.add_object(generation_.object_name(object, plan), 0);
    }
    for (const Companion& companion : companions_)
      builder_.add_object(companion_name(*generation_.format, companion), 0);
    builder_.resize_samples(generation_.state.samples);
    return success();
  }

  // Where a file is a sample, its plan is wanted for the name, for the sample and for the manifest.
  const SamplePlan& plan(Worker& worker, std::uint64_t index) const {
    if (worker.planned != index) generation_.recipe->plan(index, worker.plan);
    worker.planned = index;
    return worker.plan;
  }

  std::string object_name(Worker& worker, std::uint64_t object) const {
    return generation_.object_name(object, plan(worker, generation_.first_sample(object)));
  }

  void set_object(std::uint64_t object, PublishedObject whole) {
    builder_.set_object_bytes(static_cast<std::uint32_t>(object), whole.bytes);
    builder_.set_object_crc32c(static_cast<std::uint32_t>(object), whole.crc32c);
  }

  // An object that stands as it shall; worker.labels holds its samples'.
  void enter(const Worker& worker, std::uint64_t object, PublishedObject whole,
             std::span<const JournalSample> samples) {
    set_object(object, whole);
    for (std::size_t i = 0; i < samples.size(); ++i)
      builder_.set_sample(samples[i].index, {.offset = samples[i].offset,
                                             .length = samples[i].length,
                                             .object = static_cast<std::uint32_t>(object),
                                             .label = worker.labels[i],
                                             .crc32c = samples[i].crc32c});
    progress_.advance(samples.size());
  }

  Result<JournalRead> keep_what_is_right() {
    return read_journal(backend_, journal_key(generation_.state), [this](const JournalSegment& segment) {
      return parallel_for(segment.objects.size(), threads_, 1, [&](unsigned worker, std::uint64_t i) {
        const JournalObject& object = segment.objects[i];
        return keep(workers_[worker], object.whole, segment.samples_of(object));
      });
    });
  }

  // Takes an object over where all of its bytes are those that were written. Its checksum was combined from
  // its samples' while it was made, so this costs the making nothing, and a resume one pass over what it
  // keeps.
  Result<void> keep(Worker& worker, PublishedObject whole, std::span<const JournalSample> samples) {
    const std::uint64_t first = samples.front().index;
    if (first >= generation_.state.samples) return success();
    const std::uint64_t object = generation_.object_of(first);
    if (first != generation_.first_sample(object) || samples.size() != generation_.end_sample(object) - first)
      return success();
    if (done_.get(object)) return success();
    const auto right = is_right(worker, object_name(worker, object), whole);
    if (!right.ok() && !tells_of_object(right.error())) return right.error();
    if (!right.ok() || !*right) {
      ++worker.made.damaged;
      return success();
    }
    worker.labels.clear();
    for (const JournalSample& sample : samples) worker.labels.push_back(plan(worker, sample.index).label);
    enter(worker, object, whole, samples);
    done_.set(object);
    worker.made.samples_kept += samples.size();
    return success();
  }

  Result<bool> is_right(Worker& worker, std::string_view name, PublishedObject whole) {
    PENSTOCK_ASSIGN(const auto reader, backend_.open(name));
    PENSTOCK_ASSIGN(const std::uint64_t size, reader->size());
    if (size != whole.bytes) return false;
    PENSTOCK_ASSIGN(const std::uint32_t crc, crc32c_of(*reader, 0, size, worker.buffer));
    return crc == whole.crc32c;
  }

  Result<void> make(Worker& worker, std::uint64_t object) {
    PENSTOCK_TRY(make_object(worker, object));
    return flush_now_and_then(worker);
  }

  // Its rows for the journal are worker.unflushed's last.
  Result<PublishedObject> make_object(Worker& worker, std::uint64_t object) {
    if (worker.maker == nullptr) {
      PENSTOCK_ASSIGN(worker.maker, generation_.recipe->maker());
    }
    const std::string name = object_name(worker, object);
    // Removed rather than replaced: replacing takes a temporary name for an instant.
    if (resume_) {
      Result<void> removed = backend_.names().remove(name);
      if (!removed.ok() && removed.error().code != Errc::not_found) return std::move(removed).error();
    }
    PENSTOCK_ASSIGN(const auto writer,
                    generation_.format->create(backend_, {.name = name,
                                                          .samples = generation_.end_sample(object) -
                                                                     generation_.first_sample(object),
                                                          .fields = generation_.recipe->fields()}));
    const std::size_t begin = worker.unflushed.samples.size();
    const Result<PublishedObject> whole = fill(worker, object, *writer);
    if (!whole.ok()) {
      worker.unflushed.samples.resize(begin);
      return whole.error();
    }
    worker.unflushed.objects.push_back({*whole, begin, worker.unflushed.samples.size()});
    const auto samples = worker.unflushed.samples_of(worker.unflushed.objects.back());
    enter(worker, object, *whole, samples);
    worker.made.samples_made += samples.size();
    for (const JournalSample& sample : samples) worker.made.bytes_made += sample.length;
    return *whole;
  }

  Result<PublishedObject> fill(Worker& worker, std::uint64_t object, ObjectWriter& writer) {
    const std::uint64_t end = generation_.end_sample(object);
    worker.labels.clear();
    for (std::uint64_t index = generation_.first_sample(object); index < end; ++index) {
      const SamplePlan& sample = plan(worker, index);
      PENSTOCK_ASSIGN(const std::span<const FieldBytes> made, worker.maker->make(index));
      worker.fields.assign(made.begin(), made.end());
      // Of the payload and of the whole object: once.
      for (FieldBytes& field : worker.fields) field.crc32c = crc32c_of(field);
      const std::uint32_t label = sample.label;
      worker.labels.push_back(label);
      PENSTOCK_ASSIGN(const Placement placement,
                      writer.add({.key = sample.key,
                                  .label = label,
                                  .label_name = label < labels_.size() ? labels_[label] : std::string_view{},
                                  .fields = worker.fields}));
      worker.unflushed.samples.push_back(
          {index, placement.offset, placement.length,
           placement.crc32c ? *placement.crc32c : *worker.fields.front().crc32c});
    }
    return writer.publish(durability_);
  }

  // Small: made again by every --resume.
  Result<void> make_companions() {
    for (std::size_t i = 0; i < companions_.size(); ++i) {
      PENSTOCK_ASSIGN(const PublishedObject whole,
                      write_companion(*generation_.format, backend_, companions_[i], durability_));
      set_object(generation_.objects + i, whole);
    }
    return success();
  }

  // What a kill loses is made again: at most a second of each worker's time, later a twentieth of all of it,
  // and never more samples than a journal may hold in memory.
  Result<void> flush_now_and_then(Worker& worker) {
    const Clock::time_point now = Clock::now();
    const auto patience =
        std::clamp<Clock::duration>((now - start_) / 20, std::chrono::seconds(1), std::chrono::seconds(30));
    constexpr std::size_t kMostUnflushed = 65536;
    if (now - worker.last_flush < patience && worker.unflushed.samples.size() < kMostUnflushed)
      return success();
    worker.last_flush = now;
    return flush(worker);
  }

  Result<void> flush(Worker& worker) {
    PENSTOCK_TRY(journal_->append(worker.unflushed));
    worker.made.samples_journaled += worker.unflushed.samples.size();
    worker.unflushed.clear();
    return success();
  }

  Result<void> finish() {
    Result<void> removed = backend_.names().remove(kManifestName);
    if (!removed.ok() && removed.error().code != Errc::not_found) return removed;
    return builder_.publish(backend_);
  }

  const Generation& generation_;
  Backend& backend_;
  const unsigned threads_;
  const bool resume_;
  const Durability durability_;
  Progress& progress_;
  const std::vector<std::string> labels_;
  const std::vector<Companion> companions_;
  ManifestBuilder builder_;
  DoneBits done_;
  std::vector<Worker> workers_;
  std::optional<JournalWriter> journal_;
  Clock::time_point start_;
};

Result<void> mend_finished(const Generation& generation, Tier& tier, unsigned threads, Progress& progress,
                           Generated& out) {
  PENSTOCK_ASSIGN(const Manifest manifest, Manifest::load(*tier.backend, kManifestName));
  PENSTOCK_ASSIGN(const std::vector<WrongObject> wrong,
                  check_object_sizes(tier.backend->names(), manifest, std::max(threads, 1U)));
  if (wrong.empty()) return success();
  return Generator(generation, tier, threads, true, progress).mend(manifest, wrong, out);
}

// What generate() does while it holds the lock.
Result<void> generate_alone(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                            Progress& progress, Generated& out) {
  Backend& backend = *tier.backend;
  // Another process may have come between the caller's look and the lock.
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, resume));
  sweep_temporaries(backend);
  if (complete) return mend_finished(generation, tier, threads, progress, out);
  PENSTOCK_ASSIGN(const std::optional<GenerationState> begun, read_generation_state(backend));
  if (!begun) PENSTOCK_TRY(write_generation_state(backend, generation.state));
  out.begun = true;
  Generator generator(generation, tier, threads, begun.has_value(), progress);
  PENSTOCK_TRY(generator.run(out));
  PENSTOCK_TRY(remove_generation_state(backend));
  out.begun = false;
  return success();
}

}  // namespace

Result<void> generate(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                      Progress& progress, Generated& out) {
  Namespace& names = tier.backend->names();
  try {
    const Result<Entry> before = names.stat(".penstock");
    const Result<std::unique_ptr<Lock>> lock = names.lock(kGenerationLockName);
    if (!lock.ok()) {
      // A folder that was made for a lock which then could not be made.
      const bool ours = !before.ok() && before.error().code == Errc::not_found;
      if (ours && lock.error().code != Errc::busy) static_cast<void>(names.remove(".penstock"));
      return lock.error();
    }
    Result<void> done = generate_alone(generation, tier, threads, resume, progress, out);
    if (out.begun) return done;
    Result<void> removed = names.remove(kGenerationLockName);
    if (done.ok() && !removed.ok() && removed.error().code != Errc::not_found) return removed;
    // Nothing was begun, so nothing stays; what others have in there keeps the folder.
    if (!done.ok()) static_cast<void>(names.remove(".penstock"));
    return done;
  } catch (const std::exception& thrown) {
    return make_error(Errc::exhausted, fmt::format("this machine ran out of something: {}", thrown.what()));
  }
}

}  // namespace penstock
