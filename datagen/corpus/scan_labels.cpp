#include "datagen/corpus/scan_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// The value of a label's name. Absent unless the name is a decimal number of at most nine digits, without
// leading zeros.
std::optional<uint64_t> decimal_value(std::string_view name) {
  constexpr size_t kMostDigits = 9;
  if (name.size() > kMostDigits || (name.starts_with('0') && name.size() > 1)) return std::nullopt;
  return parse_digits<uint64_t>(name);
}

}  // namespace

FinalLabels final_labels(const std::vector<std::string>& names, const std::vector<bool>& used) {
  FinalLabels out{.numbers = std::vector<uint32_t>(names.size(), kNoLabel), .names = {}};
  std::vector<uint32_t> sorted;
  bool all_decimal = true;
  uint64_t largest = 0;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (i >= used.size() || !used[i]) continue;
    sorted.push_back(i);
    const auto value = decimal_value(names[i]);
    all_decimal = all_decimal && value;
    largest = std::max(largest, value.value_or(0));
  }
  // Keep decimal names as label numbers only if the largest is not too large: below kDenseLabels, or below
  // twice the number of labels. Every number up to the largest gets a name, also if no sample has it, so the
  // list of names could become huge.
  constexpr uint64_t kDenseLabels = 65536;
  if (all_decimal && !sorted.empty() && largest < std::max<uint64_t>(kDenseLabels, 2 * sorted.size())) {
    for (const uint32_t i : sorted) out.numbers[i] = uint32_t(*decimal_value(names[i]));
    for (uint64_t value = 0; value <= largest; ++value) out.names.push_back(fmt::format("{}", value));
    return out;
  }
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) { return names[a] < names[b]; });
  for (const uint32_t i : sorted) {
    out.numbers[i] = uint32_t(out.names.size());
    out.names.push_back(names[i]);
  }
  return out;
}

}  // namespace penstock
