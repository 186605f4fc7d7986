// Collects the label names of a scan in the order in which they are found, and gives them their final
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

// Numbers label names in the order of their first use. Gives up if there are too many for a manifest. Only
// one thread may use it.
class ScanLabels {
 public:
  // Limit for the bytes of all names together. Each name counts as a few bytes more than its length.
  static constexpr size_t kMostNameBytes = size_t{16} << 20;

  uint32_t number_of(std::string_view name) {
    if (name.empty() || too_many_) return kNoLabel;
    const auto [row, added] = numbers_.emplace(name, uint32_t(names_.size()));
    if (!added) return row->second;
    constexpr size_t kExtraBytesPerName = 4;
    name_bytes_ += name.size() + kExtraBytesPerName;
    if (name_bytes_ > kMostNameBytes) {
      discard_all();
      return kNoLabel;
    }
    names_.emplace_back(name);
    return row->second;
  }
  bool too_many() const { return too_many_; }
  void discard_all() {
    clear();
    too_many_ = true;
  }
  const std::vector<std::string>& names() const { return names_; }
  void clear() {
    numbers_.clear();
    names_.clear();
    name_bytes_ = 0;
    too_many_ = false;
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
  size_t name_bytes_ = 0;
  bool too_many_ = false;
};

// The final numbers of labels, and their names; names[n] is the name of the label with number n.
struct FinalLabels {
  // Entry i is the final number of label i of ScanLabels, or kNoLabel if no sample has that label.
  std::vector<uint32_t> numbers;
  std::vector<std::string> names;
};

// Computes the final numbers of labels that have samples: used[i] is true if a sample has label i. If the
// names of all these labels are decimal numbers, they keep these numbers: "7" becomes 7. Every number up to
// the largest then has a name; if the largest is 65,536 or more, it must be below twice the number of labels.
// Otherwise labels are numbered in byte order of their names.
FinalLabels final_labels(const std::vector<std::string>& names, const std::vector<bool>& used);

}  // namespace penstock
