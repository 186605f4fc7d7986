// For the tests of importers: imports a text, and reads a record of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "results/import/foreign.hpp"

namespace penstock {

// The records in `text`, which must have no problem.
inline std::vector<Record> imported_records(std::string_view text) {
  const auto found = import_foreign(text);
  EXPECT_TRUE(found.has_value());
  if (!found) return {};
  EXPECT_TRUE(found->problems.empty()) << found->problems.front();
  return found->records;
}

inline std::vector<double> samples_of_metric(const Record& record, const std::string& name) {
  const auto at = record.metrics.find(name);
  return at == record.metrics.end() ? std::vector<double>() : at->second.samples;
}

}  // namespace penstock
