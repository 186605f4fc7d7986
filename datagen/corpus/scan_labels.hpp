// The labels of a scan: names as they are met, and the numbers that they have in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

// Numbers names in the order of their first use, as long as a manifest can hold all of them. One thread.
class ScanLabels {
 public:
  // Of all names together; each takes a few bytes more.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  std::uint32_t number(std::string_view name) {
    if (name.empty() || too_many_) return kNoLabel;
    const auto [row, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (!added) return row->second;
    constexpr std::size_t kCompanionSuffixes = 4;
    bytes_ += name.size() + kCompanionSuffixes;
    if (bytes_ > kMostBytes) {
      give_up();
      return kNoLabel;
    }
    names_.emplace_back(name);
    return row->second;
  }
  bool too_many() const { return too_many_; }
  void give_up() {
    clear();
    too_many_ = true;
  }
  const std::vector<std::string>& names() const { return names_; }
  void clear() {
    numbers_.clear();
    names_.clear();
    bytes_ = 0;
    too_many_ = false;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
  std::size_t bytes_ = 0;
  bool too_many_ = false;
};

// The numbers that labels have in the end, and their names by these.
struct FinalLabels {
  std::vector<std::uint32_t> numbers;  // by their number in ScanLabels; kNoLabel: no sample has it
  std::vector<std::string> names;
};

// Labels that are all decimal numbers keep these numbers: 0 to 9 stay 0 to 9. Others are numbered in byte
// order of their names. Those that no sample has are left out.
FinalLabels final_labels(const std::vector<std::string>& names, const std::vector<bool>& used);

}  // namespace penstock
