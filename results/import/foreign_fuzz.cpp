// Fuzz target: the input is a result of another program, or a baseline. Imported records must stay the same
// when they are written and read again. Their export for Google Benchmark must be readable too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "results/export/export_google.hpp"
#include "results/import/foreign.hpp"
#include "results/import/import_parts.hpp"
#include "results/import/json_documents.hpp"
#include "results/record/baseline.hpp"
#include "results/record/store.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto baseline = penstock::parse_baseline(text, "fuzzed");
  if (!baseline.ok() && baseline.error().code != penstock::Errc::corrupt) std::abort();
  penstock::advice_on_foreign(text, "results.txt");
  penstock::imported::utc_of_date(std::string(text));
  penstock::json_fault(text);
  penstock::Record with_options;
  penstock::add_dlio_overrides(with_options, text);
  if (!penstock::parse_record_line(penstock::record_line(with_options)).ok()) std::abort();
  const auto imported = penstock::import_foreign(text);
  if (!imported) return 0;
  penstock::RecordSet set;
  std::vector<penstock::Record*> all;
  for (const penstock::Record& record : imported->records) {
    const std::string written = penstock::record_line(record);
    const auto again = penstock::parse_record_line(written);
    if (!again.ok() || penstock::record_line(*again) != written) std::abort();
    set.records.push_back({record, "peers.json", set.records.size() + 1});
  }
  for (penstock::StoredRecord& stored : set.records) all.push_back(&stored.record);
  penstock::name_foreign_tiers(all);
  if (!penstock::import_foreign(penstock::google_benchmark_json(set))) std::abort();
  return 0;
}
