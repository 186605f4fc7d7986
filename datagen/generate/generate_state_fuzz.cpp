// Fuzz target: the input is used as the state file and as a journal segment of an unfinished data set.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "datagen/generate/generate_state.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void put(Backend& backend, std::string_view name, std::span<const std::byte> bytes) {
  const auto writer = backend.create(name, bytes.size());
  require(writer.ok() && (*writer)->append(bytes).ok() && (*writer)->publish(Durability::visible).ok());
}

void read_state(Backend& backend, std::span<const std::byte> bytes) {
  put(backend, kGenerationStateName, bytes);
  const auto state = read_generation_state(backend);
  if (!state.ok()) {
    require(state.error().code == Errc::corrupt || state.error().code == Errc::unsupported);
    return;
  }
  require(state->has_value());
  const auto again = parse_generation_state(to_text(**state));
  require(again.ok() && difference(*again, **state).empty());
}

void read_segment(Backend& backend, std::span<const std::byte> bytes) {
  constexpr size_t kRowBytes = 32;
  put(backend, std::string(kJournalFolder) + "/00000003", bytes);
  size_t rows = 0;
  const auto read = read_journal(backend, 0, [&](const JournalSegment& segment) {
    size_t end = 0;
    for (const JournalObject& object : segment.objects) {
      require(object.begin == end && object.end > end && object.end <= segment.samples.size());
      end = object.end;
      const auto samples = segment.samples_of(object);
      for (size_t i = 0; i < samples.size(); ++i) require(samples[i].index == samples[0].index + i);
    }
    require(end == segment.samples.size());
    rows += segment.objects.size() + segment.samples.size();
    return success();
  });
  require(read.ok() && read->next_segment == 4);
  require(rows + read->damaged_parts == (bytes.size() + kRowBytes - 1) / kRowBytes);
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static penstock::Tier tier = penstock::open_tier("mem:unfinished", penstock::kNoNamedTiers).value();
  const auto bytes = std::as_bytes(std::span(data, size));
  penstock::read_state(*tier.backend, bytes);
  penstock::read_segment(*tier.backend, bytes);
  return 0;
}
