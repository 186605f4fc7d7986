// For tests of views: makes the report page of some records.
#pragma once

#include <string>
#include <vector>

#include "results/report/page.hpp"

namespace penstock::report {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline RecordSet set_of(const std::vector<Record>& records) {
  RecordSet set;
  for (const Record& record : records)
    set.records.push_back({record, "runs/x.jsonl", set.records.size() + 1});
  return set;
}

inline std::string page_of(const std::vector<Record>& records,
                           const std::vector<std::string>& problems = {}) {
  RecordSet set = set_of(records);
  set.problems = problems;
  return make_page(set, Output{}, "Title").html;
}

}  // namespace penstock::report
