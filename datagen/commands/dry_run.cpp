// Threads: the main thread calls the functions that dry_run.hpp declares. The threads of parallel_for() call
// the lambda `check_journaled` in reusable_in_started_set(). All that it changes are two atomics.
// Lock: none.
// Memory: everything allocates.
// Ctrl-C: parallel_for() checks for it before each object. measure_making() does not check; it usually takes
// half a second.
// Crash: nothing is written.
#include "datagen/commands/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generate_target.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kMeasureTime = std::chrono::milliseconds(250);

// Copies the pieces of a field into a buffer, as a writer would copy them. `filled_bytes` is where the next
// copy goes; after the end of the buffer comes its begin.
void copy_pieces(const FieldBytes& field, std::span<std::byte> buffer, size_t& filled_bytes) {
  for (std::span<const std::byte> piece : field.pieces)
    while (!piece.empty()) {
      if (filled_bytes == buffer.size()) filled_bytes = 0;
      const size_t bytes = std::min(piece.size(), buffer.size() - filled_bytes);
      std::memcpy(buffer.data() + filled_bytes, piece.data(), bytes);
      filled_bytes += bytes;
      piece = piece.subspan(bytes);
    }
}

// The least time, in seconds, to make `samples` samples. The actual time is longer if storage is slow.
double seconds_at_least(const Generation& generation, uint64_t samples, const MakingRate& rate,
                        unsigned threads) {
  const double fraction = double(samples) / double(generation.state.samples);
  return fraction * double(generation.payload_expected) / std::max(1.0, double(rate.bytes)) * rate.seconds /
         threads;
}

Result<ReusableObjects> reusable_in_finished_set(const Generation& generation, Tier& tier, unsigned threads) {
  PENSTOCK_ASSIGN(const Manifest manifest, Manifest::load(*tier.backend, kManifestName));
  PENSTOCK_ASSIGN(const std::vector<ObjectVerdict> wrong,
                  check_object_sizes(tier.backend->names(), manifest, threads));
  ReusableObjects reusable{.objects = generation.objects, .samples = generation.state.samples};
  for (const ObjectVerdict& one : wrong) {
    // Companions (objects without samples) are numbered after all other objects. They are not counted here.
    if (one.object >= generation.objects) continue;
    --reusable.objects;
    reusable.samples -= generation.samples_of(one.object);
  }
  return reusable;
}

struct JournaledObject {
  uint64_t object = 0;
  uint64_t bytes = 0;
};

// The objects that the journal names. If it names an object several times, the first entry counts.
Result<std::vector<JournaledObject>> journaled_objects(const Generation& generation, Tier& tier) {
  std::vector<JournaledObject> journaled;
  const auto gather = [&](const JournalSegment& segment) -> Result<void> {
    for (const JournalObject& object : segment.objects) {
      const auto samples = segment.samples_of(object);
      const uint64_t first = samples.front().index;
      if (first >= generation.state.samples) continue;
      const uint64_t index = generation.object_of(first);
      if (first == generation.first_sample(index) && samples.size() == generation.samples_of(index))
        journaled.push_back({index, object.published.bytes});
    }
    return success();
  };
  PENSTOCK_TRY(outcome_of(read_journal(*tier.backend, journal_key(generation.state), gather)));
  std::stable_sort(journaled.begin(), journaled.end(),
                   [](const JournaledObject& a, const JournaledObject& b) { return a.object < b.object; });
  journaled.erase(
      std::unique(journaled.begin(), journaled.end(),
                  [](const JournaledObject& a, const JournaledObject& b) { return a.object == b.object; }),
      journaled.end());
  return journaled;
}

Result<ReusableObjects> reusable_in_started_set(const Generation& generation, Tier& tier, unsigned threads) {
  PENSTOCK_ASSIGN(const std::vector<JournaledObject> journaled, journaled_objects(generation, tier));
  std::atomic<uint64_t> objects{0};
  std::atomic<uint64_t> samples{0};
  const auto check_journaled = [&](unsigned, uint64_t i) -> Result<void> {
    const JournaledObject& one = journaled[size_t(i)];
    SamplePlan plan;
    generation.recipe->plan(generation.first_sample(one.object), plan);
    const auto entry = tier.backend->names().stat(generation.object_name(one.object, plan));
    if (!entry.ok() && !concerns_object(entry.error())) return entry.error();
    if (!entry.ok() || entry->folder || entry->bytes != one.bytes) return success();
    // Relaxed order is enough: the sums are read after the threads have ended.
    objects.fetch_add(1, std::memory_order_relaxed);
    samples.fetch_add(generation.samples_of(one.object), std::memory_order_relaxed);
    return success();
  };
  PENSTOCK_TRY(parallel_for(journaled.size(), threads, 64, check_journaled));
  return ReusableObjects{.objects = objects.load(), .samples = samples.load()};
}

}  // namespace

size_t measure_buffer_bytes(uint64_t available_bytes) {
  constexpr uint64_t kMostBytes = uint64_t{256} << 20U;
  constexpr uint64_t kLeastBytes = uint64_t{1} << 20U;
  if (available_bytes == 0) return kMostBytes;  // unknown
  return size_t(std::clamp(available_bytes / 8, kLeastBytes, kMostBytes));
}

Result<MakingRate> measure_making(const Recipe& recipe) {
  PENSTOCK_ASSIGN(const auto maker, recipe.maker());
  std::vector<std::byte> buffer(measure_buffer_bytes(available_memory()));
  size_t filled_bytes = 0;
  uint64_t next = 0;
  const auto make_for_measure_time = [&]() -> Result<MakingRate> {
    MakingRate rate;
    const Clock::time_point start = Clock::now();
    do {
      PENSTOCK_ASSIGN(const std::span<const FieldBytes> fields, maker->make(next++ % recipe.samples()));
      for (const FieldBytes& field : fields) {
        copy_pieces(field, buffer, filled_bytes);
        rate.bytes += field.bytes;
      }
      ++rate.samples;
      rate.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (Clock::now() - start < kMeasureTime);
    return rate;
  };
  // Warm-up, because a recipe makes its prepared parts when they are first used.
  PENSTOCK_TRY(make_for_measure_time());
  return make_for_measure_time();
}

Result<std::optional<ReusableObjects>> find_reusable_objects(const Generation& generation, Tier& tier,
                                                             unsigned threads) {
  const Result<bool> finished = check_target(tier, generation.state, true);
  // Do not report the error here: the command fails with it later.
  if (!finished.ok()) return std::optional<ReusableObjects>();
  if (!*finished) {
    PENSTOCK_ASSIGN(const auto started, read_generation_state(*tier.backend, tier.root));
    if (!started) return std::optional<ReusableObjects>();
  }
  PENSTOCK_ASSIGN(const ReusableObjects reusable, *finished
                                                      ? reusable_in_finished_set(generation, tier, threads)
                                                      : reusable_in_started_set(generation, tier, threads));
  return std::optional<ReusableObjects>(reusable);
}

Result<std::string> describe_plan(const Output& output, const Generation& generation, Tier& tier,
                                  unsigned threads, const std::optional<ReusableObjects>& reusable,
                                  std::string_view refused) {
  const GenerationState& state = generation.state;
  const Result<uint64_t> free_bytes = tier.backend->names().free_bytes();
  PENSTOCK_ASSIGN(const MakingRate rate, measure_making(*generation.recipe));
  const uint64_t samples_to_make = state.samples - (reusable ? reusable->samples : 0);
  const double seconds = seconds_at_least(generation, samples_to_make, rate, threads);
  if (output.json) {
    Json row{{"kind", "plan"},
             {"recipe", state.recipe},
             {"format", state.format},
             {"samples", state.samples},
             {"objects", generation.objects},
             {"bytes", generation.bytes_expected},
             {"bytes_at_most", generation.bytes_are_limit},
             {"payload_bytes", generation.payload_expected},
             {"labels", generation.recipe->label_names().size()},
             {"seed", state.seed},
             {"settings", state.settings},
             {"threads", threads},
             {"seconds_at_least", seconds},
             {"out", tier.root}};
    if (!generation.size_explanation.empty()) row["size_for"] = generation.size_explanation;
    if (reusable) {
      row["samples_kept"] = reusable->samples;
      row["objects_kept"] = reusable->objects;
      row["samples_to_make"] = samples_to_make;
      row["objects_to_make"] = generation.objects - reusable->objects;
    }
    if (free_bytes.ok()) row["free_bytes"] = *free_bytes;
    if (!refused.empty()) row["refused"] = refused;
    return one_line(row) + "\n";
  }
  Table table({{"", Align::left}, {"", Align::left}});
  table.row({"recipe", state.recipe});
  table.row({"format", state.format});
  table.row({"samples", format_count(state.samples, output)});
  if (!generation.size_explanation.empty()) table.row({"", generation.size_explanation});
  table.row({"objects", format_count(generation.objects, output)});
  table.row({"bytes", fmt::format("{} {}", generation.size_prefix(),
                                  format_bytes(double(generation.bytes_expected), output))});
  if (reusable) {
    table.row(
        {"existing", fmt::format("{} in {}, sized like these", count_of(reusable->samples, "sample", output),
                                 count_of(reusable->objects, "object", output))});
    table.row(
        {"to generate", fmt::format("{} in {}", count_of(samples_to_make, "sample", output),
                                    count_of(generation.objects - reusable->objects, "object", output))});
  }
  table.row({"seed", std::to_string(state.seed)});
  for (const auto& [key, value] : state.settings) table.row({key, value});
  table.row({"time", fmt::format("at least {} on {} threads (measured by making {} samples in memory: {} {} "
                                 "per thread); {} adds to it",
                                 format_seconds(seconds), threads, rate.samples,
                                 format_rate(double(rate.bytes) / rate.seconds, output), rate_unit(output),
                                 generation.bytes_are_limit ? "compression, which is not included,"
                                                            : "slower storage")});
  table.row({"out", tier.root});
  if (free_bytes.ok()) table.row({"free space", format_bytes(double(*free_bytes), output)});
  return table.text();
}

}  // namespace penstock
