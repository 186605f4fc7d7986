#include "miniapps/pipeline/batch_source.hpp"

#include <algorithm>
#include <numeric>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

double to_seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

double sum_s(std::span<const std::uint64_t> ns) {
  return to_seconds(std::accumulate(ns.begin(), ns.end(), std::uint64_t{0}));
}

std::string skipped_text(const SkippedObject& object) {
  const std::uint64_t more = object.samples - 1;
  if (object.whole) return more == 0 ? object.why : object.why + " (" + format_count(more + 1) + " times)";
  return object.why + " (the sample at byte " + std::to_string(object.offset) +
         (more == 0 ? "" : ", and " + format_count(more) + " more of it") + ")";
}

}  // namespace

SkippedObject skipped_object(const Manifest& manifest, std::uint64_t index, const Error& error) {
  const SampleEntry& entry = manifest.sample(index);
  std::string scratch;
  return {.name = std::string(manifest.object_name(entry.object, scratch)),
          .whole = manifest.one_object_per_sample(),
          .offset = entry.offset,
          .why = error.message()};
}

void LoaderLosses::add(const LoaderLosses& more) {
  skipped += more.skipped;
  dropped_tail += more.dropped_tail;
  for (const SkippedObject& object : more.named) name(object);
}

void LoaderLosses::name(const SkippedObject& object) {
  const auto there = std::find_if(named.begin(), named.end(),
                                  [&](const SkippedObject& one) { return one.name == object.name; });
  if (there == named.end()) {
    if (named.size() < kNamed) named.push_back(object);
    return;
  }
  there->samples += object.samples;
  if (object.offset >= there->offset) return;
  there->offset = object.offset;
  there->why = object.why;
}

std::vector<std::string> LoaderLosses::warnings() const {
  std::vector<std::string> lines;
  std::uint64_t more = skipped;
  for (const SkippedObject& object : named) {
    lines.push_back("skipped: " + skipped_text(object));
    more -= std::min(more, object.samples);
  }
  if (more > 0) lines.push_back("skipped: " + format_count(more) + " more");
  return lines;
}

std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const std::uint64_t> spent_ns) {
  std::vector<StageTally> tallies;
  for (std::size_t i = 0; i <= stages.size(); ++i)
    tallies.push_back({.stage = i == 0 ? "read" : std::string(stages[i - 1]),
                       .busy_s = to_seconds(spent_ns[i]),
                       .starved_s = sum_s(spent_ns.first(i)),
                       .blocked_s = sum_s(spent_ns.subspan(i + 1))});
  return tallies;
}

std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const std::uint64_t> worked_ns, std::uint64_t waited_ns,
                                    std::uint64_t late_ns) {
  std::vector<LostTime> parts{{"read", 0}};
  for (const std::string_view stage : stages) parts.push_back({std::string(stage), 0});
  parts.push_back({"collate", 0});
  const double all = sum_s(worked_ns);
  for (std::size_t i = 0; all > 0 && i < parts.size(); ++i)
    parts[i].seconds = to_seconds(waited_ns) * to_seconds(worked_ns[i]) / all;
  // If no worker finished a part during the wait, the wait was too short to divide.
  parts.push_back({"queue", to_seconds(all > 0 ? late_ns : late_ns + waited_ns)});
  return parts;
}

}  // namespace penstock
