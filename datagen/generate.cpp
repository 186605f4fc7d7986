#include "datagen/generate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datagen/companions.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/object_check.hpp"
#include "datagen/parallel.hpp"
#include "io_backends/base/buffer.hpp"
#include "io_backends/base/crc32c.hpp"
#include "io_backends/base/fd.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/posix_root.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// ---- The target ----------------------------------------------------------------------------------------
// The first thing below the root that generate did not leave there itself; "" if there is none. What a fresh
// file system brings along does not count.
Result<std::string> first_foreign_entry(Backend& backend) {
  std::string found;
  const auto look_for = [&found](auto is_ours) {
    return [&found, is_ours](const Entry& entry) {
      if (is_ours(entry.name)) return true;
      found = entry.name;
      return false;
    };
  };
  Result<void> listed = backend.names().list(
      "", look_for([](std::string_view name) { return name == ".penstock" || name == "lost+found"; }));
  if (listed.ok() && found.empty())
    listed = backend.names().list(".penstock", look_for([](std::string_view name) {
                                    return name == kGenerationStateName || name == kGenerationLockName ||
                                           name == kJournalFolder;
                                  }));
  if (!listed.ok() && listed.error().code != Errc::not_found) return std::move(listed).error();
  return found;
}

Error occupied(const Tier& tier, std::string_view why, std::string_view remedy) {
  return make_error(Errc::already_exists, fmt::format("'{}' {}: {}", tier.root, why, remedy));
}

Error a_file(const Tier& tier) {
  return make_error(Errc::invalid_argument,
                    fmt::format("'{}' is a file or below one; --out takes a folder", tier.root));
}

// A finished corpus: is it the one that is wanted?
Result<bool> check_finished(Tier& tier, const GenerationState& wanted) {
  PENSTOCK_ASSIGN(const Manifest manifest, Manifest::load(*tier.backend, kManifestName));
  const ManifestFacts& facts = manifest.facts();
  const GenerationState there{.recipe = facts.recipe,
                              .format = facts.format,
                              .seed = facts.seed,
                              .samples = manifest.samples(),
                              .settings = facts.settings};
  const std::string differs = difference(there, wanted);
  if (differs.empty()) return true;
  return occupied(tier, fmt::format("holds a finished corpus of {}", differs), "choose another folder");
}

// Temporary files of a process that was killed, where the file system has no nameless ones. Under the lock.
void sweep_temporaries(const Backend& backend) {
  const auto root = backend.native_path("");
  if (!root) return;
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entry(*root, failure);
  const std::filesystem::recursive_directory_iterator end;
  while (!failure && entry != end) {
    const std::filesystem::path path = entry->path();
    entry.increment(failure);
    std::error_code ignored;
    if (path.filename().native().starts_with(kTemporaryPrefix)) std::filesystem::remove(path, ignored);
  }
}

// Every byte written below the root survives a power cut from here on.
Result<void> settle(const Backend& backend) {
  const auto root = backend.native_path("");
  if (!root || backend.caps().volatile_memory) return success();
  const Fd folder(::open(root->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::syncfs(folder.get()) != 0) return errno_error(errno, "cannot sync", root->native());
  return success();
}

// ---- Making --------------------------------------------------------------------------------------------
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
  SamplePlan first;
  std::vector<JournalEntry> unflushed;
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
        // Where there is a file system to sync as a whole, that is far cheaper than each object by itself.
        durability_(backend_.native_path("") ? Durability::visible : Durability::file),
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
    }
    journal_.emplace(backend_, next_segment);
    const Clock::time_point start = Clock::now();
    start_ = start;
    for (Worker& worker : workers_) worker.last_flush = start;
    Result<void> made =
        parallel_for(generation_.objects, threads_, 4, [this](unsigned worker, std::uint64_t object) {
          return done_.get(object) ? success() : make(workers_[worker], object);
        });
    // Where the target is full, the journal may not fit either: its samples are made again then.
    for (Worker& worker : workers_) {
      Result<void> flushed = journal_->append(worker.unflushed);
      if (made.ok()) made = std::move(flushed);
    }
    if (made.ok()) made = make_companions();
    if (made.ok()) made = settle(backend_);
    out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const Worker& worker : workers_) add(out, worker.made);
    PENSTOCK_TRY(std::move(made));
    return finish();
  }

 private:
  ManifestFacts facts() const {
    return {.recipe = generation_.state.recipe,
            .format = generation_.state.format,
            .codec = std::string(generation_.recipe->fields().front().codec),
            .seed = generation_.state.seed,
            .settings = generation_.state.settings,
            .checksums = true,
            .label_names = labels_};
  }

  static void add(Generated& sum, const Generated& one) {
    sum.samples_made += one.samples_made;
    sum.bytes_made += one.bytes_made;
    sum.samples_kept += one.samples_kept;
    sum.damaged += one.damaged;
  }

  std::uint64_t first_of(std::uint64_t object) const {
    return generation_.format->first_sample(object, generation_.state.samples);
  }
  std::uint64_t end_of(std::uint64_t object) const {
    return object + 1 == generation_.objects ? generation_.state.samples : first_of(object + 1);
  }
  std::string name_of(std::uint64_t object, SamplePlan& plan) const {
    const Recipe& recipe = *generation_.recipe;
    recipe.plan(first_of(object), plan);
    return generation_.format->object_name(object, generation_.objects, generation_.state.recipe, plan.key,
                                           recipe.fields().front().extension);
  }

  Result<void> name_objects() {
    SamplePlan plan;
    for (std::uint64_t object = 0; object < generation_.objects; ++object) {
      if (object % 1024 == 0) PENSTOCK_TRY(check_interrupt());
      builder_.add_object(name_of(object, plan), 0);
    }
    for (const Companion& companion : companions_)
      builder_.add_object(companion_name(*generation_.format, companion), 0);
    builder_.resize_samples(generation_.state.samples);
    return success();
  }

  void enter(Worker& worker, std::uint64_t object, const JournalEntry& entry) {
    generation_.recipe->plan(entry.index, worker.plan);
    builder_.set_sample(entry.index, {.offset = entry.offset,
                                      .length = entry.length,
                                      .object = static_cast<std::uint32_t>(object),
                                      .label = worker.plan.label,
                                      .crc32c = entry.crc32c});
  }

  Result<JournalRead> keep_what_is_right() {
    return read_journal(backend_, [this](const std::vector<JournalEntry>& entries) {
      // Where each object's samples start: they were written one behind another.
      std::vector<std::size_t> starts;
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (i == 0 || entries[i].index != entries[i - 1].index + 1 || opens_object(entries[i].index))
          starts.push_back(i);
      return parallel_for(starts.size(), threads_, 1, [&](unsigned worker, std::uint64_t i) {
        const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : entries.size();
        return keep(workers_[worker], std::span(entries).subspan(starts[i], end - starts[i]));
      });
    });
  }

  // The object that sample `index` lies in: formats fill theirs in order.
  std::uint64_t object_of(std::uint64_t index) const {
    std::uint64_t low = 0;
    std::uint64_t high = generation_.objects;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (first_of(middle) <= index ? low : high) = middle;
    }
    return low;
  }
  bool opens_object(std::uint64_t index) const {
    return index < generation_.state.samples && first_of(object_of(index)) == index;
  }

  // Takes an object over when the journal has all its samples and all are there, byte for byte.
  Result<void> keep(Worker& worker, std::span<const JournalEntry> entries) {
    if (entries.front().index >= generation_.state.samples) return success();
    const std::uint64_t object = object_of(entries.front().index);
    if (entries.front().index != first_of(object) || entries.size() != end_of(object) - first_of(object))
      return success();
    if (done_.get(object)) return success();
    PENSTOCK_ASSIGN(const bool right, is_right(worker, object, entries));
    if (!right) {
      ++worker.made.damaged;
      return success();
    }
    for (const JournalEntry& entry : entries) enter(worker, object, entry);
    done_.set(object);
    worker.made.samples_kept += entries.size();
    progress_.advance(entries.size());
    return success();
  }

  Result<bool> is_right(Worker& worker, std::uint64_t object, std::span<const JournalEntry> entries) {
    const auto reader = backend_.open(name_of(object, worker.first));
    if (!reader.ok()) {
      if (reader.error().code == Errc::not_found) return false;
      return reader.error();
    }
    PENSTOCK_ASSIGN(const std::uint64_t size, (*reader)->size());
    // A sample from the first byte on is a plain file: nothing may follow it.
    const bool file = entries.size() == 1 && generation_.objects == generation_.state.samples;
    if (file && entries[0].offset == 0 && size != entries[0].length) return false;
    for (const JournalEntry& entry : entries) {
      if (entry.length > size || entry.offset > size - entry.length) return false;
      PENSTOCK_ASSIGN(const std::uint32_t crc,
                      crc32c_of(**reader, entry.offset, entry.length, worker.buffer));
      if (crc != entry.crc32c) return false;
    }
    builder_.set_object_bytes(static_cast<std::uint32_t>(object), size);
    return true;
  }

  Result<void> make(Worker& worker, std::uint64_t object) {
    if (worker.maker == nullptr) {
      PENSTOCK_ASSIGN(worker.maker, generation_.recipe->maker());
    }
    const std::string name = name_of(object, worker.first);
    // Removed rather than replaced: replacing takes a temporary name for an instant.
    if (resume_) {
      Result<void> removed = backend_.names().remove(name);
      if (!removed.ok() && removed.error().code != Errc::not_found) return removed;
    }
    PENSTOCK_ASSIGN(const auto writer,
                    generation_.format->create(backend_, {.name = name,
                                                          .samples = end_of(object) - first_of(object),
                                                          .fields = generation_.recipe->fields()}));
    const std::size_t unpublished = worker.unflushed.size();
    const Result<std::uint64_t> bytes = fill(worker, object, *writer);
    if (!bytes.ok()) {
      worker.unflushed.resize(unpublished);
      return bytes.error();
    }
    for (std::size_t i = unpublished; i < worker.unflushed.size(); ++i) {
      enter(worker, object, worker.unflushed[i]);
      worker.made.bytes_made += worker.unflushed[i].length;
    }
    builder_.set_object_bytes(static_cast<std::uint32_t>(object), *bytes);
    const std::uint64_t samples = worker.unflushed.size() - unpublished;
    worker.made.samples_made += samples;
    progress_.advance(samples);
    return flush_now_and_then(worker);
  }

  Result<std::uint64_t> fill(Worker& worker, std::uint64_t object, ObjectWriter& writer) {
    const Recipe& recipe = *generation_.recipe;
    const std::uint64_t end = end_of(object);
    for (std::uint64_t index = first_of(object); index < end; ++index) {
      recipe.plan(index, worker.plan);
      PENSTOCK_ASSIGN(const std::span<const FieldBytes> fields, worker.maker->make(index));
      const std::uint32_t label = worker.plan.label;
      PENSTOCK_ASSIGN(const Placement placement,
                      writer.add({.key = worker.plan.key,
                                  .label = label,
                                  .label_name = label < labels_.size() ? labels_[label] : std::string_view{},
                                  .fields = fields}));
      worker.unflushed.push_back({index, placement.offset, placement.length, crc32c_of(fields.front())});
    }
    return writer.publish(durability_);
  }

  // Small: made again by every --resume.
  Result<void> make_companions() {
    for (std::size_t i = 0; i < companions_.size(); ++i) {
      PENSTOCK_ASSIGN(const std::uint64_t bytes,
                      write_companion(*generation_.format, backend_, companions_[i], durability_));
      builder_.set_object_bytes(static_cast<std::uint32_t>(generation_.objects + i), bytes);
    }
    return success();
  }

  // What a kill loses is made again: at most a second of each worker's time, later a twentieth of all of it.
  Result<void> flush_now_and_then(Worker& worker) {
    const Clock::time_point now = Clock::now();
    const auto patience =
        std::clamp<Clock::duration>((now - start_) / 20, std::chrono::seconds(1), std::chrono::seconds(30));
    if (now - worker.last_flush < patience) return success();
    worker.last_flush = now;
    PENSTOCK_TRY(journal_->append(worker.unflushed));
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

}  // namespace

Result<bool> check_target(Tier& tier, const GenerationState& wanted, bool resume) {
  Backend& backend = *tier.backend;
  const Result<Entry> root = backend.names().stat("");
  if (!root.ok()) {
    if (root.error().sys_errno == ENOTDIR) return a_file(tier);
    if (root.error().code == Errc::not_found) return false;
    return root.error();
  }
  if (!root->folder) return a_file(tier);
  PENSTOCK_ASSIGN(const std::optional<GenerationState> state, read_generation_state(backend));
  if (state) {
    if (!resume)
      return occupied(tier, "holds an unfinished data set of 'penstock generate'",
                      "add --resume to go on with it, or remove the folder");
    const std::string differs = difference(*state, wanted);
    if (differs.empty()) return false;
    return occupied(tier, fmt::format("was begun with {}", differs),
                    "say the same to --resume, or choose another folder");
  }
  const bool finished = backend.names().stat(kManifestName).ok();
  if (finished && resume) return check_finished(tier, wanted);
  if (finished) return occupied(tier, "holds a corpus already", "choose another folder, or remove this one");
  PENSTOCK_ASSIGN(const std::string found, first_foreign_entry(backend));
  if (found.empty()) return false;
  return occupied(tier, fmt::format("is not empty (there is '{}')", found),
                  "choose an empty or a new folder");
}

namespace {

// What generate() does while it holds the lock.
Result<void> generate_alone(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                            Progress& progress, Generated& out) {
  Backend& backend = *tier.backend;
  // Another process may have come between the caller's look and the lock.
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, resume));
  if (complete) return success();
  sweep_temporaries(backend);
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
    PENSTOCK_ASSIGN(const std::unique_ptr<Lock> lock, names.lock(kGenerationLockName));
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
