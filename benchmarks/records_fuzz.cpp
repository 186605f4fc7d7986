// Fuzz target. The input is a file with one record on each line. Each valid record must be equal after it is
// written and parsed again. A report page of all records must not be empty.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "results/record/record.hpp"
#include "results/record/store.hpp"
#include "results/report/page.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  penstock::RecordSet set;
  set.files.emplace_back("runs.jsonl");
  size_t number = 0;
  for (std::string line; std::getline(text, line);) {
    auto record = penstock::parse_record_line(line);
    ++number;
    if (!record.ok()) {
      set.problems.push_back(record.error().message());
      continue;
    }
    const std::string written = penstock::record_line(*record);
    const auto again = penstock::parse_record_line(written);
    if (!again.ok() || penstock::record_line(*again) != written) std::abort();
    set.records.push_back({*std::move(record), set.files.front(), number});
  }
  if (penstock::report::make_page(set, {}, "runs").html.empty()) std::abort();
  return 0;
}
