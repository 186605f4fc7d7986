// Fuzz target: the input is a word of the command line. Every parser of such words reads it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io_backends/core/units.hpp"
#include "io_backends/decorators/faulty.hpp"
#include "io_backends/tiers/tier.hpp"

namespace {

constexpr size_t kLongestList = 1'000'000;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_numbers(std::string_view word) {
  using namespace penstock;
  const auto size = parse_size(word);
  if (size.ok()) require(!format_size(*size).empty());
  const auto duration = parse_duration(word);
  if (duration.ok()) require(duration->count() >= 0 && !format_duration(*duration).empty());
  const auto count = parse_count(word);
  if (count.ok()) require(parse_count(std::to_string(*count)).value() == *count);
  static_cast<void>(parse_rate(word));
  static_cast<void>(parse_real(word));
  const auto list = parse_list(word);
  if (list.ok()) require(!list->empty() && list->size() <= kLongestList);
}

void read_names(std::string_view word) {
  using namespace penstock;
  const auto tier = parse_tier(word, kNoNamedTiers);
  if (tier.ok()) {
    require(tier->text == word && !tier->backend.empty());
    for (const OptionWord& option : tier->options) require(!option.key.empty());
  }
  const auto faults = parse_faults(word);
  if (faults.ok())
    for (const Fault& fault : *faults)
      require(fault.probability >= 0 && fault.probability <= 1 &&
              fault.first_operation <= fault.last_operation);
  if (word.size() < 64) static_cast<void>(nearest_name(word, {"read", "write", "latency", "capacity"}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string word(reinterpret_cast<const char*>(data), size);
  read_numbers(word);
  read_names(word);
  return 0;
}
