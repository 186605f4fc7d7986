// What a scan leaves out, and how it says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/format/format.hpp"
#include "datagen/objects/folder_walk.hpp"

namespace penstock {

// A name in quotes, cut where it is very long.
std::string quoted_name(std::string_view name);

// Objects that are wanted and cannot be had. One thread at a time.
class LeftOut {
 public:
  void add(std::string_view name, Error error) {
    ++count_;
    if (names_.size() < kNamed) names_.push_back(quoted_name(name));
    if (!first_) first_ = std::move(error);
  }
  std::uint64_t count() const { return count_; }
  const std::optional<Error>& first() const { return first_; }
  // Only where there are any.
  std::string words() const;

 private:
  static constexpr std::size_t kNamed = 3;
  std::uint64_t count_ = 0;
  std::vector<std::string> names_;
  std::optional<Error> first_;
};

// One more, behind what the report says of it already.
void add_part(ScanReport& report, std::string_view part);
// As add_part(), where there are any: "3 links that lead nowhere (first: 'x')".
void add_count(ScanReport& report, std::uint64_t count, std::string_view one, std::string_view many,
               std::string_view first);
// What walking the folders left out.
ScanReport report_of(const FolderWalk& walk);
// Why there is nothing to be read.
Error no_samples(const Tier& tier, const OpenCorpus& how, const ScanReport& report);

}  // namespace penstock
