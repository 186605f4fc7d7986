#include "datagen/generator.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "datagen/generate_target.hpp"
#include "datagen/object_check.hpp"
#include "datagen/parallel.hpp"
#include "io_backends/base/interrupt.hpp"

namespace penstock {

Result<void> guarded(const std::function<Result<void>()>& step) {
  try {
    return step();
  } catch (const std::exception& thrown) {
    return make_error(Errc::exhausted, fmt::format("this machine ran out of something: {}", thrown.what()));
  }
}

Generator::Generator(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                     Communicator& ranks, Progress& progress)
    : generation_(generation),
      backend_(*tier.backend),
      ranks_(ranks),
      share_(share_of(generation, ranks.rank(), ranks.size())),
      threads_(static_cast<unsigned>(std::clamp<std::uint64_t>(share_.objects(), 1, std::max(threads, 1U)))),
      resume_(resume),
      // Where there is a file system, settle() comes at the end.
      durability_(backend_.native_path("") ? Durability::leaving : Durability::file),
      progress_(progress),
      labels_(generation.recipe->label_names()),
      companions_(generation.recipe->companions()),
      builder_(facts()),
      ledger_(generation, ranks, builder_),
      done_(share_.objects()) {
  for (unsigned i = 0; i < threads_; ++i)
    workers_.emplace_back(Making{generation_, backend_, durability_, resume_, labels_});
}

Result<void> Generator::run(Generated& out) {
  const auto stop = [this] { stopped_.store(true, std::memory_order_relaxed); };
  PENSTOCK_TRY(as_root_says(ranks_, ranks_.root() ? guarded([&] { return name_objects(); }) : success()));
  std::array<std::uint64_t, 2> journal{0, 0};  // the next segment, what was damaged
  if (resume_)
    PENSTOCK_TRY(work_together(
        ranks_,
        [&]() -> Result<void> {
          PENSTOCK_ASSIGN(const JournalRead read, keep_what_is_right());
          journal = {read.next_segment, read.damaged};
          return success();
        },
        stop));
  PENSTOCK_TRY(ranks_.all_reduce(std::span<std::uint64_t>(journal), Reduction::max));
  out.journal_damaged = journal[1];
  const auto ranks = static_cast<std::uint64_t>(ranks_.size());
  journal_.emplace(backend_, journal_key(generation_.state),
                   journal[0] + static_cast<std::uint64_t>(ranks_.rank()), ranks);
  PENSTOCK_TRY(ranks_.barrier());
  const Result<void> made = work_together(
      ranks_, [&] { return make_share(); }, stop);
  PENSTOCK_TRY(sum_up(out));
  PENSTOCK_TRY(made);
  PENSTOCK_TRY(ledger_.hand_over());
  return as_root_says(ranks_, ranks_.root() ? guarded([&] { return finish(); }) : success());
}

Result<void> Generator::mend(const Manifest& manifest, std::span<const std::uint64_t> wrong, Generated& out) {
  PENSTOCK_TRY(agree(ranks_, guarded([&] { return check_names(manifest); })));
  const auto at = [&](int rank) {
    return wrong.size() * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks_.size());
  };
  const auto mine = wrong.subspan(at(ranks_.rank()), at(ranks_.rank() + 1) - at(ranks_.rank()));
  if (ranks_.root()) {
    workers_.front().made.samples_kept = generation_.state.samples;
    for (const std::uint64_t object : wrong)
      if (object < generation_.objects) workers_.front().made.samples_kept -= samples_of(object);
    workers_.front().made.damaged = wrong.size();
    progress_.advance(workers_.front().made.samples_kept);
  }
  PENSTOCK_TRY(ranks_.barrier());
  Result<void> made = work_together(
      ranks_, [&] { return mend_share(manifest, mine); },
      [this] { stopped_.store(true, std::memory_order_relaxed); });
  PENSTOCK_TRY(sum_up(out));
  return made;
}

Error Generator::of_another_build(std::string_view name, std::string_view why) const {
  return make_error(Errc::corrupt,
                    fmt::format("'{}' {}: the data set was made by another build of penstock; go on with "
                                "that one, or make all of it anew in another folder",
                                name, why));
}

Result<void> Generator::check_names(const Manifest& manifest) {
  PENSTOCK_TRY(name_objects());
  if (manifest.objects() == builder_.objects()) return success();
  return of_another_build(kManifestName, "names other objects than this build makes");
}

Result<void> Generator::make_as(Worker& worker, const Manifest& manifest, std::uint64_t object) {
  std::string name;
  manifest.object_name(object, name);
  PublishedObject whole;
  if (object < generation_.objects) {
    if (worker.maker.name(object) != name) return of_another_build(name, "is no name that this build gives");
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

Result<void> Generator::sum_up(Generated& out) {
  std::array<std::uint64_t, 5> sums{};
  for (const Worker& worker : workers_) {
    const Generated& made = worker.made;
    const std::array<std::uint64_t, 5> one{made.samples_made, made.bytes_made, made.samples_kept,
                                           made.samples_journaled, made.damaged};
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  }
  out.seconds = seconds_;
  if (ranks_.size() > 1) {
    const RankFigures mine{.bytes = sums[1], .wall_s = seconds_};
    PENSTOCK_ASSIGN(const auto all, ranks_.gather(std::as_bytes(std::span(&mine, 1))));
    for (const std::vector<std::byte>& one : all)
      std::memcpy(&out.ranks.emplace_back(), one.data(), sizeof(RankFigures));
    PENSTOCK_TRY(ranks_.all_reduce(std::span<std::uint64_t>(sums), Reduction::sum));
    PENSTOCK_TRY(ranks_.all_reduce(std::span(&out.seconds, 1), Reduction::max));
  }
  out.samples_made = sums[0];
  out.bytes_made = sums[1];
  out.samples_kept = sums[2];
  out.samples_journaled = sums[3];
  out.damaged = sums[4];
  return success();
}

std::uint64_t Generator::samples_of(std::uint64_t object) const {
  return generation_.end_sample(object) - generation_.first_sample(object);
}

Result<void> Generator::name_objects() {
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

Result<JournalRead> Generator::keep_what_is_right() {
  return read_journal(backend_, journal_key(generation_.state), [this](const JournalSegment& segment) {
    return parallel_for(segment.objects.size(), threads_, 1, [&](unsigned worker, std::uint64_t i) {
      const JournalObject& object = segment.objects[i];
      return stopped() ? success() : keep(workers_[worker], object.whole, segment.samples_of(object));
    });
  });
}

Result<void> Generator::keep(Worker& worker, PublishedObject whole, std::span<const JournalSample> samples) {
  const std::uint64_t first = samples.front().index;
  if (first < share_.first_sample || first >= share_.end_sample) return success();
  const std::uint64_t object = generation_.object_of(first);
  if (first != generation_.first_sample(object) || samples.size() != samples_of(object)) return success();
  if (done_.get(object - share_.first_object)) return success();
  const auto right = is_right(worker, worker.maker.name(object), whole);
  if (!right.ok() && !tells_of_object(right.error())) return right.error();
  if (!right.ok() || !*right) {
    ++worker.made.damaged;
    return success();
  }
  worker.labels.clear();
  for (const JournalSample& sample : samples) worker.labels.push_back(worker.maker.label(sample.index));
  enter(worker, object, whole, samples);
  done_.set(object - share_.first_object);
  worker.made.samples_kept += samples.size();
  return success();
}

Result<bool> Generator::is_right(Worker& worker, std::string_view name, PublishedObject whole) {
  PENSTOCK_ASSIGN(const auto reader, backend_.open(name));
  PENSTOCK_ASSIGN(const std::uint64_t size, reader->size());
  if (size != whole.bytes) return false;
  PENSTOCK_ASSIGN(const std::uint32_t crc, crc32c_of(*reader, 0, size, worker.buffer));
  return crc == whole.crc32c;
}

void Generator::enter(const Worker& worker, std::uint64_t object, PublishedObject whole,
                      std::span<const JournalSample> samples) {
  ledger_.enter(object, whole, samples, worker.labels);
  progress_.advance(samples.size());
}

Result<void> Generator::make_share() {
  start_ = Clock::now();
  for (Worker& worker : workers_) worker.last_flush = start_;
  Result<void> made = parallel_for(share_.objects(), threads_, 4, [this](unsigned worker, std::uint64_t i) {
    return stopped() || done_.get(i) ? success() : make(workers_[worker], share_.first_object + i);
  });
  // Where the target is full, the journal may not fit either: its samples are made again then.
  for (Worker& worker : workers_) {
    Result<void> flushed = flush(worker);
    if (made.ok()) made = std::move(flushed);
  }
  if (made.ok() && !stopped() && ranks_.root()) made = make_companions();
  if (made.ok() && !stopped()) made = settle(backend_);
  seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  return made;
}

Result<void> Generator::mend_share(const Manifest& manifest, std::span<const std::uint64_t> wrong) {
  start_ = Clock::now();
  Result<void> made = parallel_for(wrong.size(), threads_, 1, [&](unsigned worker, std::uint64_t i) {
    return stopped() ? success() : make_as(workers_[worker], manifest, wrong[i]);
  });
  if (made.ok() && !stopped()) made = settle(backend_);
  seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  return made;
}

Result<void> Generator::make(Worker& worker, std::uint64_t object) {
  PENSTOCK_ASSIGN(const PublishedObject whole, make_object(worker, object));
  enter(worker, object, whole, worker.unflushed.samples_of(worker.unflushed.objects.back()));
  return flush_now_and_then(worker);
}

Result<PublishedObject> Generator::make_object(Worker& worker, std::uint64_t object) {
  std::vector<JournalSample>& rows = worker.unflushed.samples;
  const std::size_t begin = rows.size();
  PENSTOCK_ASSIGN(const PublishedObject whole, worker.maker.make(object, rows, worker.labels));
  worker.unflushed.objects.push_back({whole, begin, rows.size()});
  worker.made.samples_made += rows.size() - begin;
  for (std::size_t i = begin; i < rows.size(); ++i) worker.made.bytes_made += rows[i].length;
  return whole;
}

Result<void> Generator::make_companions() {
  for (std::size_t i = 0; i < companions_.size(); ++i) {
    PENSTOCK_ASSIGN(const PublishedObject whole,
                    write_companion(*generation_.format, backend_, companions_[i], durability_));
    const auto object = static_cast<std::uint32_t>(generation_.objects + i);
    builder_.set_object_bytes(object, whole.bytes);
    builder_.set_object_crc32c(object, whole.crc32c);
  }
  return success();
}

Result<void> Generator::flush_now_and_then(Worker& worker) {
  const Clock::time_point now = Clock::now();
  const auto patience =
      std::clamp<Clock::duration>((now - start_) / 20, std::chrono::seconds(1), std::chrono::seconds(30));
  constexpr std::size_t kMostUnflushed = 65536;
  if (now - worker.last_flush < patience && worker.unflushed.samples.size() < kMostUnflushed)
    return success();
  worker.last_flush = now;
  return flush(worker);
}

Result<void> Generator::flush(Worker& worker) {
  PENSTOCK_TRY(journal_->append(worker.unflushed));
  worker.made.samples_journaled += worker.unflushed.samples.size();
  worker.unflushed.clear();
  return success();
}

Result<void> Generator::finish() {
  Result<void> removed = backend_.names().remove(kManifestName);
  if (!removed.ok() && removed.error().code != Errc::not_found) return removed;
  return builder_.publish(backend_);
}

}  // namespace penstock
