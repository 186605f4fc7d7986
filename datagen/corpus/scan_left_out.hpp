// Counts and describes what a scan leaves out.
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

// A name in quotes, shortened if it is very long.
std::string quoted_name(std::string_view name);

// Counts objects that the scan wants but cannot read, keeps the first error, and passes each object on to
// CorpusRequest::on_unreadable_object. Only one thread at a time may use it.
class UnreadableObjects {
 public:
  explicit UnreadableObjects(const CorpusRequest& request) : on_object_(request.on_unreadable_object) {}

  void add(std::string_view name, Error error) {
    if (on_object_) on_object_(name, error);
    ++count_;
    if (names_.size() < kMostNames) names_.push_back(quoted_name(name));
    if (!first_error_) first_error_ = std::move(error);
  }
  uint64_t count() const { return count_; }
  const std::optional<Error>& first_error() const { return first_error_; }
  // A text for the user. May only be called if count() is not 0.
  std::string to_text() const;

 private:
  static constexpr size_t kMostNames = 3;
  const std::function<void(std::string_view object, const Error& why)>& on_object_;
  uint64_t count_ = 0;
  std::vector<std::string> names_;
  std::optional<Error> first_error_;
};

// Appends one part, such as "2 hidden", to ScanReport::text.
void add_part(ScanReport& report, std::string_view part);
// Appends a count to ScanReport::text unless it is 0, such as "3 links that lead nowhere (first: 'x')".
void add_count(ScanReport& report, uint64_t count, std::string_view singular, std::string_view plural,
               std::string_view first);
// Fills a report with what the listing of folders left out.
ScanReport report_left_out(const FolderWalk& walk, bool follows_links, bool all_links_known);
// The error for a scan that found no samples; it explains why there are none.
Error explain_no_samples(const Tier& tier, const CorpusRequest& request, const ScanReport& report);

}  // namespace penstock
