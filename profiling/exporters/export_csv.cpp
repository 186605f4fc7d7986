#include <fmt/format.h>

#include <iterator>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/csv_field.hpp"
#include "profiling/exporters/exporter.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/session/layers.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {
namespace {

constexpr size_t kCsvChunkBytes = 1U << 20U;

std::string heading_line() {
  std::string line =
      "path,type,size,processes,threads,first_ns,last_ns,opens,closes,reads,writes,stats,seeks,syncs,mmaps,"
      "other,"
      "failures,bytes_read,bytes_written,mapped_bytes,read_time_s,write_time_s,meta_time_s,sequential_reads,"
      "consecutive_reads,sequential_writes,consecutive_writes,read_write_switches";
  for (const std::string_view way : {"read", "write"})
    for (size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i)
      line += fmt::format(",{}_size_{}", way, size_bucket_name(i));
  for (const std::string_view layer : kLayerNames)
    line += fmt::format(",{0}_bytes_read,{0}_bytes_written", layer);
  return line + "\n";
}

void append_row(std::string& out, const FileSum& file) {
  const LayerSum& all = file.all;
  out += csv_field(utf8_name(file.path));
  auto to = std::back_inserter(out);
  fmt::format_to(
      to, ",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.9f},{:.9f},{:.9f},{},{},{},{},{}",
      file_type_name(file.kind), file.size, file.processes, file.threads, file.first_ns, file.last_ns,
      all.opens, all.closes, all.reads, all.writes, all.stats, all.seeks, all.syncs, all.maps, all.other,
      all.failures, all.bytes_read, all.bytes_written, file.mapped_bytes, all.read_ns / 1e9,
      all.write_ns / 1e9, all.meta_ns / 1e9, all.sequential_reads, all.consecutive_reads,
      all.sequential_writes, all.consecutive_writes, all.read_write_switches);
  for (const auto* const sizes : {&all.read_sizes, &all.write_sizes})
    for (const uint64_t count : *sizes) fmt::format_to(to, ",{}", count);
  for (unsigned layer = 0; layer < PENSTOCK_LAYERS; ++layer) {
    const bool is_used = (file.layers_used & (1U << layer)) != 0;
    fmt::format_to(to, ",{},{}", is_used ? file.layers[layer].bytes_read : 0,
                   is_used ? file.layers[layer].bytes_written : 0);
  }
  out += '\n';
}

}  // namespace

Result<uint64_t> export_csv(const FileSums& sums, const SessionFilter& filter, WholeFile& to) {
  std::string text = heading_line();
  Result<void> outcome = success();
  uint64_t rows = 0;
  sums.each(filter.wanted(), [&](const FileSum& file) {
    if (!has_operations(file) || !outcome.ok()) return;
    append_row(text, file);
    ++rows;
    if (text.size() < kCsvChunkBytes) return;
    outcome = to.write(text);
    text.clear();
  });
  PENSTOCK_TRY(std::move(outcome));
  PENSTOCK_TRY(to.write(text));
  return rows;
}

namespace {

Result<ExportOutcome> write_csv(const ExportRequest& request) {
  return export_to_file(request, "the export", "rows",
                        [&](const Session&, const FileSums& sums, WholeFile& file, ExportOutcome&) {
                          return export_csv(sums, request.filter, file);
                        });
}

}  // namespace

extern const ExporterInfo exporter_csv;
const ExporterInfo exporter_csv{.name = "csv", .summary = "one row per file", .write = &write_csv};

}  // namespace penstock
