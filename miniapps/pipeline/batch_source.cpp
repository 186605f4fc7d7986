#include "miniapps/pipeline/batch_source.hpp"

#include <algorithm>
#include <numeric>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

double to_seconds(uint64_t ns) {
  return double(ns) * 1e-9;
}

double sum_s(std::span<const uint64_t> ns) {
  return to_seconds(std::accumulate(ns.begin(), ns.end(), uint64_t{0}));
}

std::string skipped_text(const SkippedObject& object) {
  const uint64_t other_samples = object.samples - 1;
  if (object.is_one_sample)
    return other_samples == 0 ? object.why : object.why + " (" + format_count(other_samples + 1) + " times)";
  return object.why + " (the sample at byte " + std::to_string(object.offset) +
         (other_samples == 0 ? "" : ", and " + format_count(other_samples) + " more of it") + ")";
}

}  // namespace

SkippedObject skipped_object(const Manifest& manifest, uint64_t index, const Error& error) {
  const SampleEntry& entry = manifest.sample(index);
  std::string scratch;
  return {.name = std::string(manifest.object_name(entry.object, scratch)),
          .is_one_sample = manifest.one_object_per_sample(),
          .offset = entry.offset,
          .why = error.message()};
}

void LoaderLosses::add(const LoaderLosses& more) {
  skipped += more.skipped;
  dropped_tail += more.dropped_tail;
  pictures.add(more.pictures);
  for (const SkippedObject& object : more.named) name(object);
}

void LoaderLosses::name(const SkippedObject& object) {
  const auto known_object = std::find_if(named.begin(), named.end(),
                                         [&](const SkippedObject& one) { return one.name == object.name; });
  if (known_object == named.end()) {
    if (named.size() < kMostNamed) named.push_back(object);
    return;
  }
  known_object->samples += object.samples;
  if (object.offset >= known_object->offset) return;
  known_object->offset = object.offset;
  known_object->why = object.why;
}

std::vector<std::string> LoaderLosses::warnings() const {
  std::vector<std::string> lines;
  uint64_t unnamed_samples = skipped;
  for (const SkippedObject& object : named) {
    lines.push_back("skipped: " + skipped_text(object));
    unnamed_samples -= std::min(unnamed_samples, object.samples);
  }
  if (unnamed_samples > 0) lines.push_back("skipped: " + format_count(unnamed_samples) + " more");
  return lines;
}

std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const uint64_t> spent_ns) {
  std::vector<StageTally> tallies;
  for (size_t i = 0; i <= stages.size(); ++i)
    tallies.push_back({.stage = i == 0 ? "read" : std::string(stages[i - 1]),
                       .busy_s = to_seconds(spent_ns[i]),
                       .starved_s = sum_s(spent_ns.first(i)),
                       .blocked_s = sum_s(spent_ns.subspan(i + 1))});
  return tallies;
}

std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const uint64_t> worked_ns, uint64_t waited_ns,
                                    uint64_t late_ns) {
  std::vector<LostTime> parts{{"read", 0}};
  for (const std::string_view stage : stages) parts.push_back({std::string(stage), 0});
  parts.push_back({"collate", 0});
  const double all_s = sum_s(worked_ns);
  for (size_t i = 0; all_s > 0 && i < parts.size(); ++i)
    parts[i].seconds = to_seconds(waited_ns) * to_seconds(worked_ns[i]) / all_s;
  // If no worker finished a part of its work during the wait (all_s is 0), the wait was short. It cannot be
  // divided, so all of it counts as "queue".
  parts.push_back({"queue", to_seconds(all_s > 0 ? late_ns : late_ns + waited_ns)});
  return parts;
}

}  // namespace penstock
